from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from pipeline.data.subword_learning import learn_subwords
from pipeline.data.subwords import SentencePieceModel
from pipeline.decoding.scoring import Draft, Given, drafts_of
from pipeline.decoding.test_set import PreparedSentence, Sentence, token_ids
from pipeline.errors import DataError, StoreError

LINES = ["a cab", " ", "bad bead", "", "x a"]
TEST_SET = [PreparedSentence(place, "source", None, [], None) for place in range(len(LINES))]


@pytest.fixture(scope="module")
def units() -> SentencePieceModel:
    return learn_subwords(["a cab", "bad bead", "dab a bed"] * 3, 16)


class Pieces:
    """A dictionary of a sub-word model's pieces."""

    def __init__(self, units: SentencePieceModel) -> None:
        self.symbols = ["<s>", "<pad>", "</s>", "<unk>", *units.vocabulary()]

    def index(self, sym: str) -> int:
        return self.symbols.index(sym) if sym in self.symbols else 3

    def eos(self) -> int:
        return 2


def drafts(path: Path, units: SentencePieceModel | None, places: list[int], decode: Any) -> Any:
    dictionary: Any = None if units is None else Pieces(units)
    find = drafts_of(Given(path, TEST_SET, units), dictionary, 34)
    return find([Sentence(place, [4, 2], None) for place in places], "prex", decode)


@pytest.mark.parametrize("name", ["texts", "texts.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_line_is_a_hypothesis_in_any_order_and_a_blank_one_is_none(
    name: str, end: str, tmp_path: Path, units: SentencePieceModel, decode_config: Any
) -> None:
    path = tmp_path / name
    content = end.join([*LINES, ""]).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    found = drafts(path, units, [4, 0, 1, 3, 2], decode_config())
    dictionary = Pieces(units)
    pieces = {place: units.subwords(LINES[place]) for place in (0, 2, 4)}
    expected = {place: [Draft(token_ids(one, dictionary), True)] for place, one in pieces.items()}
    assert found == [expected[4], expected[0], [], [], expected[2]]
    assert 3 in expected[4][0].token_id  # "x" is in no piece
    assert "".join(dictionary.symbols[one] for one in expected[2][0].token_id[:-1]) == "▁bad▁bead"


@pytest.mark.parametrize("lines", [LINES[:-1], [*LINES, "more"], []])
def test_another_number_of_lines_is_refused(
    lines: list[str], tmp_path: Path, units: SentencePieceModel, decode_config: Any
) -> None:
    path = tmp_path / "texts"
    path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    with pytest.raises(
        DataError, match=rf"texts must have a line for each of the 5 sentences, got {len(lines)}"
    ):
        drafts(path, units, [0], decode_config())


def test_text_that_is_not_utf8_is_refused_with_its_line(
    tmp_path: Path, units: SentencePieceModel, decode_config: Any
) -> None:
    path = tmp_path / "texts"
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match=r"texts, line 2: not UTF-8 \(byte 0xff\)"):
        drafts(path, units, [0], decode_config())


def test_a_damaged_store_is_refused(tmp_path: Path, decode_config: Any) -> None:
    path = tmp_path / "store.h5"
    path.touch()
    with pytest.raises(StoreError, match=r"store\.h5 must be a whole HDF5 file"):
        drafts(path, None, [0], decode_config())
