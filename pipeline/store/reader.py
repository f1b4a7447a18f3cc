"""Reading a decode store: slices of its datasets, never the whole file."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.child import in_child
from pipeline.store.hypothesis import Hypothesis, TopK
from pipeline.store.schema import DATASETS, TEXT, Flag, plain
from pipeline.store.statistics import STATISTICS, TokenStatistics
from pipeline.store.structure import one_line, structure_faults

_REMEDY = "Write the store again."
# A version of a file: its path, inode, size and time of modification.
_Version = tuple[Any, ...]
# The faults of each version of a file, so that each is checked only once per process.
_faults: dict[_Version, list[str]] = {}


class Store:
    """An open decode store; a context manager.

    attributes: the root attributes as plain values. hypothesis_offset [sentence + 1]: the
    hypotheses of a sentence, best first. token_offset [hypothesis + 1]: the tokens of a hypothesis.
    flag [sentence].
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
            "members", [f"member_{index}" for index in range(self.n_member)]
        )
        self.hypothesis_offset: NDArray[np.int64] = self.read("/sentence/hypothesis_offset")
        self.token_offset: NDArray[np.int64] = self.read("/hypothesis/token_offset")
        self.flag: NDArray[np.uint8] = self.read("/sentence/flag")

    @property
    def n_sentence(self) -> int:
        """Number of sentences."""
        return len(self.hypothesis_offset) - 1

    @property
    def n_hypothesis(self) -> int:
        """Number of hypotheses of all sentences."""
        return len(self.token_offset) - 1

    @property
    def n_token(self) -> int:
        """Number of tokens of all hypotheses."""
        return int(self.token_offset[-1])

    @property
    def dump(self) -> str:
        """The stored part of the token distributions: statistics, topk or full."""
        for name, dataset in DATASETS.items():
            if dataset.dump != "statistics" and name in self._file:
                return dataset.dump
        return "statistics"

    def has(self, name: str) -> bool:
        """Whether the store has a dataset of this name."""
        return name in self._file

    def read(self, name: str, start: int | None = None, stop: int | None = None) -> NDArray[Any]:
        """Rows [start:stop] of a dataset; texts are str.

        Raises StoreError if there is no such dataset, if a row cannot be read, or if a value is
        NaN, which means that it was never written.
        """
        if name not in self._file:
            raise StoreError(f"{self.path}: dataset {name}: missing. {_REMEDY}")
        dataset = self._file[name]
        try:
            if DATASETS[name].dtype == TEXT:
                return np.asarray(dataset.asstr()[start:stop], dtype=object)
            values = np.asarray(dataset[start:stop])
        except OSError as error:
            raise StoreError(
                f"{self.path}: dataset {name}: cannot be read ({one_line(error)}). {_REMEDY}"
            ) from None
        except UnicodeDecodeError:
            row = (start or 0) + _first_not_utf8(dataset[start:stop])
            raise StoreError(
                f"{self.path}: dataset {name}, row {row}: not UTF-8. {_REMEDY}"
            ) from None
        if values.dtype.kind == "f" and np.isnan(values).any():
            row, *rest = map(int, np.argwhere(np.isnan(values))[0])
            row += start or 0
            where = self.place(name, [row, *rest])
            raise StoreError(
                f"{self.path}: dataset {name}, row {row}: must not be NaN ({where}). {_REMEDY}"
            )
        return values

    def place(self, name: str, index: Sequence[int]) -> str:
        """Describe `index` of dataset `name` in words: task, test set, sentence, ..., member.

        index: one number per axis of the dataset, or only the first ones. Hypotheses and tokens are
        counted from 0 within their sentence and hypothesis.
        """
        axes, row = DATASETS[name].axes, index[0]
        names = ("task", "test_set")
        words = [str(self.attributes[key]) for key in names if key in self.attributes]
        if axes[0] == "sentence":
            words.append(f"sentence {row}")
        else:
            is_token = axes[0] == "token"
            hypothesis = _owner(self.token_offset, row) if is_token else row
            # If a sentence has no hypothesis, the next one has the same offset.
            sentence = _owner(self.hypothesis_offset, hypothesis)
            rank = hypothesis - self.hypothesis_offset[sentence]
            words += [f"sentence {sentence}", f"hypothesis {rank}"]
            if is_token:
                words.append(f"token {row - self.token_offset[hypothesis]}")
        index_of_axis = dict(zip(axes, index, strict=False))
        if "member" in index_of_axis:
            words.append(f"member {self.members[index_of_axis['member']]}")
        return ", ".join(words)

    def sources(self) -> list[str]:
        """The source text of every sentence."""
        return [str(text) for text in self.read("/sentence/source")]

    def references(self) -> list[str | None]:
        """The reference text of every sentence; None if it has none."""
        if "/sentence/reference" not in self._file:
            return [None] * self.n_sentence
        texts = self.read("/sentence/reference")
        absent = (self.flag & Flag.NO_REFERENCE).astype(bool)
        return [
            None if is_absent else str(text) for text, is_absent in zip(texts, absent, strict=True)
        ]

    def groups(self) -> list[str] | None:
        """What each sentence comes from, such as a page or a speaker; None if not stored."""
        return self._names("/sentence/group")

    def originals(self) -> list[str] | None:
        """Name of the sentence that each one is or was made from; None if not stored."""
        return self._names("/sentence/original")

    def _names(self, name: str) -> list[str] | None:
        return [str(text) for text in self.read(name)] if name in self._file else None

    def best_texts(self) -> list[str | None]:
        """The text of the best hypothesis of every sentence; None if it has none."""
        texts = self.read("/hypothesis/text")
        bounds = zip(self.hypothesis_offset[:-1], self.hypothesis_offset[1:], strict=True)
        return [str(texts[first]) if first < last else None for first, last in bounds]

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


def read_hypotheses(store: Store) -> Iterator[list[Hypothesis]]:
    """Yield the hypotheses of every sentence as they were given to the writer.

    All statistics are in memory at once; whole distributions are read one hypothesis at a time.
    """
    token = {name: store.read(f"/token/{name}") for name in ("id", *STATISTICS)}
    text = store.read("/hypothesis/text")
    score, finished = store.read("/hypothesis/score"), store.read("/hypothesis/finished")
    member = store.read("/hypothesis/member")

    def hypothesis(row: int) -> Hypothesis:
        start, stop = store.token_offset[row], store.token_offset[row + 1]
        full, topk = None, None
        if store.has("/token/full_logprob"):
            full = store.read("/token/full_logprob", start, stop)
        if store.has("/token/topk_id"):
            names = ("topk_id", "topk_logprob", "tail_logprob")
            topk = TopK(*(store.read(f"/token/{name}", start, stop) for name in names))
        return Hypothesis(
            token["id"][start:stop],
            str(text[row]),
            float(score[row]),
            bool(finished[row]),
            TokenStatistics(**{name: token[name][start:stop] for name in STATISTICS}),
            int(member[row]),
            full,
            topk,
        )

    for first, last in zip(store.hypothesis_offset[:-1], store.hypothesis_offset[1:], strict=True):
        yield [hypothesis(row) for row in range(first, last)]


def open_store(path: str | Path) -> Store:
    """Open a store of any origin and check its structure; `validate` checks its values.

    The check runs in a forked process, because HDF5 may crash on a damaged file; the result is kept
    until the file changes. Raises StoreError naming the file and what is wrong.
    """
    path = Path(path)
    version = _version(path)
    _check([version])
    for fault in _faults[version]:
        raise StoreError(fault)
    return open_own_store(path)


def open_own_store(path: Path) -> Store:
    """Open a store that this run wrote itself, without any check.

    Raises StoreError if it cannot be opened.
    """
    file = open_file(path)
    try:
        return Store(path, file)
    except BaseException:
        file.close()
        raise


def check_stores(paths: Iterable[Path]) -> None:
    """Check several stores in one forked process before they are opened.

    Faults of a store are raised when it is opened.
    """
    _check([_version(path) for path in paths])


def opening_faults(path: Path) -> list[str]:
    """Faults that keep a file from being opened; HDF5 may crash this process on a damaged file."""
    try:
        with open_file(path) as file:
            faults = structure_faults(file)
            if not faults:
                Store(path, file)
    except StoreError as error:
        return [str(error)]
    return [f"{path}: {fault}" for fault in faults]


def is_store(path: Path) -> bool:
    """Whether a file, complete or damaged, is a decode store, judging by its name or content."""
    return path.suffix == ".h5" or bool(h5py.is_hdf5(path))


def open_file(path: Path) -> h5py.File:
    """Open an HDF5 file.

    Raises StoreError if it does not exist or is not complete, or if the file system has no locks.
    """
    try:
        if not path.is_file():
            raise StoreError(f"{path}: no such file. Give the path of a decode store.")
        return h5py.File(path, "r")
    except OSError as error:
        if error.errno == errno.ENOLCK:  # stages set the variable themselves
            raise StoreError(
                f"{path}: cannot be opened, since its file system has no locks. Set the "
                "environment variable HDF5_USE_FILE_LOCKING=FALSE before Python starts."
            ) from None
        raise StoreError(
            f"{path}: not a complete HDF5 file ({one_line(error)}). {_REMEDY}"
        ) from None


def _check(versions: Iterable[_Version]) -> None:
    unknown = [version for version in versions if version not in _faults]
    faults = in_child(opening_faults, [path for path, *_ in unknown])
    _faults.update(zip(unknown, faults, strict=True))


def _version(path: Path) -> _Version:
    try:
        status = path.stat()
    except OSError:
        return (path,)
    return path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _owner(offset: NDArray[np.int64], row: int) -> int:
    """The item to which `row` belongs, by the offsets [item + 1] of the items' rows."""
    return int(np.searchsorted(offset, row, side="right")) - 1


def _first_not_utf8(texts: NDArray[Any]) -> int:
    return next(
        row for row, text in enumerate(texts) if "\ufffd" in text.decode("utf-8", "replace")
    )
