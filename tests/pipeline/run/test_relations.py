"""Contradictory settings are refused with the key, the rule and the value."""

from __future__ import annotations

import pytest

from pipeline.errors import ConfigError
from tests.composed_settings import composed_settings


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            ["train.cycles=2"],
            r"train\.cycles: must be 1 if train\.schedule is .* \(got 2\)",
        ),
        (
            ["train.cycles=3", "train.schedule=cosine", "train.updates=1600"],
            r"train\.cycles: must divide train\.updates=1600 into multiples of .*=100 \(got 3\)",
        ),
        (
            ["train.cycles=32", "train.schedule=cosine", "train.updates=1600"],
            r"train\.cycles: must divide train\.updates=1600 .* \(got 32\)",
        ),
        (
            ["train.cycles=8", "train.schedule=cosine", "train.updates=1600"],
            r"train\.warmup_updates: must be less than 200, the updates of one .* \(got 200\)",
        ),
        (
            ["train.schedule=cosine", "train.updates=500", "train.warmup_updates=500"],
            r"train\.warmup_updates: must be less than 500, the updates of one .* \(got 500\)",
        ),
        (
            ["train.updates=450"],
            r"train\.average_last: must be at most 4, .* \(got 5\)",
        ),
    ],
)
def test_contradictory_training_settings_are_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        composed_settings(*overrides)


def test_cycles_that_divide_the_training_are_accepted() -> None:
    settings = composed_settings("train.cycles=4", "train.schedule=cosine", "train.updates=1600")
    assert settings.train.cycles == 4


def test_both_sides_of_a_translation_need_different_codes() -> None:
    with pytest.raises(ConfigError, match=r"task\.target_language: must differ from .*\(got en\)"):
        composed_settings("task.target_language=en")
    assert composed_settings("task=asr").task.target_language == "en"


@pytest.mark.parametrize("name", ["en es", "en/es", "..", ""])
def test_name_of_a_task_is_one_of_a_folder(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^task\.name: a name must consist of .*Rename the task"):
        composed_settings(f"task.name='{name}'")
    assert composed_settings("task.name='en-日本_2'").task.name == "en-日本_2"


def test_speech_of_ones_own_models_needs_no_training_corpus() -> None:
    own = ("task=asr", "data/units=own", "ensemble=huggingface", "data.speech.corpus=mine")
    assert composed_settings(*own, "data.speech.dev=[x]").data.speech.dev == ["x"]
    with pytest.raises(ConfigError, match=r"speech\.test: must be empty .* of kind files"):
        composed_settings(*own, "data.speech.test=x")
    with pytest.raises(ConfigError, match=r"speech\.dev: must be empty if data\.speech\.train is"):
        composed_settings("task=asr", "data.speech.dev=[x]")
    with pytest.raises(ConfigError, match=r"corpus: must name the corpus of data\.speech\.dev"):
        composed_settings(*own[:-1], "data.speech.dev=[x]")


def test_baseline_is_in_domain() -> None:
    tested = next(iter(composed_settings().task.test_sets))
    key = f"task.test_sets.{tested}.in_domain"
    with pytest.raises(ConfigError, match=rf"{key}: must be true for the set with baseline: true"):
        composed_settings(f"{key}=false")


_IMPORTED = ("ensemble=imported", "data/units=imported")
_DICTIONARIES = ("data.units.source_dictionary=a", "data.units.target_dictionary=b")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["data.units.codes=a"], r"units\.codes: must be null if data\.units is learnt \(got a\)"),
        (
            ["ensemble=huggingface", "data/units=own", "data.units.codes=a"],
            r"units\.codes: must be null if data\.units is own \(got a\)",
        ),
        (
            ["data/units=own"],
            r"ensemble\.seeds: must be \[\] if data\.units is own, .* \(got \[1, 2, 3, 4\]\)",
        ),
        (
            [*_IMPORTED],
            r"codes, data\.units\.sentencepiece: exactly one .* \(got None and None\)",
        ),
        (
            [*_IMPORTED, "data.units.codes=a", "data.units.sentencepiece=b"],
            r"data\.units\.sentencepiece: exactly one must be set .* \(got a and b\)",
        ),
        (
            [*_IMPORTED, "data.units.codes=a", _DICTIONARIES[0]],
            r"data\.units\.target_dictionary: must be set if data\.units is imported \(got null\)",
        ),
        (
            ["data/units=imported", "data.units.codes=a", *_DICTIONARIES],
            r"ensemble\.seeds: must be \[\] if data\.units is imported, .* \(got \[1, 2, 3, 4\]\)",
        ),
        (
            [*_IMPORTED, "task=asr", "data.units.codes=a", *_DICTIONARIES],
            r"data\.units: must be learnt or own if task\.family is speech \(got imported\)",
        ),
        (
            [*_IMPORTED, "data.units.codes=a", *_DICTIONARIES, "data.source=files", "data.test=x"],
            r"data\.train: must be set if data\.source is files",
        ),
    ],
)
def test_incomplete_imported_subword_models_are_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        composed_settings(*overrides)


def test_imported_subword_models_need_no_training_text() -> None:
    sets = ("data.source=files", "data.corpus=mine", "data.dev=x", "data.test=y")
    settings = composed_settings(*_IMPORTED, "data.units.sentencepiece=m", *_DICTIONARIES, *sets)
    assert settings.data.train is None


_SCORE = "+metrics.scores.comet"
_BETTER = f"{_SCORE}.higher_is_better=true"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ([f"{_SCORE}.files=a"], r"scores\.comet\.higher_is_better: must have a value"),
        ([_BETTER], r"scores\.comet\.files: must have a value"),
        ([_BETTER, f"{_SCORE}.files='{{}}'"], r"no other placeholders than {part}, .* \(got {}\)"),
        ([_BETTER, f"{_SCORE}.files='{{set}}.tsv'"], r"placeholders .* \(got {set}\.tsv\)"),
        ([_BETTER, f"{_SCORE}.files='{{part'"], r"scores\.comet\.files: must be a path .*{part\)"),
        (
            ["+metrics.scores.a-b.files=a", "+metrics.scores.a-b.higher_is_better=true"],
            r"scores\.a-b: a name must consist of letters, digits and _ \(got a-b\)",
        ),
        (
            [f"{_SCORE}.higher_is_better=7.5", f"{_SCORE}.files=a"],
            r"higher_is_better: .* is not a valid bool",
        ),
    ],
)
def test_scores_need_files_a_direction_and_a_name(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        composed_settings(*overrides)


def test_files_of_scores_may_have_every_placeholder() -> None:
    files = "'scores/{task}/{part}.{test_set}.tsv'"
    settings = composed_settings(_BETTER, f"{_SCORE}.files={files}")
    assert settings.metrics.scores["comet"].files == files.strip("'")
