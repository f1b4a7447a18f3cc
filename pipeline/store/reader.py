"""Reading a decode store: slices of its datasets, never the whole file."""

from __future__ import annotations

from math import ceil, prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.attributes import CONSTANTS, attribute_faults, plain
from pipeline.store.place import place_of
from pipeline.store.schema import DATASETS, HALF_PRECISION, OPTIONAL, TEXT, Dataset, Flag

# Of a type of fixed length: it takes all of it in memory, row for row.
_MOST_TEXT_BYTES = 2**16


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
                f"{self.path}: dataset {name} must be readable: {_one_line(error)}"
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

    Raises StoreError naming the file, the dataset or attribute and the rule.
    """
    path = Path(path)
    file = open_file(path)
    try:
        for fault in structure_faults(file):
            raise StoreError(f"{path}: {fault}")
        return Store(path, file)
    except BaseException:
        file.close()
        raise


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
        raise StoreError(f"{path} must be a whole HDF5 file: {_one_line(error)}") from None


def structure_faults(file: h5py.File) -> list[str]:
    """What is wrong with attributes, datasets, types, shapes and offsets, one clause each."""
    try:
        attributes = {name: plain(value) for name, value in file.attrs.items()}
        return (
            _constant_faults(attributes)
            or attribute_faults(attributes)
            or _place_faults(file)
            or _shape_faults(file, attributes)
            or [
                *_offset_faults(file, "/sentence/hypothesis_offset", "/hypothesis/text", 0),
                *_offset_faults(file, "/hypothesis/token_offset", "/token/id", 1),
            ]
        )
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        # What h5py raises where a file is damaged inside.
        return [f"the file must be whole and sound HDF5: {_one_line(error)}"]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _constant_faults(attributes: dict[str, Any]) -> list[str]:
    for name, wanted in CONSTANTS.items():
        # HDF5 has no type of its own for true: other toolkits write 1.
        given = attributes.get(name, "e" if name == "log_base" else None)
        if given != wanted:
            return [f"attribute {name} must be {wanted!r}, got {given!r}"]
    return []


def _place_faults(file: h5py.File) -> list[str]:
    """Datasets that are missing, or that are no datasets of this very file."""
    links = {name: _link(file, name) for name in DATASETS}
    dumps = {DATASETS[name].dump for name, link in links.items() if link is not None}
    faults = []
    for name, link in links.items():
        needed = DATASETS[name].dump in dumps | {"statistics"} and name not in OPTIONAL
        if link is None and needed:
            faults.append(f"dataset {name} must be there, got none")
        elif link is not None:
            place = file[name] if isinstance(link, h5py.HardLink) else None
            if not isinstance(place, h5py.Dataset) or place.is_virtual or place.external:
                faults.append(f"dataset {name} must be stored in the file itself, got another kind")
    return faults


def _link(file: h5py.File, name: str) -> object | None:
    """How a name is linked; a soft or external link on the way to it is given as it is."""
    place: Any = file
    link: object | None = None
    for part in name.strip("/").split("/"):
        link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            return link
        place = place[part]
    return link


def _shape_faults(file: h5py.File, attributes: dict[str, Any]) -> list[str]:
    sizes = {
        "sentence": _rows(file["/sentence/id"]),
        "hypothesis": _rows(file["/hypothesis/text"]),
        "token": _rows(file["/token/id"]),
        "member": attributes["n_member"],
        "vocab": attributes["vocab_size"],
    }
    sizes["sentence + 1"] = sizes["sentence"] + 1
    sizes["hypothesis + 1"] = sizes["hypothesis"] + 1
    if "/token/topk_id" in file:
        sizes["k"] = file["/token/topk_id"].shape[-1] if file["/token/topk_id"].ndim else 0
    faults = []
    for name, one in DATASETS.items():
        if name not in file:
            continue
        dataset = file[name]
        expected = tuple(sizes[axis] for axis in one.axes)
        if dataset.shape != expected:
            axes = ", ".join(one.axes)
            faults.append(f"dataset {name} must be [{axes}] = {expected}, got {dataset.shape}")
        elif _unwritten(dataset) and one.axes[0] not in ("sentence", "hypothesis"):
            faults.append(f"dataset {name} must be written whole, got rows that never were")
        if not _has_type(dataset, name, one):
            faults.append(f"dataset {name} must be {one.dtype}, got {dataset.dtype}")
    return faults


def _rows(dataset: h5py.Dataset) -> int:
    """How many rows a dataset has; of a single number, which has none, the rule will speak."""
    return int(dataset.shape[0]) if dataset.shape else 0


def _first_not_utf8(texts: NDArray[Any]) -> int:
    return next(row for row, one in enumerate(texts) if "\ufffd" in one.decode("utf-8", "replace"))


def _unwritten(dataset: h5py.Dataset) -> bool:
    """Whether some of its values are on no disk: they would read as 0, whatever their number."""
    if dataset.chunks is None:
        size: int = dataset.id.get_storage_size()
        return size < prod(map(int, dataset.shape)) * int(dataset.dtype.itemsize)
    n_chunk: int = dataset.id.get_num_chunks()
    whole: int = prod(ceil(n / m) for n, m in zip(dataset.shape, dataset.chunks, strict=True))
    return n_chunk < whole


def _has_type(dataset: h5py.Dataset, name: str, schema: Dataset) -> bool:
    """Whether it has the type of the schema or a wider one; half precision where that may be."""
    if schema.dtype == TEXT:
        text = h5py.check_string_dtype(dataset.dtype)
        return text is not None and (text.length or 0) <= _MOST_TEXT_BYTES
    wanted = np.dtype("float16" if name in HALF_PRECISION else schema.dtype)
    given = dataset.dtype
    return bool(
        given.kind == wanted.kind and (given.kind != "f" or given.itemsize >= wanted.itemsize)
    )


def _offset_faults(file: h5py.File, name: str, of: str, least: int) -> list[str]:
    """What is wrong with offsets into the rows of another dataset, at least `least` rows each."""
    offset, end = file[name][:], len(file[of])
    if offset[0] != 0 or offset[-1] != end:
        return [f"dataset {name} must run from 0 to {end}, got {offset[0]} to {offset[-1]}"]
    wrong = np.flatnonzero(np.diff(offset) < least)
    if len(wrong):
        row = int(wrong[0]) + 1
        rule = "must not fall" if least == 0 else "must rise (every hypothesis has a token)"
        return [f"dataset {name}, row {row}, {rule}, got {offset[row - 1]}, {offset[row]}"]
    return []
