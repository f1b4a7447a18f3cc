"""Missing corpora of the paper are named, and sizes that differ from the paper are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.paper_corpora import DEV, check_present, paper_corpus, size_differences
from pipeline.errors import DataError
from pipeline.run.settings import PipelineConfig, changed
from tests.composed_settings import composed_settings, own_task


def _settings(*overrides: str) -> PipelineConfig:
    return composed_settings("experiment=paper", *overrides)


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return settings of a folder with a file or folder for each translation corpus."""
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    for name, target in (("wmt13", "de"), ("wmt14/full", "de"), ("wmt14/full", "fr")):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        for side in ("src", "ref"):
            (tmp_path / name / f"{name.replace('/', '_')}.en-{target}.{side}").touch()
    for subset in ("test-clean", "test-other"):
        (tmp_path / subset).mkdir()
    (tmp_path / "train.en.gz").touch()
    places = {"train": tmp_path / "train", "librispeech": tmp_path, "khresmoi": tmp_path}
    return [f"data.{key}={path}" for key, path in places.items()]


def test_every_missing_corpus_is_named_with_its_publisher(tmp_path: Path) -> None:
    settings = _settings("task=asr", f"data.speech.ami={tmp_path}")
    assert settings.data.check_paper_sizes
    with pytest.raises(DataError) as error:
        check_present(settings.data, settings.task)
    text = str(error.value)
    for words in ("train-clean-100", "281,200", "openslr.org/12", "14,760", "Mozilla", "2,939"):
        assert words in text
    assert "AMI" not in text
    assert "\n" not in text


def test_one_side_of_the_training_text_is_enough(corpora: list[str], tmp_path: Path) -> None:
    settings = _settings(*corpora)
    check_present(settings.data, settings.task)
    (tmp_path / "train.en.gz").unlink()
    with pytest.raises(
        DataError, match=r"Provide data\.train \(got no .*WMT'17 EN-DE, 4,500,000 .*statmt\.org"
    ):
        check_present(settings.data, settings.task)


NOTHING_GIVEN = {
    "data.train": ["WMT'17 EN-DE"],
    "data.dev": ["newstest2013"],
    "data.test": ["newstest14"],
    "data.librispeech": ["LibriSpeech test-clean", "LibriSpeech test-other"],
    "data.khresmoi": ["Khresmoi-Summary"],
}
NO_SPEECH_GIVEN = {
    "data.speech.train": ["LibriSpeech, 960 hours"],
    "data.speech.dev": ["LibriSpeech dev-clean and dev-other"],
    "data.speech.test": ["LibriSpeech test-clean"],
    "data.speech.test_other": ["LibriSpeech test-other"],
    "data.speech.ami": ["AMI, evaluation part"],
    "data.speech.common_voice": ["Common Voice FR"],
}


@pytest.mark.parametrize(
    ("overrides", "needed"),
    [(["data.source=libreoffice"], NOTHING_GIVEN), (["task=asr"], NO_SPEECH_GIVEN)],
)
def test_key_without_a_corpus_is_named(overrides: list[str], needed: dict[str, list[str]]) -> None:
    lists = ("data.speech.train", "data.speech.dev")
    settings = _settings(*overrides, *(f"{key}={[] if key in lists else 'null'}" for key in needed))
    with pytest.raises(DataError) as error:
        check_present(settings.data, settings.task)
    text = str(error.value)
    corpora = [f"{key} (got null): {corpus}" for key, names in needed.items() for corpus in names]
    assert text.count("got") == len(corpora)
    assert [corpus for corpus in corpora if corpus not in text] == []


@pytest.mark.parametrize(
    ("key", "name", "pair"),
    [
        ("dev", "wmt13", "en-de"),
        ("test", "wmt14/full", "en-de"),
        ("test", "wmt14/full", "en-fr"),  # for L-FR
    ],
)
def test_sacrebleu_set_must_be_in_the_cache(
    key: str, name: str, pair: str, corpora: list[str], tmp_path: Path
) -> None:
    (tmp_path / name / f"{name.replace('/', '_')}.{pair}.ref").unlink()
    settings = _settings(*corpora)
    with pytest.raises(DataError, match=rf"Provide data\.{key} \(got no {name} of {pair} in the"):
        check_present(settings.data, settings.task)


def test_missing_subset_of_librispeech_is_named(corpora: list[str], tmp_path: Path) -> None:
    (tmp_path / "test-other").rmdir()
    settings = _settings(*corpora)
    with pytest.raises(DataError, match=r"Provide data\.librispeech \(got no .*test-other\)"):
        check_present(settings.data, settings.task)


@pytest.mark.parametrize("task", ["nmt_ende", "nmt_enfr", "asr"])
def test_settings_allow_the_sizes_of_the_paper(task: str) -> None:
    settings = _settings(f"task={task}")
    sizes = [
        corpus.sentences
        for test_set in settings.task.test_sets.values()
        if (corpus := paper_corpus(test_set)) is not None
    ]
    assert len(sizes) == 4
    assert settings.data.test_sentences >= max(sizes)
    assert settings.data.dev_sentences >= DEV[settings.task.family].sentences
    assert settings.data.train_sentences is None


@pytest.mark.parametrize("task", ["nmt_ende", "asr"])
def test_own_task_needs_only_the_corpora_of_its_own_sets(task: str) -> None:
    paper, nothing = ("experiment=paper", f"task={task}"), {"data.train": None}
    nothing |= {"data.source": "files", "data.librispeech": None, "data.speech.train": []}
    without_role = changed(own_task(*paper), nothing)
    check_present(without_role.data, without_role.task)
    other = changed(own_task(*paper, roles=("LTO",)), nothing)
    with pytest.raises(DataError, match=r"missing\. Provide [^;]*test-other[^;]*$"):
        check_present(other.data, other.task)
    counts = {"test_sets": {"mine": {"rows": 3}}, "split": {"train": 3}}
    (text,) = size_differences(other.task, counts)
    assert text.startswith("mine has 3 sentences")


def test_sizes_are_compared_with_the_tables_of_the_paper() -> None:
    sets = {"help": {"rows": 3003}, "debian-reference": {"rows": 1000}, "typos": {"rows": 5}}
    (text,) = counts = size_differences(
        composed_settings("task=nmt_ende").task,
        {
            "test_sets": sets,
            # Copies are no sentences of the paper's corpus.
            "split": {"train": 4_400_000, "synthetic_copies_of_source": 4_400_000},
        },
    )
    assert len(counts) == 1
    assert "debian-reference has 1,000 sentences" in text
    assert "1,500" in text
    speech = {"train": {"utterances_read": 28_539}, "commands": {"utterances_read": 2620}}
    (text,) = size_differences(composed_settings("task=asr").task, speech)
    assert "train has 28,539" in text
