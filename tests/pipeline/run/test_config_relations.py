"""Settings that must go together, each named with the rule and its value."""

from __future__ import annotations

import pytest
from hydra import compose, initialize_config_dir

from pipeline.errors import ConfigError
from pipeline.run.settings import CONF, PipelineConfig, typed


def _settings(*overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return typed(compose("pipeline", list(overrides)))


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["train.cycles=2"], r"train\.cycles must be 1 where train\.schedule is inverse_sqrt"),
        (
            ["train.cycles=3", "train.schedule=cosine", "train.updates=1600"],
            r"train\.cycles must cut train\.updates=1600 into whole multiples of .*=100, got 3",
        ),
        (
            ["train.cycles=32", "train.schedule=cosine", "train.updates=1600"],
            r"train\.cycles must cut train\.updates=1600 .* got 32",
        ),
        (
            ["train.cycles=8", "train.schedule=cosine", "train.updates=1600"],
            r"train\.warmup_updates must be < the 200 updates of a cycle .* got 200",
        ),
        (
            ["train.schedule=cosine", "train.updates=500", "train.warmup_updates=500"],
            r"train\.warmup_updates must be < the 500 updates of a cycle .* got 500",
        ),
        (["train.updates=450"], r"train\.average_last must be <= the 4 checkpoints .* got 5"),
    ],
)
def test_training_settings_must_go_together(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _settings(*overrides)


def test_cycles_that_divide_the_training_pass() -> None:
    settings = _settings("train.cycles=4", "train.schedule=cosine", "train.updates=1600")
    assert settings.train.cycles == 4


_IMPORTED = ("ensemble=imported", "data/units=imported")
_DICTIONARIES = ("data.units.source_dictionary=a", "data.units.target_dictionary=b")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["data.units.codes=a"], r"units\.codes must be null where data\.units is learnt, got a"),
        ([*_IMPORTED], r"codes or data\.units\.sentencepiece must be given, .* got None and None"),
        (
            [*_IMPORTED, "data.units.codes=a", "data.units.sentencepiece=b"],
            r"codes or data\.units\.sentencepiece must be given, one of the two, got a and b",
        ),
        (
            [*_IMPORTED, "data.units.codes=a", _DICTIONARIES[0]],
            r"data\.units\.target_dictionary must be given for imported units, got null",
        ),
        (
            ["data/units=imported", "data.units.codes=a", *_DICTIONARIES],
            r"ensemble\.seeds must be \[\] where data\.units is imported, .* got \[1, 2, 3, 4\]",
        ),
        (
            [*_IMPORTED, "task=asr", "data.units.codes=a", *_DICTIONARIES],
            r"data\.units must be learnt where task\.family is speech, got imported",
        ),
        (
            [*_IMPORTED, "data.units.codes=a", *_DICTIONARIES, "data.source=files", "data.test=x"],
            r"data\.train must be given where data\.source is files",
        ),
    ],
)
def test_imported_units_come_whole_and_train_nothing(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _settings(*overrides)


def test_imported_units_need_no_text_to_train_on() -> None:
    sets = ("data.source=files", "data.corpus=mine", "data.dev=x", "data.test=y")
    settings = _settings(*_IMPORTED, "data.units.sentencepiece=m", *_DICTIONARIES, *sets)
    assert settings.data.train is None
