from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipeline.data.task_subwords import learn_subwords
from pipeline.data.text.corpus import AlignedSentence, Corpus
from pipeline.data.text.test_sets import (
    HeldOutText,
    cut_short,
    languages_needed,
    make_rows,
    misspell,
    permute,
    reason_absent,
    task_rows,
    write_rows,
)
from pipeline.run import settings as config
from pipeline.run.settings import TaskConfig
from tests.prepared_rows import read_rows

SENTENCES = [
    AlignedSentence("a", {"en": "Open the door.", "de": "Tür öffnen.", "fr": "Ouvrez la porte."}),
    AlignedSentence("a", {"en": "no no no.", "de": "nein nein.", "fr": "non."}),
    AlignedSentence("b", {"en": "Close the box.", "de": "Kiste\u2028schließen.", "fr": "Fermez."}),
]
TASK = TaskConfig(name="t", source_language="en", target_language="de")
_UNITS = learn_subwords([side for sentence in SENTENCES for side in sentence.text.values()] * 3, 64)
_UNITS_OF = dict.fromkeys(("en", "de", "fr"), _UNITS)
HELD_OUT = HeldOutText("Help", SENTENCES, True, TASK, _UNITS_OF, seed=0)


def test_held_out_rows_have_source_and_reference_in_order() -> None:
    rows = make_rows(config.TestSetConfig(kind="held_out"), HELD_OUT)
    assert [row.id for row in rows] == [0, 1, 2]
    assert rows[0].source == "Open the door."
    assert rows[0].reference == "Tür öffnen."
    assert rows[0].source_pieces == _UNITS.subwords("Open the door.")
    assert rows[0].reference_pieces == _UNITS.subwords("Tür öffnen.")


def test_other_side_takes_the_source_from_another_language() -> None:
    rows = make_rows(config.TestSetConfig(kind="other_side", language="fr"), HELD_OUT)
    assert [row.source for row in rows] == ["Ouvrez la porte.", "non.", "Fermez."]
    assert rows[0].reference == "Tür öffnen."


def test_permuted_omits_sentences_without_another_order_and_has_no_gaps_in_ids() -> None:
    rows = make_rows(config.TestSetConfig(kind="permuted"), HELD_OUT)
    originals = [_UNITS.subwords(sentence.text["en"]) for sentence in SENTENCES]
    permutable = [subwords for subwords in originals if len(set(subwords[:-1])) > 1]
    assert [row.id for row in rows] == list(range(len(permutable)))
    for row, original in zip(rows, permutable, strict=True):
        assert row.source_pieces != original
        assert sorted(row.source_pieces) == sorted(original)
        assert row.reference is row.reference_pieces is None
        assert row.source.endswith(".")


def test_other_side_can_take_its_reference_from_another_language() -> None:
    settings = config.TestSetConfig(kind="other_side", language="fr", reference_language="en")
    rows = make_rows(settings, HELD_OUT)
    assert (rows[0].source, rows[0].reference) == ("Ouvrez la porte.", "Open the door.")
    assert rows[0].reference_pieces == _UNITS.subwords("Open the door.")


def test_typos_keep_the_reference_and_truncation_does_not() -> None:
    typos = make_rows(config.TestSetConfig(kind="typos"), HELD_OUT)
    cut = make_rows(config.TestSetConfig(kind="truncated"), HELD_OUT)
    for row, short, sentence in zip(typos, cut, SENTENCES, strict=True):
        assert row.source != sentence.text["en"]
        assert row.source_pieces == _UNITS.subwords(row.source)
        assert row.reference == sentence.text["de"]
        assert sentence.text["en"].startswith(short.source)
        assert short.reference is short.reference_pieces is None


def test_groups_are_documents_and_null_if_pages_are_blocks_of_lines() -> None:
    assert [row.group for row in task_rows(None, HELD_OUT)] == ["Help:a", "Help:a", "Help:b"]
    blocks = replace(HELD_OUT, has_documents=False)
    for kind in ("held_out", "permuted", "typos", "truncated"):
        rows = make_rows(config.TestSetConfig(kind=kind), blocks)
        assert {row.group for row in rows} == {None}


def test_missing_reference_stays_missing() -> None:
    sentences = [AlignedSentence("a", {"en": "so there"})]
    spoken = HeldOutText("Help", sentences, True, TASK, _UNITS_OF, seed=0)
    (row,) = make_rows(config.TestSetConfig(kind="spoken"), spoken)
    assert row.reference is row.reference_pieces is None


def test_set_in_a_missing_language_is_absent_with_a_reason() -> None:
    settings = config.TestSetConfig(kind="other_side", language="fr")
    corpus = Corpus("mine", "", "", {}, frozenset({"en", "de"}), list)  # type: ignore[arg-type]
    assert reason_absent(settings, corpus) == "mine has no side in fr"
    assert reason_absent(settings, replace(corpus, languages=frozenset({"en", "fr"}))) is None
    rare = replace(corpus, too_rare={"fr": "fr is in 1 of 5 units"})
    assert reason_absent(settings, rare) == "mine: fr is in 1 of 5 units"


def test_set_without_a_usable_sentence_is_empty() -> None:
    sentences = [AlignedSentence("a", {"en": ".", "de": "y"})]
    none_left = HeldOutText("Help", sentences, True, TASK, _UNITS_OF, seed=0)
    assert make_rows(config.TestSetConfig(kind="permuted"), none_left) == []


def test_languages_of_a_task_include_those_of_its_test_sets() -> None:
    sets = {"L-FR": config.TestSetConfig(kind="other_side", language="fr")}
    task = TaskConfig(name="t", source_language="en", target_language="de", test_sets=sets)
    assert languages_needed(task) == {"en", "de", "fr"}


def test_rows_with_any_white_space_survive_a_file(tmp_path: Path) -> None:
    rows = list(task_rows(None, HELD_OUT))
    write_rows(tmp_path / "new" / "set.jsonl", rows)
    assert read_rows(tmp_path / "new" / "set.jsonl") == rows


_PIECES = st.lists(st.sampled_from(["▁a", "▁b", "c", "d", ",", ".", "▁?"]), max_size=12)


@given(_PIECES, st.integers(0, 5), st.integers(0, 5))
def test_permutation_keeps_subwords_and_the_end(
    subwords: list[str], seed: int, sentence: int
) -> None:
    permuted = permute(subwords, seed, sentence)
    assert permute(subwords, seed, sentence) == permuted
    end = len(subwords)
    while end and subwords[end - 1] in (".", "▁?"):
        end -= 1
    if permuted is None:
        assert len(set(subwords[:end])) < 2
        return
    assert permuted != subwords
    assert Counter(permuted) == Counter(subwords)
    assert permuted[end:] == subwords[end:]


def test_permutation_is_the_same_on_every_machine() -> None:
    subwords = ["▁Open", "▁the", "▁red", "▁door", "."]
    assert permute(subwords, 0, 0) == ["▁the", "▁door", "▁red", "▁Open", "."]


def test_seed_and_sentence_change_the_order() -> None:
    subwords = [f"▁{number}" for number in range(20)]
    orders = {tuple(permute(subwords, *key) or ()) for key in ((0, 0), (1, 0), (0, 1))}
    assert len(orders) == 3


def test_sentence_without_another_order_has_none() -> None:
    assert permute(["▁no", "▁no", "."], 0, 0) is None
    assert permute(["▁one", "."], 0, 0) is None
    assert permute([], 0, 0) is None


@given(st.text(alphabet="ab 1.é", max_size=30), st.integers(0, 3), st.integers(0, 3))
def test_typing_errors_keep_words_and_are_seeded(text: str, seed: int, sentence: int) -> None:
    misspelt = misspell(text, seed, sentence)
    assert misspell(text, seed, sentence) == misspelt
    if not any(character.isalpha() for character in text):
        assert misspelt is None
        return
    assert misspelt is not None
    assert misspelt != text
    assert misspelt.strip()
    others = [
        [character for character in each if not character.isalpha()] for each in (text, misspelt)
    ]
    assert others[0] == others[1]


def test_one_letter_in_ten_has_a_typing_error() -> None:
    text = "the quick brown fox jumps over the lazy dog and on and on"
    assert misspell(text, 0, 0) == "the qucik brown fo jumps over the laazy odg and on and on"
    assert len({misspell(text, *key) for key in ((0, 0), (1, 0), (0, 1))}) == 3


@given(st.lists(st.sampled_from(["a", "bc", "d."]), max_size=12), st.integers(0, 3))
def test_truncation_keeps_the_beginning(words: list[str], seed: int) -> None:
    cut = cut_short(" ".join(words), seed, 0)
    assert cut == cut_short(" ".join(words), seed, 0)
    if len(words) < 2:
        assert cut is None
        return
    assert cut is not None
    kept = cut.split()
    assert kept == words[: len(kept)]
    assert 1 <= len(kept) < len(words)
    assert round(0.25 * len(words)) <= len(kept) <= max(1, round(0.75 * len(words)))
