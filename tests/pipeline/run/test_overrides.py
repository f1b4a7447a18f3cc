"""Overrides of a command line: every fault is named with its key before anything starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pipeline.errors import ConfigError, MachineError
from pipeline.run import overrides as config_overrides
from pipeline.run.overrides import check_launcher, check_overrides, tidied, with_swept_keys
from pipeline.run.settings import CONF


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("decode.bem=3", ["decode.bem: no such setting. Did you mean beam?", "length_penalty"]),
        ("+decode.bem=3", ["decode.bem", "beam"]),
        (
            "ensemble.settings.modles=[a]",
            ["ensemble.settings.modles: no such setting. Did you mean models?", "adapters"],
        ),
        ("+ensemble.settings.modles=[a]", ["settings.modles", "Did you mean models?"]),
        ("decode.beam=0", ["decode.beam: must be at least 1 (got 0)."]),
        ("decode.beam=abc", ["decode.beam", "'abc'", "Integer"]),
        ("decode.beam.size=3", ["decode.beam.size", "decode.beam is a value"]),
        ("task=nmt_xx", ["task: must be one of", "nmt_ende", "(got nmt_xx)."]),
        ("tsk=nmt_ende", ["tsk", "Did you mean task?"]),
        ("hydra/launcher=nope", ["hydra/launcher/nope", "local"]),
        ("train=null", ["train: must be one of", "(got None)."]),
        ("io.out='\udcff'", ["command line: must be UTF-8", r"'\udcff'"]),
        ("train.updates", ["group=option or key=value", "(got train.updates)"]),
        ("=3", ["group=option or key=value"]),
        ("io.store=é.h5", ["Write io.store=\"'value'\" if the value has other characters"]),
        ("decode.beam=[1", ["decode.beam: the list has no closing bracket (got [1)."]),
        ("io.store=[a b=c.h5]", ["Write io.store=\"['first item','second item']\" if an item has"]),
        ("decode/combination=expr", ["not a group but a setting. Write decode.combination=expr."]),
        ("decode/bem=3", ["decode/bem: no such setting"]),
        (
            "data.units=imported",
            ["data.units: a group has a slash", "data/units=OPTION, with one of imported, learnt"],
        ),
        ("ensemble.name=mc_dropout", ["ensemble.name: the name of an option", "ensemble=OPTION"]),
        ("++dump.name=full", ["dump.name: the name of an option", "dump=OPTION"]),
        ("experiment.name=paper", ["experiment.name: the name of an option"]),
        ("data.units.name=own", ["data.units.name: the name of an option", "data/units=OPTION"]),
        (
            "report.figures={}",
            ["would change nothing", "Use ~report.figures to leave"],
        ),
    ],
)
def test_case_21_a_bad_override_is_named(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        check_overrides(["ensemble=huggingface", "ensemble.seeds=[]", override])
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_every_option_of_a_group_is_accepted() -> None:
    for group in sorted(path for path in CONF.iterdir() if path.is_dir() and path.name != "hydra"):
        options = (path.relative_to(group).with_suffix("") for path in group.rglob("*.yaml"))
        sweep = f"{group.name}={','.join(sorted(map(str, options)))}"
        check_overrides(["--multirun", sweep, "decode.beam=1,2"])


def test_points_of_a_sweep_are_left_to_their_jobs() -> None:
    check_overrides(["--multirun", "uncertainty.temperature=1,2,-1"])
    with pytest.raises(ConfigError, match="decode: must be one of"):
        check_overrides(["--multirun", "decode=beam,nothing"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-cn", "dag"], r"^-cn: stages have one primary configuration, conf/pipeline\.yaml\."),
        (["--config-name=dag"], r"^--config-name=dag: stages have one primary"),
        (["hydra.job.chdir=true"], r"^hydra\.job\.chdir: must be false, since paths"),
        (["decode.beam=1,5"], r"^decode\.beam=1,5: several values are a sweep\. Add --multirun"),
        (["task=asr,nmt_ende"], r"^task=asr,nmt_ende: several values are a sweep"),
    ],
)
def test_habits_of_hydra_that_fail_here_get_a_sentence(arguments: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_overrides(arguments)


def test_flags_between_overrides_and_the_home_folder_are_tidied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    given = ["decode.beam=1,5", "-m", "io.root=~/out", "io.store=['~/a.h5',~/b~/c.h5]", "~task.x"]
    assert tidied(given) == [
        "-m",
        "decode.beam=1,5",
        "io.root=/home/me/out",
        "io.store=['/home/me/a.h5',/home/me/b~/c.h5]",
        "~task.x",
    ]


def test_slurm_is_refused_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match=r"^hydra/launcher=slurm: this machine has no Slurm"):
        check_launcher(["hydra/launcher=slurm"])
    check_launcher(["hydra/launcher=local"])


def test_good_overrides_pass() -> None:
    check_overrides(["--multirun", "decode.beam=1,5", "uncertainty.temperature=range(1,4)"])
    check_overrides(["--help"])
    check_overrides(["task.name=mine", "data.units.codes=null"])


@pytest.mark.parametrize("flag", ["--foo", "--multi-run", "-x", "--beam=5"])
def test_unknown_option_is_named(flag: str) -> None:
    name = flag.split("=")[0]
    with pytest.raises(ConfigError, match=f"^{name}: no such option. Add --help for all options.$"):
        check_overrides(["decode.beam=5", flag])


def test_from_config_takes_no_other_setting() -> None:
    check_overrides(["from_config=file.yaml", "part=a", "io.root=elsewhere"])
    with pytest.raises(ConfigError, match=r"decode\.beam: cannot be set .* with from_config.*=3\)"):
        check_overrides(["from_config=file.yaml", "decode.beam=3"])


def test_hostile_yaml_tag_in_conf_runs_nothing_and_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(CONF, conf)
    made = tmp_path / "made"
    evil = f'decode:\n  beam: !!python/object/apply:os.mkdir ["{made}"]\n'
    (conf / "experiment" / "evil.yaml").write_text(f"# @package _global_\n{evil}")
    monkeypatch.setattr(config_overrides, "CONF", conf)
    with pytest.raises(ConfigError, match=r"evil\.yaml, line 3: not plain YAML \(could"):
        config_overrides.check_overrides(["experiment=evil"])
    assert not made.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"beam: [1, 2\nx: 3\n", r"mine\.yaml, line 2: not plain YAML \(expected ','"),
        (
            b"beam: !!python/name:os.system\n",
            r"line 1: not plain YAML \(could not determine",
        ),
        (b"beam: 1\nbeam: 2\n", r"line 2: not plain YAML \(found duplicate key beam"),
        (b"beam:\n\t- 1\n", r"line 2: not plain YAML \(found character '\\t'"),
        (b"beam: *x\n", r"line 1: not plain YAML \(found undefined alias 'x'"),
        (b"beam: \0\n", r"not plain YAML \(unacceptable character #x0000.*mine"),
        (b"# one\nbeam: \xe9\n", r"mine\.yaml, line 2: not UTF-8 \(invalid continuation"),
        (b"defaults: 3\n", "Invalid defaults list in 'uncertainty/mine'"),
        (b"beam: ${a\n", "the settings do not compose: no viable alternative at input"),
        (b"- beam\n", "list is not a subclass of UncertaintyConfig"),
        (b"bem: 1\n", r"uncertainty\.bem: no such setting\. Did you mean beam\?"),
    ],
)
def test_hostile_yaml_in_a_folder_of_ones_own_is_one_sentence(
    text: bytes, words: str, tmp_path: Path
) -> None:
    folder = tmp_path / "it's mine" / "uncertainty"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_bytes(text)
    with pytest.raises(ConfigError, match=words) as refused:
        check_overrides(["--config-dir", str(folder.parent), "uncertainty=mine"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["data", "task"])
def test_task_without_its_first_line_is_told_which_line_is_missing(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "mine.yaml").write_text(f"{name}: {{}}\n")
    with pytest.raises(ConfigError) as refused:
        check_overrides([f"--config-dir={tmp_path}", "task=mine"])
    assert str(refused.value).startswith(f"task.{name}: no such setting.")
    assert str(refused.value).endswith(
        f" If a file in task/ sets {name}, its first line must be '# @package _global_'."
    )


def test_options_of_a_folder_of_ones_own_are_found(tmp_path: Path) -> None:
    (tmp_path / "uncertainty").mkdir()
    (tmp_path / "uncertainty" / "mine.yaml").write_text("defaults: [default]\nbeam: 3\n")
    own = f"--config-dir={tmp_path}"
    check_overrides([own, "uncertainty=mine"])
    with pytest.raises(ConfigError, match=r"uncertainty: must be one of .*, mine, .*got yours"):
        check_overrides([own, "uncertainty=yours"])
    with pytest.raises(ConfigError, match=r"--config-dir: must be a folder \(got .*none\)"):
        check_overrides([f"{own}/none", "uncertainty=mine"])


def test_jobs_of_a_multirun_learn_which_keys_are_swept() -> None:
    given = ["-m", "decode.beam=1,5", "seed=3", "+a.b='x,y'", "uncertainty.temperature=range(1,5)"]
    swept = "hydra.callbacks.sweep_parent.swept=['decode.beam','uncertainty.temperature']"
    assert with_swept_keys(given) == [*given, swept]
    for without in (["seed=3"], ["-m", "--help", "seed=1,2"]):
        assert with_swept_keys(without) == without
