from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.report.page.browse import read_subwords


def test_subwords_have_the_ids_of_fairseq(tmp_path: Path) -> None:
    path = tmp_path / "dict.de.txt"
    path.write_text("en 9\n\u2028 7\n▁d 3 #fairseq:overwrite\n", encoding="utf-8", newline="\n")
    assert read_subwords(path, 7) == ["<s>", "<pad>", "</s>", "<unk>", "en", "\u2028", "▁d"]


def test_a_missing_or_wrong_dictionary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dict.de.txt"
    with pytest.raises(DataError, match=r"dict\.de\.txt: no such file"):
        read_subwords(path, 7)
    path.write_text("en 9\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"must list the 3 subwords of the decode store \(got 1\)"):
        read_subwords(path, 7)
