from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split

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


def _words(dictionary: Any, tokens: Any) -> list[str]:
    return [dictionary[int(token)] for token in tokens]


def test_fairseqs_own_loader_reads_it(folder: Path) -> None:
    dictionary = import_fairseq("fairseq.data").Dictionary.load(str(folder / "dict.en.txt"))
    assert dictionary.symbols == ["<s>", "<pad>", "</s>", "<unk>", *COUNTS]
    load = import_fairseq("fairseq.data.data_utils").load_indexed_dataset
    source = load(str(folder / "train.en-de.en"), dictionary, dataset_impl="mmap")
    target = load(str(folder / "train.en-de.de"), dictionary)
    assert [_words(dictionary, one) for one in source] == [[*one, "</s>"] for one in SOURCE]
    known = [[piece if piece in COUNTS else "<unk>" for piece in one] for one in TARGET]
    assert [_words(dictionary, one) for one in target] == [[*one, "</s>"] for one in known]


def test_fairseqs_translation_task_loads_it(folder: Path) -> None:
    translation = import_fairseq("fairseq.tasks.translation")
    config = translation.TranslationConfig(
        data=str(folder), source_lang="en", target_lang="de", dataset_impl="mmap"
    )
    task = translation.TranslationTask.setup_task(config)
    task.load_dataset("valid")
    pairs = task.dataset("valid")
    assert len(pairs) == 3
    assert _words(task.target_dictionary, pairs[2]["target"]) == ["\u2028", "b", "</s>"]


def test_same_input_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_dictionaries(tmp_path, ("en", "de"), COUNTS)
    write_split(tmp_path, "train", ("en", "de"), (SOURCE, TARGET))
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (folder / path.name).read_bytes(), path.name


def test_symbols_of_fairseq_are_refused_as_units(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"fairseq's symbols, got </s>"):
        write_dictionaries(tmp_path, ("en", "de"), {"▁a": 1, "</s>": 1})


def test_sides_of_unequal_length_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match=r"train must have equally many .* got 3 and 2"):
        write_split(folder, "train", ("en", "de"), (SOURCE, TARGET[:2]))


def test_importing_fairseq_leaves_the_root_logger_alone() -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    import_fairseq("fairseq.tasks.text_to_speech")
    assert (list(root.handlers), root.level) == before
