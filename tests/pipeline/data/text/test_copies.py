from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.data.card import text_card, text_sizes, text_subsets
from pipeline.data.text.cleaning import NearDuplicates
from pipeline.data.text.copies import make_copies
from pipeline.data.text.corpus import AlignedSentence, SpooledSentences
from pipeline.data.text.parallel import ParallelData, make_parallel_data
from pipeline.errors import ConfigError
from pipeline.run import settings as config
from pipeline.run.settings import CopiesConfig, TaskConfig
from tests.composed_settings import composed_settings

_PAIR = ("en", "de")
_SENTENCES = [
    AlignedSentence(f"page {number}", {"de": f"Satz {number}", "en": f"sentence {number}"})
    for number in range(10)
]


def _spooled(folder: Path) -> SpooledSentences:
    train = SpooledSentences(folder / "train.jsonl", ["de", "en"])
    train.write(_SENTENCES)
    return train


def _texts(train: SpooledSentences, shares: Sequence[float], seed: int) -> dict[str, list[str]]:
    """Kind -> the texts that are copied."""
    copies = make_copies(CopiesConfig(*shares, 0.0), _PAIR, train, None, seed)
    return {
        kind: [text for sentence in sentences for text in sentence.text.values()]
        for kind, sentences in copies.items()
    }


def test_a_share_of_the_sentences_is_copied_on_each_side_in_their_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    train = _spooled(tmp_path)
    copied = _texts(train, (0.3, 0.2), 0)
    assert {kind: len(texts) for kind, texts in copied.items()} == {"source": 3, "target": 2}
    for kind, language in (("source", "en"), ("target", "de")):
        places = [sentence.text[language] for sentence in _SENTENCES]
        assert sorted(copied[kind], key=places.index) == copied[kind]
        assert {*copied[kind]} < {*places}
    assert (
        "SYNTHETIC noise: 3 of 10 training sentences are repeated with their source side (en)"
        in (caplog.text)
    )
    assert list(train) == _SENTENCES
    assert _texts(train, (0.0, 0.0), 0) == {}
    assert [text[9:] for text in _texts(train, (1.0, 0.0), 0)["source"]] == list("0123456789")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shares=st.lists(st.floats(0.001, 1), min_size=2, max_size=2).map(sorted),
    seed=st.integers(0, 2**32),
)
def test_a_larger_share_contains_the_smaller_one(
    shares: list[float], seed: int, tmp_path: Path
) -> None:
    train = _spooled(tmp_path)
    fewer, more = (_texts(train, (share, share), seed) for share in shares)
    for kind in ("source", "target"):
        assert {*fewer[kind]} <= {*more[kind]}
        assert len(more[kind]) == round(10 * shares[1])


def test_seeds_and_kinds_are_drawn_independently(tmp_path: Path) -> None:
    train = _spooled(tmp_path)
    drawn = [
        tuple(text.split()[1] for text in texts)
        for seed in range(4)
        for texts in _texts(train, (0.5, 0.5), seed).values()
    ]
    assert len({*drawn}) == len(drawn) == 8


# Copies of a third language

_WORDS = ("alpha", "bravo", "delta", "echo", "golf", "hotel", "india", "kilo")
_FRENCH = [f"phrase {word} ici" for word in _WORDS]
_ENGLISH = [line.replace("phrase", "lines").replace("ici", "here") for line in _FRENCH]
_GERMAN = [line.replace("phrase", "Zeile").replace("ici", "hier") for line in _FRENCH]


_TEST = {"en": "a test apart", "de": "ein anderer Test", "fr": "phrase hotel ici"}


def _parallel(
    folder: Path,
    share: float,
    *overrides: str,
    french: Sequence[str] = _FRENCH,
    languages: str = "en de fr",
) -> ParallelData:
    """Prepare text of which a share is to be copied in the third language."""
    texts = {"en": _ENGLISH, "de": _GERMAN, "fr": french, "es": _FRENCH}
    for language in languages.split():
        (folder / f"train.{language}").write_text("\n".join([*texts[language], ""]))
        for name in ("dev", "test"):
            (folder / f"{name}.{language}").write_text(_TEST.get(language, "otro") + "\n")
    composed = composed_settings(
        *("data.source=files", "data.corpus=mine", f"data.copies.third={share}"),
        *(f"data.{name}={folder / name}" for name in ("train", "dev", "test")),
        *overrides,
    )
    test_sets = {
        "mine": config.TestSetConfig(kind="held_out", corpus="mine", baseline=True),
        "french": config.TestSetConfig(kind="other_side", language="fr", corpus="French"),
    }
    task = TaskConfig(name="t", source_language="en", target_language="de", test_sets=test_sets)
    train = SpooledSentences(folder / "train.jsonl", ["de", "en"])
    return make_parallel_data(composed.data, task, {*languages.split()}, 0, train)


def test_copies_of_the_third_side_are_fit_and_near_no_held_out_text(tmp_path: Path) -> None:
    french = [*_FRENCH]
    french[0] = "phrase alphä ici"  # no training sentence has this character
    french[1] = "<b>phrase</b> bravo ici"  # a rule of cleaning
    french[2] = ""  # no text
    data = _parallel(tmp_path, 0.5, french=french)
    copied = [sentence.text for sentence in data.copies["third"]]
    # All that are left: the sixth, `hotel`, is a test sentence in French, but not in English.
    assert copied == [{"fr": french[number]} for number in (3, 4, 6, 7)]
    assert [sentence.text["en"] for sentence in data.train] == _ENGLISH
    assert data.counts["split"]["train"] == 8
    assert data.counts["split"]["synthetic_copies_of_third"] == 4
    held_out = NearDuplicates([sentence.text["fr"] for sentence in data.test], 0.8)
    assert held_out.has_near(french[5])
    assert not any(held_out.has_near(text["fr"]) for text in copied)
    with pytest.raises(
        ConfigError, match=r"third: 0.6 of 8 .* are 5, and 4 have a usable side in "
    ):
        _parallel(tmp_path, 0.6, french=french)


def test_a_third_language_is_needed_and_only_one(tmp_path: Path) -> None:
    needed = r"data\.copies\.third: mine, to train on must have one more language than en and de "
    with pytest.raises(ConfigError, match=rf"{needed}\(got none\)"):
        _parallel(tmp_path, 0.1, languages="en de")
    with pytest.raises(ConfigError, match=rf"{needed}\(got es, fr\)"):
        _parallel(tmp_path, 0.1, languages="en de fr es")


def test_card_and_sizes_tell_copies_from_training_sentences(tmp_path: Path) -> None:
    data = _parallel(tmp_path, 0.25, "data.copies.source=0.5")
    subsets = text_subsets(data)
    rows = [
        (row["subset"], row["language"], row["sentences"])
        for row in text_sizes(subsets)
        if row["subset"].startswith("train")
    ]
    assert rows == [
        ("train", "de", "8"),
        ("train", "en", "8"),
        ("train, copies of the source side (SYNTHETIC)", "en", "4"),
        ("train, copies of the third side (SYNTHETIC)", "fr", "2"),
    ]
    task = TaskConfig(name="t", family="translation", source_language="en", target_language="de")
    card = text_card(task, subsets, {}, {}, data.counts)
    assert "Copies are SYNTHETIC noise (data.copies)" in card
    assert "synthetic_copies_of_third" in card
    without: dict[str, Any] = {"split": {"train": 8}}
    assert "SYNTHETIC" not in text_card(task, [], {}, {}, without)
