from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.data.subwords import detokenise
from pipeline.decoding.test_set import (
    PreparedSentence,
    Sentence,
    batches,
    padded,
    read_test_set,
    unknown_subwords,
)
from pipeline.decoding.tokenizer import SubwordTokenizer
from pipeline.errors import DataError


def line(index: int, **fields: Any) -> str:
    sentence = {
        "id": index, "source": "a b", "reference": "c", "source_pieces": ["▁w1", "▁new"],
        "reference_pieces": ["▁w2"], "group": "page_0", "original": f"set:{index}",
    }  # fmt: skip
    return json.dumps(sentence | fields, ensure_ascii=False)


def test_subwords_become_ids_with_eos_and_unknown_ones_become_unk(
    tmp_path: Path, dictionary: Any
) -> None:
    path = tmp_path / "set.jsonl"
    second = line(1, source="one\u2028two\r", reference=None, reference_pieces=None)
    path.write_text(f"{line(0)}\n{second}\n", encoding="utf-8", newline="\n")
    first, last = read_test_set(path)
    tokenizer = SubwordTokenizer(dictionary, dictionary, detokenise)
    sentence = first.encoded(tokenizer)
    assert sentence.source == [dictionary.index("▁w1"), dictionary.unk(), dictionary.eos()]
    assert sentence.target == [dictionary.index("▁w2"), dictionary.eos()]
    assert last.source == "one\u2028two\r"
    assert (last.group, last.original) == ("page_0", "set:1")
    assert last.encoded(tokenizer).target is None


def test_sentences_are_read_by_index_and_slice(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    lines = [line(index, source=f"ü{index}") for index in range(5)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    test_set = read_test_set(path)
    assert len(test_set) == 5
    assert [sentence.source for sentence in test_set[1:3]] == ["ü1", "ü2"]
    assert [sentence.id for sentence in test_set[3:9]] == [3, 4]
    assert (test_set[-1].id, test_set[0].id) == (4, 0)
    with pytest.raises(IndexError):
        test_set[5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line(0) + "\n" + line(2) + "\n", "line 2: id must be 1 \\(got 2\\)"),
        (line(0) + "\n{\n", "line 2: not a prepared sentence in JSON"),
        ('{"id": 0}\n', "line 1: not a prepared sentence in JSON"),
        (
            line(0).replace('"group"', '"page"') + "\n",
            "'group'.* Run python -m stages.prepare again",
        ),
        ("", "no sentences"),
    ],
)
def test_an_invalid_file_is_rejected_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(text, encoding="utf-8", newline="\n")
    with pytest.raises(DataError, match=message):
        read_test_set(path)


def test_batches_hold_sentences_of_similar_length_and_each_once() -> None:
    sentences = [Sentence(index, [5] * (1 + index * 7 % 10), None) for index in range(10)]
    plan = list(batches(sentences, 4))
    assert [len(batch) for batch in plan] == [4, 4, 2]
    lengths = [len(sentence.source) for batch in plan for sentence in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert sorted(sentence.id for batch in plan for sentence in batch) == list(range(10))


def test_batches_of_long_sentences_are_smaller() -> None:
    sentences = [Sentence(index, [5] * 128, None) for index in range(4)]
    assert [len(batch) for batch in batches(sentences, 4)] == [2, 2]
    assert [len(batch) for batch in batches(sentences[:2], 1)] == [1, 1]


def test_padding_is_at_the_right() -> None:
    assert padded([[4, 2], [2]], pad=1).tolist() == [[4, 2], [2, 1]]


def test_unknown_subwords_are_counted_per_side() -> None:
    source: Any = SimpleNamespace(symbols=["a", "b"])
    target: Any = SimpleNamespace(symbols=["c"])
    sentences = [
        PreparedSentence(0, "", None, ["a", "c", "c"], None),
        PreparedSentence(1, "", "", ["b"], ["c", "a"]),
    ]
    text = unknown_subwords(sentences, source, target)
    assert text == "2 of 4 source subwords and 1 of 2 reference subwords"
