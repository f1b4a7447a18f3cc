"""Settings composed from conf/: their rules, and the choices of each option and experiment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue

from pipeline.errors import ConfigError
from pipeline.run.settings import CONF, implementation, masked, plain, typed, typed_file
from tests.composed_settings import composed_settings


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("data.copies.target=1.5", ["data.copies.target: must be in [0, 1] (got 1.5)."]),
        ("data.untranslated=some", ["data.untranslated: must be one of drop, keep (got some)."]),
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
        ("uncertainty.temperature=-1", ["uncertainty.temperature", "greater than 0", "-1"]),
        ("decode.also=[exprr]", ["decode.also", "expr, members", "exprr"]),
        ("ensemble.seeds=[1,1]", ["ensemble.seeds: must be distinct", "[1, 1]"]),
        ("train.updates=50", ["train.average_last: must be at most 0, the number"]),
        ("train.average_last=9", ["train.average_last: must be at most train.keep_checkpoints"]),
        (
            "task.test_sets.permuted.kind=z",
            ["task.test_sets.permuted.kind: must be one of", "(got z)."],
        ),
        (
            "+task.test_sets.debian-reference.baseline=true",
            ["exactly one set with baseline", "debian-reference"],
        ),
        ("task.test_sets.help.baseline=false", ["exactly one set with baseline", "[]"]),
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
    ],
)
def test_case_21_a_bad_setting_is_named(override: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        composed_settings(override)
    assert all(word in str(error.value) for word in words), str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("task: {source_language: no}", "task.source_language"),
        ("task: {test_sets: {L-FR: {language: no}}}", "task.test_sets.L-FR.language"),
        ("task: {test_sets: {no: {kind: held_out}}}", "task.test_sets.False"),
        ("data: {corpus: yes}", "data.corpus"),
    ],
)
def test_language_code_that_yaml_reads_as_false_has_to_be_quoted(text: str, key: str) -> None:
    """Without quotes `no`, Norwegian, became the language 'False'."""
    composed = cast(DictConfig, OmegaConf.create(plain(composed_settings())))
    with pytest.raises(ConfigError) as error:
        typed(cast(DictConfig, OmegaConf.merge(composed, OmegaConf.create(text))))
    assert str(error.value).startswith(f"{key}: ")
    assert 'Write such a text in quotes, as "no".' in str(error.value)


def test_norwegian_is_a_language() -> None:
    assert composed_settings("task.target_language=no").task.target_language == "no"
    composed = cast(DictConfig, OmegaConf.create(plain(composed_settings())))
    quoted = OmegaConf.create('task: {source_language: "no", target_language: nn}')
    assert typed(cast(DictConfig, OmegaConf.merge(composed, quoted))).task.source_language == "no"


def test_case_3_zero_is_a_seed() -> None:
    assert list(composed_settings("ensemble.seeds=[0,1,2]").ensemble.seeds) == [0, 1, 2]


def test_masked_key_cannot_be_read() -> None:
    settings = masked(composed_settings(), ["decode", "ensemble.seeds"])
    assert settings.decode.beam >= 1
    assert list(settings.ensemble.seeds)
    assert settings.io.root == "outputs"
    with pytest.raises(MissingMandatoryValue, match=r"ensemble\.name"):
        _ = settings.ensemble.name
    with pytest.raises(MissingMandatoryValue, match="train"):
        _ = settings.train


def test_settings_are_read_only() -> None:
    settings = composed_settings()
    with pytest.raises(Exception, match="read-only"):
        settings.decode.beam = 7


def test_plain_is_plain() -> None:
    assert plain(composed_settings().train)["adam_betas"] == [0.9, 0.98]
    assert plain(3) == 3


@pytest.mark.parametrize("dotted", ["nowhere.function", "pipeline.run.settings.nothing", "", "os"])
def test_implementation_must_be_importable(dotted: str) -> None:
    with pytest.raises(ConfigError, match=r"train\._target_: must name"):
        implementation(dotted, "train._target_")


# The groups of single files in conf/ with their options, and the options of the primary config.
_OPTIONS = [
    (path.parent.name, path.stem) for path in sorted(CONF.glob("*/*.yaml")) if path.is_file()
]
_DEFAULTS = [
    (group, option)
    for entry in yaml.safe_load((CONF / "pipeline.yaml").read_text(encoding="utf-8"))["defaults"]
    if isinstance(entry, dict)
    for group, option in entry.items()
    if "/" not in group
]
_EXPERIMENTS = [
    path.relative_to(CONF / "experiment").with_suffix("").as_posix()
    for path in sorted((CONF / "experiment").rglob("*.yaml"))
]


@pytest.mark.parametrize("task", ["nmt_ende", "nmt_enfr", "asr"])
@pytest.mark.parametrize("name", _EXPERIMENTS)
@pytest.mark.slow
def test_every_experiment_composes(name: str, task: str) -> None:
    settings = composed_settings(f"experiment={name}", f"task={task}")
    assert settings.experiment.name == name
    assert settings.task.name == task


def test_the_primary_config_chooses_an_option_of_every_group() -> None:
    settings = cast(DictConfig, composed_settings())
    assert {*_DEFAULTS} <= {*_OPTIONS}
    assert {group for group, _ in _DEFAULTS} == {group for group, _ in _OPTIONS}
    for group, option in _DEFAULTS:
        assert settings[group].name == option


@pytest.mark.parametrize(
    ("group", "option"),
    [chosen for chosen in _OPTIONS if chosen not in _DEFAULTS and chosen[0] != "experiment"],
)
@pytest.mark.slow
def test_every_option_composes(group: str, option: str) -> None:
    assert cast(DictConfig, composed_settings(f"{group}={option}"))[group].name == option


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
    settings = composed_settings("task=asr")
    assert settings.model.name == "vggtransformer_tiny"
    assert (settings.train.name, settings.decode.beam) == ("asr", 20)
    assert settings.model.settings["input_feat_per_channel"] == settings.data.speech.feature_bins
    chosen = composed_settings("task=asr", "model=vggtransformer_2", "data.speech.feature_bins=80")
    assert chosen.model.name == "vggtransformer_2"
    with pytest.raises(ConfigError, match=r"input_feat_per_channel: must be .*_bins=40 \(got 80\)"):
        composed_settings("task=asr", "model=vggtransformer_2")


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
    settings = composed_settings("experiment=paper", f"task={task}")
    assert settings.model.name == model
    assert settings.train.updates == updates
    assert len(settings.ensemble.seeds) == members
    cheap = composed_settings("experiment=paper/checkpoint", f"task={task}")
    assert (cheap.ensemble.name, list(cheap.ensemble.seeds)) == ("checkpoint", [1])
    for ensemble in (cheap.ensemble, settings.ensemble.also["checkpoint"]):
        assert (
            tuple(ensemble.settings[key] for key in ("members", "average", "every")) == checkpoints
        )


def test_the_paper_for_speech_alone_chooses_its_task() -> None:
    assert composed_settings("experiment=paper_asr").task.name == "asr"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed: [1", "expected ',' or ']'"),
        ("- seed", "it is a list"),
        ("trian: {}", "trian: no such setting. Did you mean train?"),
        ("seed: 1", "io.root: must have a value"),
        ("abc", "abc: no such setting"),
        ("seed: " + "[" * 5000, "recursion"),
        ("a: &a [1]\nb: &b [*a, *a]\nc: [*b, *b]", "it has an alias, *a"),
        ("seed: !!python/object/apply:os.mkdir ['harm']", "could not determine a constructor"),
        (None, "No such file or directory"),
    ],
)
def test_a_damaged_file_of_settings_is_refused(
    text: str | None, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "resolved.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError) as error:
        typed_file(path, DictConfig({}), [])
    message = str(error.value)
    assert message.startswith(f"{path}: not a file of settings (")
    assert words in message
    assert "\n" not in message


def test_home_folder_is_expanded_once_in_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    settings = composed_settings(
        "ensemble=imported",
        "data.packages='~/deb'",
        "io.member_stores=['~/a.h5','b~/c.h5']",
        "ensemble.settings.checkpoints=['~/x.pt']",
    )
    assert settings.data.packages == "/home/me/deb"
    assert plain(settings.io.member_stores) == ["/home/me/a.h5", "b~/c.h5"]
    assert plain(settings.ensemble.settings)["checkpoints"] == ["/home/me/x.pt"]
