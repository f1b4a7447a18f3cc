from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.report.page.browse import read_pieces


def test_ids_are_those_of_fairseq(tmp_path: Path) -> None:
    path = tmp_path / "dict.de.txt"
    path.write_text("en 9\n\u2028 7\n▁d 3 #fairseq:overwrite\n", encoding="utf-8", newline="\n")
    assert read_pieces(path, 7) == ["<s>", "<pad>", "</s>", "<unk>", "en", "\u2028", "▁d"]


def test_a_dictionary_of_another_store_or_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dict.de.txt"
    with pytest.raises(DataError, match=r"dict\.de\.txt must exist"):
        read_pieces(path, 7)
    path.write_text("en 9\n", encoding="utf-8")
    with pytest.raises(DataError, match="must list the 3 units of the decode store, got 1"):
        read_pieces(path, 7)
