"""Settings: every fault named with key, rule, value and choices, before anything starts."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import cast

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig
from omegaconf.errors import MissingMandatoryValue

from pipeline.errors import ConfigError
from pipeline.run import overrides as config_overrides
from pipeline.run.overrides import check_overrides
from pipeline.run.settings import CONF, PipelineConfig, implementation, masked, plain, typed


def _settings(*overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return typed(compose("pipeline", list(overrides)))


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("decode.bem=3", ["decode.bem: no such setting. Did you mean beam?", "length_penalty"]),
        ("+decode.bem=3", ["decode.bem", "beam"]),
        ("decode.beam=0", ["decode.beam: must be at least 1 (got 0)."]),
        ("decode.beam=abc", ["decode.beam", "'abc'", "Integer"]),
        ("decode.beam.size=3", ["decode.beam.size", "decode.beam is a value"]),
        ("task=nmt_xx", ["task: must be one of", "nmt_ende", "(got nmt_xx)."]),
        ("tsk=nmt_ende", ["tsk", "Did you mean task?"]),
        ("hydra/launcher=nope", ["hydra/launcher/nope", "local"]),
        ("train=null", ["train: must be one of", "(got None)."]),
        ("data.near_duplicate_jaccard=1.5", ["must be in (0, 1] (got 1.5)."]),
        ("data.max_words=1", ["data.min_words: must be at most data.max_words=1 (got 3)."]),
        ("uncertainty.beam=[1,0]", ["uncertainty.beam", "whole number of at least 1", "[1, 0]"]),
        ("uncertainty.beam=[]", ["uncertainty.beam: must have at least one value"]),
        ("uncertainty.beam=[1,2,1]", ["uncertainty.beam: must have distinct values", "[1, 2, 1]"]),
        ("uncertainty.temperature=[1,1.0]", ["uncertainty.temperature: must have distinct values"]),
        (
            "uncertainty.temperature=1e-320",
            ["greater than 0 with a finite inverse", "got 1e-320"],
        ),
        ("uncertainty.beam=99999999999999999999", ["uncertainty.beam: must be at most 9223372"]),
        ("metrics.resamples=99999999999999999999", ["metrics.resamples: must be at most 9223372"]),
        ("io.out=", ["io.out: must be null or a folder (got )."]),
        ("io.out='\udcff'", ["command line: must be UTF-8", r"'\udcff'"]),
        ("uncertainty.temperature=-1", ["uncertainty.temperature", "greater than 0", "-1"]),
        ("decode.also=[exprr]", ["decode.also", "expr, members", "exprr"]),
        ("ensemble.seeds=[1,1]", ["ensemble.seeds: must be distinct", "[1, 1]"]),
        ("train.updates=50", ["train.average_last: must be at most 0, the number"]),
        ("train.average_last=9", ["train.average_last: must be at most train.keep_checkpoints"]),
        ("task.test_sets.PRM.kind=z", ["task.test_sets.PRM.kind: must be one of", "(got z)."]),
        ("+task.test_sets.MED.baseline=true", ["exactly one set with baseline", "MED"]),
        ("task.test_sets.newstest14.baseline=false", ["exactly one set with baseline", "[]"]),
        ("decode.name=???", ["decode.name: must have a value"]),
        ("decode.also=expr", ["decode.also: must be a list (got 'expr')."]),
        ("decode.length_penalty=nan", ["decode.length_penalty: must be finite (got nan)."]),
        ("uncertainty.temperature=[1,inf]", ["uncertainty.temperature: must be finite"]),
        ("uncertainty.beam=true", ["uncertainty.beam: must be a whole number", "(got True)"]),
        ("train.learning_rate=inf", ["train.learning_rate: must be finite (got inf)."]),
        ("train.adam_betas=[0.9]", ["train.adam_betas: must be two numbers in [0, 1)"]),
        ("ensemble.seeds=[-1]", ["ensemble.seeds: must be whole numbers in [0, 4294967295]"]),
        ("ensemble.seeds=[4294967296]", ["ensemble.seeds: must be whole numbers"]),
        ("data.train_sentences=0", ["data.train_sentences: must be null or at least 1 (got 0)."]),
        ("train.updates", ["group=option or key=value", "missing EQUAL"]),
        ("=3", ["group=option or key=value"]),
        ("io.store=é.h5", ["Write key=\"'value'\" if the value has other characters"]),
        (
            "report.figures={}",
            ["would change nothing", "Use ~report.figures to leave"],
        ),
    ],
)
def test_case_21_bad_setting_is_named(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        check_overrides([override])
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


def test_points_of_a_sweep_are_left_to_their_jobs() -> None:
    check_overrides(["--multirun", "uncertainty.temperature=1,2,-1"])
    with pytest.raises(ConfigError, match="decode: must be one of"):
        check_overrides(["--multirun", "decode=beam,nothing"])


def test_good_overrides_pass() -> None:
    check_overrides(["--multirun", "decode.beam=1,5", "uncertainty.temperature=range(1,4)"])
    check_overrides(["--help"])


def test_from_config_takes_no_other_setting() -> None:
    check_overrides(["from_config=file.yaml", "part=a", "io.root=elsewhere"])
    with pytest.raises(ConfigError, match=r"decode\.beam: cannot be set .* with from_config.*=3\)"):
        check_overrides(["from_config=file.yaml", "decode.beam=3"])


def test_case_3_zero_is_a_seed() -> None:
    assert list(_settings("ensemble.seeds=[0,1,2]").ensemble.seeds) == [0, 1, 2]


def test_masked_key_cannot_be_read() -> None:
    settings = masked(_settings(), ["decode", "ensemble.seeds"])
    assert settings.decode.beam >= 1
    assert list(settings.ensemble.seeds)
    assert settings.io.root == "outputs"
    with pytest.raises(MissingMandatoryValue, match=r"ensemble\.name"):
        _ = settings.ensemble.name
    with pytest.raises(MissingMandatoryValue, match="train"):
        _ = settings.train


def test_settings_are_read_only() -> None:
    settings = _settings()
    with pytest.raises(Exception, match="read-only"):
        settings.decode.beam = 7


def test_plain_is_plain() -> None:
    assert plain(_settings().train)["adam_betas"] == [0.9, 0.98]
    assert plain(3) == 3


@pytest.mark.parametrize("dotted", ["nowhere.function", "pipeline.run.settings.nothing", "", "os"])
def test_implementation_must_be_importable(dotted: str) -> None:
    with pytest.raises(ConfigError, match=r"train\._target_: must name"):
        implementation(dotted, "train._target_")


def _options() -> list[tuple[str, str]]:
    """Every group with each of its options; one in a folder of its group is named FOLDER/OPTION."""
    paths = [path.relative_to(CONF).with_suffix("") for path in sorted(CONF.rglob("*/*.yaml"))]
    return [(one.parts[0], "/".join(one.parts[1:])) for one in paths if one.parts[0] != "hydra"]


@pytest.mark.parametrize("task", ["nmt_ende", "nmt_enfr", "asr"])
@pytest.mark.parametrize("name", [option for group, option in _options() if group == "experiment"])
def test_every_experiment_composes(name: str, task: str) -> None:
    check_overrides([f"experiment={name}", f"task={task}"])
    settings = _settings(f"experiment={name}", f"task={task}")
    assert settings.experiment.name == name
    assert settings.task.name == task


@pytest.mark.parametrize(("group", "option"), [one for one in _options() if "/" not in one[1]])
def test_every_option_composes(group: str, option: str) -> None:
    assert cast(DictConfig, _settings(f"{group}={option}"))[group].name == option


def test_every_key_has_a_comment() -> None:
    for path in sorted(CONF.rglob("*.yaml")):
        if "hydra" in path.parts or path.name == "dag.yaml":
            continue
        text = path.read_text(encoding="utf-8").partition("\nhydra:")[0]
        for line in text.splitlines():
            if re.match(r"\s*[\w-]+: *[^\s|]", line) or re.match(r"[\w-]+:$", line):
                described = "#" in line or "tab:" in line or line == "defaults:"
                assert described, f"{path.name}: {line}"


def test_a_speech_task_brings_its_model_training_and_decoding() -> None:
    settings = _settings("task=asr")
    assert settings.model.name == "vggtransformer_tiny"
    assert (settings.train.name, settings.decode.beam) == ("asr", 20)
    assert settings.model.settings["input_feat_per_channel"] == settings.data.speech.feature_bins
    chosen = _settings("task=asr", "model=vggtransformer_2", "data.speech.feature_bins=80")
    assert chosen.model.name == "vggtransformer_2"
    with pytest.raises(ConfigError, match=r"input_feat_per_channel: must be .*_bins=40 \(got 80\)"):
        _settings("task=asr", "model=vggtransformer_2")


@pytest.mark.parametrize(
    ("task", "model", "updates", "members", "checkpoints"),
    [
        ("nmt_ende", "transformer_wmt_en_de_big", 193_000, 10, (10, 1, 1)),
        ("nmt_enfr", "transformer_wmt_en_de_big", 800_000, 10, (10, 1, 1)),
        ("asr", "vggtransformer_2", 704_000, 6, (6, 5, 5)),
    ],
)
def test_the_paper_is_composed_as_it_says(
    task: str, model: str, updates: int, members: int, checkpoints: tuple[int, int, int]
) -> None:
    settings = _settings("experiment=paper", f"task={task}")
    assert settings.model.name == model
    assert settings.train.updates == updates
    assert len(settings.ensemble.seeds) == members
    cheap = _settings("experiment=paper/checkpoint", f"task={task}")
    assert (cheap.ensemble.name, list(cheap.ensemble.seeds)) == ("checkpoint", [1])
    for one in (cheap.ensemble, settings.ensemble.also["checkpoint"]):
        assert tuple(one.settings[key] for key in ("members", "average", "every")) == checkpoints


def test_the_paper_for_speech_alone_chooses_its_task() -> None:
    assert _settings("experiment=paper_asr").task.name == "asr"


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


def test_options_of_a_folder_of_ones_own_are_found(tmp_path: Path) -> None:
    (tmp_path / "uncertainty").mkdir()
    (tmp_path / "uncertainty" / "mine.yaml").write_text("defaults: [default]\nbeam: 3\n")
    own = f"--config-dir={tmp_path}"
    check_overrides([own, "uncertainty=mine"])
    with pytest.raises(ConfigError, match=r"uncertainty: must be one of .*, mine, .*got yours"):
        check_overrides([own, "uncertainty=yours"])
    with pytest.raises(ConfigError, match=r"--config-dir: must be a folder \(got .*none\)"):
        check_overrides([f"{own}/none", "uncertainty=mine"])
