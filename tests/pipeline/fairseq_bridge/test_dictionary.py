from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import DataError
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary


def written(folder: Path, content: bytes) -> Path:
    path = folder / "dict.en.txt"
    path.write_bytes(content)
    return path


def test_ids_are_fairseqs_with_its_symbols_first_and_padding_as_the_file_has_it(
    tmp_path: Path,
) -> None:
    dictionary = load_dictionary(written(tmp_path, b"the 9\nA@@ 7\n& 1\nmadeupword0000 0\n"))
    assert dictionary.symbols == [
        *("<s>", "<pad>", "</s>", "<unk>"),
        *("the", "A@@", "&", "madeupword0000"),
    ]
    assert [dictionary.index(one) for one in ("the", "nowhere", "madeupword0000")] == [4, 3, 7]
    assert len(dictionary) == 8  # a multiple of 8, as fairseq fills it up; no more are added


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a 1\nb 2\na 3\n", r"must be a dictionary of fairseq's: Duplicate word .* 'a'$"),
        (". 1\n. 3\n", r"Duplicate word found when loading Dictionary: '\.'$"),
        ("<unk> 1\n", r"Duplicate word .* '<unk>'$"),
        ("a 1\nb\n", r"Incorrect dictionary format"),
        ("a one\n", r"Incorrect dictionary format|invalid literal"),
        (b"\xff 1\n", r"must be a dictionary of fairseq's: .*utf-8"),
    ],
)
def test_a_faulty_dictionary_is_named(content: str | bytes, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=words) as error:
        load_dictionary(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
