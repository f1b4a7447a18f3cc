"""Reading a decode store: slices of its datasets, never the whole file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.child import in_child
from pipeline.store.schema import DATASETS, TEXT, Flag, plain
from pipeline.store.structure import one_line, structure_faults


def place_of(store: Store, name: str, index: Sequence[int]) -> str:
    """Task, test set, sentence, hypothesis, token and member of dataset `name` at `index`.

    index: one number an axis, or the first of them. Hypotheses and tokens count from 0 within
    their sentence and hypothesis; what does not apply is left out.
    """
    axes = DATASETS[name].axes
    words = [str(store.attributes[key]) for key in ("task", "test_set") if key in store.attributes]
    row = index[0]
    if axes[0] == "token":
        hypothesis = int(np.searchsorted(store.token_offset, row, side="right")) - 1
        token = f"token {row - store.token_offset[hypothesis]}"
        words += [*_hypothesis(store, hypothesis), token]
    elif axes[0] == "hypothesis":
        words += _hypothesis(store, row)
    else:
        words.append(f"sentence {row}")
    named = dict(zip(axes, index, strict=False))
    if "member" in named:
        words.append(f"member {store.members[named['member']]}")
    return ", ".join(words)


def _hypothesis(store: Store, row: int) -> list[str]:
    """A sentence may have no hypothesis: of those that begin at one row, the last has it."""
    sentence = int(np.searchsorted(store.hypothesis_offset, row, side="right")) - 1
    return [f"sentence {sentence}", f"hypothesis {row - store.hypothesis_offset[sentence]}"]


# A file as it is now: its path, and what differs between files of one name.
_Version = tuple[Any, ...]
# What keeps a file from being opened: each is looked at once, until it is another.
_faults: dict[_Version, list[str]] = {}


class Store:
    """An open decode store; a context manager.

    attributes: the root attributes as plain values; hypothesis_offset [sentence + 1]: hypotheses of
    a sentence, best first; token_offset [hypothesis + 1]: tokens of a hypothesis; flag [sentence].
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._file = file
        self.attributes = {name: plain(value) for name, value in file.attrs.items()}
        self.n_member = int(self.attributes["n_member"])
        self.vocab_size = int(self.attributes["vocab_size"])
        self.regime = str(self.attributes["regime"])
        self.combination = str(self.attributes["combination"])
        self.members: list[str] = self.attributes.get(
            "members", [f"member_{place}" for place in range(self.n_member)]
        )
        self.hypothesis_offset: NDArray[np.int64] = self.read("/sentence/hypothesis_offset")
        self.token_offset: NDArray[np.int64] = self.read("/hypothesis/token_offset")
        self.flag: NDArray[np.uint8] = self.read("/sentence/flag")

    @property
    def n_sentence(self) -> int:
        """How many sentences the store lists."""
        return len(self.hypothesis_offset) - 1

    @property
    def n_hypothesis(self) -> int:
        """How many hypotheses all sentences have together."""
        return len(self.token_offset) - 1

    @property
    def n_token(self) -> int:
        """How many tokens all hypotheses have together."""
        return int(self.token_offset[-1])

    @property
    def dump(self) -> str:
        """What it keeps of the token distributions: statistics, topk or full."""
        for name, dataset in DATASETS.items():
            if dataset.dump != "statistics" and name in self._file:
                return dataset.dump
        return "statistics"

    def has(self, name: str) -> bool:
        """Whether the store has a dataset of this name."""
        return name in self._file

    def read(self, name: str, start: int | None = None, stop: int | None = None) -> NDArray[Any]:
        """Rows [start:stop] of a dataset, texts as str.

        Raises StoreError if the store has no such one, if a row cannot be read, and if a row was
        never written (NaN).
        """
        if name not in self._file:
            raise StoreError(f"{self.path}: dataset {name} must be there, got none")
        dataset = self._file[name]
        try:
            if DATASETS[name].dtype == TEXT:
                return np.asarray(dataset.asstr()[start:stop], dtype=object)
            values = np.asarray(dataset[start:stop])
        except OSError as error:
            raise StoreError(
                f"{self.path}: dataset {name} must be readable: {one_line(error)}"
            ) from None
        except UnicodeDecodeError:
            row = (start or 0) + _first_not_utf8(dataset[start:stop])
            raise StoreError(f"{self.path}: dataset {name}, row {row}, must be utf-8") from None
        if values.dtype.kind == "f" and np.isnan(values).any():
            row, *rest = map(int, np.argwhere(np.isnan(values))[0])
            row += start or 0
            raise StoreError(
                f"{self.path}: dataset {name}, row {row}, must not be NaN "
                f"({place_of(self, name, [row, *rest])})"
            )
        return values

    def sources(self) -> list[str]:
        """The source text of every sentence."""
        return [str(one) for one in self.read("/sentence/source")]

    def references(self) -> list[str | None]:
        """The reference text of every sentence; None where it has none."""
        if "/sentence/reference" not in self._file:
            return [None] * self.n_sentence
        texts = self.read("/sentence/reference")
        absent = (self.flag & Flag.NO_REFERENCE).astype(bool)
        return [None if gone else str(one) for one, gone in zip(texts, absent, strict=True)]

    def best_texts(self) -> list[str | None]:
        """The text of the best hypothesis of every sentence; None where it has none."""
        texts = self.read("/hypothesis/text")
        first, after = self.hypothesis_offset[:-1], self.hypothesis_offset[1:]
        return [str(texts[a]) if a < b else None for a, b in zip(first, after, strict=True)]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_store(path: str | Path) -> Store:
    """Open a store whose structure is right; values are the business of `validate`.

    Raises StoreError naming the file, the dataset or attribute and the rule: one sentence too for a
    file that crashes the HDF5 library.
    """
    path = Path(path)
    version = _version(path)
    _look_at([version])
    for fault in _faults[version]:
        raise StoreError(fault)
    file = open_file(path)
    try:
        return Store(path, file)
    except BaseException:
        file.close()
        raise


def opening_faults(path: Path) -> list[str]:
    """What keeps a file from being opened, found in this process, which HDF5 may crash."""
    try:
        with open_file(path) as file:
            faults = structure_faults(file)
            if not faults:
                Store(path, file)
    except StoreError as error:
        return [str(error)]
    return [f"{path}: {fault}" for fault in faults]


def look_ahead(paths: Iterable[Path]) -> None:
    """Look at stores that are to be opened in one process for all, where each would take its own.

    What is wrong with one is raised where it is opened.
    """
    _look_at([_version(path) for path in paths])


def _look_at(versions: Iterable[_Version]) -> None:
    unknown = [one for one in versions if one not in _faults]
    found = in_child(opening_faults, [path for path, *_ in unknown])
    _faults.update(zip(unknown, found, strict=True))


def _version(path: Path) -> _Version:
    try:
        found = path.stat()
    except OSError:
        return (path,)
    return path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def is_store(path: Path) -> bool:
    """Whether a file is to be read as a decode store, whole or damaged, by its name or content."""
    return path.suffix == ".h5" or bool(h5py.is_hdf5(path))


def open_file(path: Path) -> h5py.File:
    """The HDF5 file at a path; StoreError where there is none, or one that is cut or foreign."""
    try:
        if not path.is_file():
            raise StoreError(f"{path} must be a decode store, got no file")
        return h5py.File(path, "r")
    except OSError as error:
        raise StoreError(f"{path} must be a whole HDF5 file: {one_line(error)}") from None


def _first_not_utf8(texts: NDArray[Any]) -> int:
    return next(row for row, one in enumerate(texts) if "\ufffd" in one.decode("utf-8", "replace"))
