from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.subword_learning import learn_subwords
from pipeline.data.text.corpus import AlignedSentence
from pipeline.data.text.test_sets import (
    HeldOutText,
    languages_needed,
    make_set,
    parallel_rows,
    why_absent,
    write_rows,
)
from pipeline.errors import ConfigError, DataError
from pipeline.run import settings as config
from pipeline.run.settings import TaskConfig
from tests.prepared_rows import read_rows

SENTENCES = [
    AlignedSentence("a", {"en": "Open the door.", "de": "Tür öffnen.", "fr": "Ouvrez la porte."}),
    AlignedSentence("a", {"en": "no no no.", "de": "nein nein.", "fr": "non."}),
    AlignedSentence("b", {"en": "Close the box.", "de": "Kiste\u2028schließen.", "fr": "Fermez."}),
]
TASK = TaskConfig(name="t", source_language="en", target_language="de")
_UNITS = learn_subwords([side for one in SENTENCES for side in one.text.values()] * 3, 64)
_UNITS_OF = dict.fromkeys(("en", "de", "fr"), _UNITS)
HELD_OUT = HeldOutText(SENTENCES, TASK, _UNITS_OF, seed=0)


def test_held_out_rows_are_source_and_reference_in_order() -> None:
    rows = make_set("newstest14", config.TestSetConfig(kind="held_out"), HELD_OUT)
    assert [row.id for row in rows] == [0, 1, 2]
    assert rows[0].source == "Open the door."
    assert rows[0].reference == "Tür öffnen."
    assert rows[0].source_pieces == _UNITS.subwords("Open the door.")
    assert rows[0].reference_pieces == _UNITS.subwords("Tür öffnen.")


def test_other_side_takes_the_source_from_another_language() -> None:
    rows = make_set("L-FR", config.TestSetConfig(kind="other_side", language="fr"), HELD_OUT)
    assert [row.source for row in rows] == ["Ouvrez la porte.", "non.", "Fermez."]
    assert rows[0].reference == "Tür öffnen."


def test_permuted_leaves_out_what_has_no_other_order_and_numbers_on() -> None:
    rows = make_set("PRM", config.TestSetConfig(kind="permuted"), HELD_OUT)
    originals = [_UNITS.subwords(one.text["en"]) for one in SENTENCES]
    permutable = [one for one in originals if len(set(one[:-1])) > 1]
    assert [row.id for row in rows] == list(range(len(permutable)))
    for row, original in zip(rows, permutable, strict=True):
        assert row.source_pieces != original
        assert sorted(row.source_pieces) == sorted(original)
        assert row.reference is row.reference_pieces is None
        assert row.source.endswith(".")


def test_other_side_may_take_its_reference_from_another_language_too() -> None:
    settings = config.TestSetConfig(kind="other_side", language="fr", reference_language="en")
    rows = make_set("L-FREN", settings, HELD_OUT)
    assert (rows[0].source, rows[0].reference) == ("Ouvrez la porte.", "Open the door.")
    assert rows[0].reference_pieces == _UNITS.subwords("Open the door.")


def test_typos_keep_the_reference_and_truncation_does_not() -> None:
    typos = make_set("TYPO", config.TestSetConfig(kind="typos"), HELD_OUT)
    cut = make_set("CUT", config.TestSetConfig(kind="truncated"), HELD_OUT)
    for row, short, sentence in zip(typos, cut, SENTENCES, strict=True):
        assert row.source != sentence.text["en"]
        assert row.source_pieces == _UNITS.subwords(row.source)
        assert row.reference == sentence.text["de"]
        assert sentence.text["en"].startswith(short.source)
        assert short.reference is short.reference_pieces is None


def test_sentence_without_a_reference_has_none() -> None:
    spoken = HeldOutText([AlignedSentence("a", {"en": "so there"})], TASK, _UNITS_OF, seed=0)
    (row,) = make_set("LTC", config.TestSetConfig(kind="spoken"), spoken)
    assert row.reference is row.reference_pieces is None


def test_set_in_a_language_that_the_text_lacks_is_absent_with_a_reason() -> None:
    settings = config.TestSetConfig(kind="other_side", language="fr")
    assert why_absent(settings, frozenset({"en", "fr"}), "mine") is None
    assert why_absent(settings, frozenset({"en", "de"}), "mine") == "mine has no side in fr"


def test_set_without_a_sentence_is_refused() -> None:
    none_left = HeldOutText([AlignedSentence("a", {"en": ".", "de": "y"})], TASK, _UNITS_OF, seed=0)
    with pytest.raises(DataError, match=r"test set PRM \(permuted\) must hold a sentence"):
        make_set("PRM", config.TestSetConfig(kind="permuted"), none_left)


def test_languages_of_a_task() -> None:
    sets = {"L-FR": config.TestSetConfig(kind="other_side", language="fr")}
    task = TaskConfig(name="t", source_language="en", target_language="de", test_sets=sets)
    assert languages_needed(task) == {"en", "de", "fr"}
    sets["L-FR"].language = None
    with pytest.raises(ConfigError, match=r"task\.test_sets\.L-FR\.language must be given"):
        languages_needed(task)


def test_rows_survive_a_file_whatever_the_white_space_in_them(tmp_path: Path) -> None:
    rows = list(parallel_rows(HELD_OUT, "en", "de"))
    write_rows(tmp_path / "new" / "set.jsonl", rows)
    assert read_rows(tmp_path / "new" / "set.jsonl") == rows
