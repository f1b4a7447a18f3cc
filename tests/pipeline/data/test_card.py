from __future__ import annotations

import re

from pipeline.data.card import TextSubset, text_card
from pipeline.data.text.corpus import Corpus
from pipeline.data.text.test_sets import Row
from pipeline.run import settings as config
from pipeline.run.settings import TaskConfig

_CORPUS = Corpus("Mine", "MIT", "news", {"p": {"version": "1", "sha256": "x"}}, frozenset(), list)
_TASK = TaskConfig(
    name="t",
    family="translation",
    source_language="en",
    target_language="de",
    test_sets={
        "PRM": config.TestSetConfig(kind="permuted", corpus="mine, permuted", roles=["R", "S"]),
        "L-DE": config.TestSetConfig(kind="other_side", language="de", corpus="mine, German"),
    },
)
_ROWS = [
    Row(number, f"a | b < {number} \\ " + "x" * 200, None, [], None, f"page {number // 2}", None)
    for number in range(5)
]


def _card() -> str:
    """Return the card without the spaces that align table columns."""
    card = text_card(
        _TASK,
        [TextSubset(_CORPUS, "train", 7, {"de": 2.04, "en": 3})],
        {"PRM": _ROWS, "L-DE": [Row(0, "Tür", "Tür", [], [], None, None)]},
        {"LTO": "there is no folder"},
        {
            "align_train": {"sentences": 9},
            "clean_train": {"read": 9, "dropped_word_count": 2},
            "set_MED": {"read": 4},
        },
    )
    return re.sub(" +", " ", card)


def test_sizes_have_the_layout_of_the_paper() -> None:
    assert "| Dataset | Subset | LNG | Sentences | Words / Sent. | Domain |" in _card()
    assert "| Mine | train | de | 7 | 2.0 | news |" in _card()
    assert "| Mine | MIT | news | p 1 |" in _card()


def test_synthetic_sets_are_marked_and_absent_sets_have_a_reason() -> None:
    assert "| PRM | R | mine, permuted | SYNTHETIC: " in _card()
    assert "| L-DE | none | mine, German | real sentences, de as source and de as " in _card()
    assert "LTO is absent: there is no folder." in _card()


def test_sizes_of_test_sets_are_sentences_and_groups() -> None:
    table = _card().partition("## Test sets")[2].partition("##")[0]
    assert "| Used in | Sentences | Groups |" in table
    assert "| search | 5 | 3 |" in table
    assert "| search | 1 | not known |" in table


def test_counts_have_one_column_per_text() -> None:
    lines = _card().split("\n")
    assert "| Count | train | MED |" in lines
    assert "| read | 9 | 4 |" in lines
    assert "| dropped_word_count | 2 | |" in lines


def test_three_samples_per_set_are_escaped_for_the_table() -> None:
    samples = _card().partition("### PRM")[2].partition("###")[0]
    rows = [line for line in samples.split("\n") if line.startswith("| a ")]
    assert len(rows) == 3
    assert rows[0].startswith("| a \\| b &lt; 0 \\\\ xxx")
    assert rows[0].endswith("x… | (none) |")
