from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import (
    load_dictionary,
    write_dictionaries,
    write_split,
)

COUNTS = {"▁a": 3, "b": 2, "▁ç": 1, "#": 1, "\u2028": 1}
SOURCE = [["▁a", "b"], [], ["▁ç"] * 40]
TARGET = [["#"], ["b", "unseen"], ["\u2028", "b"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fairseq 日本 x")  # fairseq's tasks split paths at ':'
    write_dictionaries(folder, ("en", "de"), COUNTS)
    for split in ("train", "valid"):
        write_split(folder, split, ("en", "de"), (SOURCE, TARGET))
    return folder


def _symbols(dictionary: Any, tokens: Any) -> list[str]:
    return [dictionary[int(token)] for token in tokens]


def test_fairseq_loads_the_written_text(folder: Path) -> None:
    dictionary = import_fairseq("fairseq.data").Dictionary.load(str(folder / "dict.en.txt"))
    assert dictionary.symbols == ["<s>", "<pad>", "</s>", "<unk>", *COUNTS]
    load = import_fairseq("fairseq.data.data_utils").load_indexed_dataset
    source = load(str(folder / "train.en-de.en"), dictionary, dataset_impl="mmap")
    target = load(str(folder / "train.en-de.de"), dictionary)
    known = [
        [subword if subword in COUNTS else "<unk>" for subword in sentence] for sentence in TARGET
    ]
    for loaded, expected in ((source, SOURCE), (target, known)):
        assert [_symbols(dictionary, tokens) for tokens in loaded] == [
            [*sentence, "</s>"] for sentence in expected
        ]


@pytest.mark.parametrize("vocab_size", [9, 65_499, 65_500])
def test_the_files_equal_those_of_fairseq(vocab_size: int, tmp_path: Path) -> None:
    counts = COUNTS | {f"w{index}": 1 for index in range(vocab_size - 4 - len(COUNTS))}
    write_dictionaries(tmp_path, ("en", "de"), counts)
    write_split(tmp_path, "train", ("en", "de"), (SOURCE, TARGET))
    dictionary = import_fairseq("fairseq.data").Dictionary.load(str(tmp_path / "dict.de.txt"))
    assert len(dictionary) == vocab_size
    make_builder = import_fairseq("fairseq.data.indexed_dataset").make_builder
    builder = make_builder(str(tmp_path / "expected.bin"), "mmap", vocab_size)
    for subwords in TARGET:
        ids = [dictionary.index(subword) for subword in subwords]
        builder.add_item(torch.tensor([*ids, dictionary.eos()]))
    builder.finalize(str(tmp_path / "expected.idx"))
    for ending in ("bin", "idx"):
        expected = (tmp_path / f"expected.{ending}").read_bytes()
        assert (tmp_path / f"train.en-de.de.{ending}").read_bytes() == expected


def test_the_translation_task_of_fairseq_loads_the_written_text(folder: Path) -> None:
    translation = import_fairseq("fairseq.tasks.translation")
    config = translation.TranslationConfig(
        data=str(folder), source_lang="en", target_lang="de", dataset_impl="mmap"
    )
    task = translation.TranslationTask.setup_task(config)
    task.load_dataset("valid")
    pairs = task.dataset("valid")
    assert len(pairs) == 3
    assert _symbols(task.target_dictionary, pairs[2]["target"]) == ["\u2028", "b", "</s>"]


def test_equal_input_gives_equal_bytes(folder: Path, tmp_path: Path) -> None:
    write_dictionaries(tmp_path, ("en", "de"), COUNTS)
    write_split(tmp_path, "train", ("en", "de"), (SOURCE, TARGET))
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_special_symbols_of_fairseq_are_rejected_as_subwords(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"special symbols \(got </s>\)"):
        write_dictionaries(tmp_path, ("en", "de"), {"▁a": 1, "</s>": 1})


def test_sides_of_different_length_are_rejected(folder: Path) -> None:
    with pytest.raises(DataError, match=r"train: source and target .* \(got 3 and 2\)"):
        write_split(folder, "train", ("en", "de"), (SOURCE, TARGET[:2]))


def _dictionary_file(folder: Path, content: bytes) -> Path:
    path = folder / "dict.en.txt"
    path.write_bytes(content)
    return path


def test_ids_of_a_loaded_dictionary_are_those_of_fairseq(tmp_path: Path) -> None:
    path = _dictionary_file(tmp_path, b"the 9\nA@@ 7\n& 1\nmadeupword0000 0\n")
    dictionary = load_dictionary(path)
    own = import_fairseq("fairseq.data").Dictionary()
    for symbol in ("pad", "eos", "unk"):
        assert getattr(dictionary, symbol)() == getattr(own, symbol)()
    assert dictionary.symbols == [
        *("<s>", "<pad>", "</s>", "<unk>"),
        *("the", "A@@", "&", "madeupword0000"),
    ]
    ids = [dictionary.index(subword) for subword in ("the", "nowhere", "madeupword0000")]
    assert ids == [4, 3, 7]
    assert len(dictionary) == 8  # entries that pad the vocabulary to a multiple of 8 are not added


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1\nb 2\na 3\n", r"not a fairseq dictionary \(Duplicate word .* 'a'\)"),
        (". 1\n. 3\n", r"Duplicate word found when loading Dictionary: '\.'\)"),
        ("<unk> 1\n", r"Duplicate word .* '<unk>'\)"),
        ("a 1\nb\n", r"Incorrect dictionary format"),
        ("a one\n", r"Incorrect dictionary format|invalid literal"),
        (b"\xff 1\n", r"not a fairseq dictionary \(.*utf-8"),
    ],
)
def test_a_damaged_dictionary_is_rejected(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    path = _dictionary_file(tmp_path, content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=message) as error:
        load_dictionary(path)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
