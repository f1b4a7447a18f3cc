from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.decoding.test_set import read_test_set
from pipeline.errors import DataError


def line(place: int, **fields: Any) -> str:
    sentence = {
        "id": place, "source": "a b", "reference": "c", "source_pieces": ["▁w1", "▁new"],
        "reference_pieces": ["▁w2"],
    }  # fmt: skip
    return json.dumps(sentence | fields, ensure_ascii=False)


def test_units_become_ids_with_eos_and_an_unknown_unit_is_unk(
    tmp_path: Path, dictionary: Any
) -> None:
    path = tmp_path / "set.jsonl"
    second = line(1, source="one\u2028two\r", reference=None, reference_pieces=None)
    path.write_text(f"{line(0)}\n{second}\n", encoding="utf-8", newline="\n")
    first, last = read_test_set(path)
    sentence = first.encoded(dictionary, dictionary)
    assert sentence.source == [dictionary.index("▁w1"), dictionary.unk(), dictionary.eos()]
    assert sentence.target == [dictionary.index("▁w2"), dictionary.eos()]
    assert last.source == "one\u2028two\r"
    assert last.encoded(dictionary, dictionary).target is None


def test_sentences_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    lines = [line(place, source=f"ü{place}") for place in range(5)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    test_set = read_test_set(path)
    assert len(test_set) == 5
    assert [one.source for one in test_set[1:3]] == ["ü1", "ü2"]
    assert [one.id for one in test_set[3:9]] == [3, 4]
    assert (test_set[-1].id, test_set[0].id) == (4, 0)
    with pytest.raises(IndexError):
        test_set[5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line(0) + "\n" + line(2) + "\n", "line 2: id must be 1, got 2"),
        (line(0) + "\n{\n", "line 2 must be a sentence as JSON"),
        ('{"id": 0}\n', "line 1 must be a sentence as JSON"),
        ("", "must hold at least one sentence"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(text, encoding="utf-8", newline="\n")
    with pytest.raises(DataError, match=message):
        read_test_set(path)
