"""Reading a decode store: slices of its datasets, never the whole file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.schema import DATASETS, OPTIONAL, SCHEMA, TEXT, Flag, attribute_faults


class Store:
    """An open decode store; a context manager.

    attributes: the root attributes as plain values; hypothesis_offset [sentence + 1]: hypotheses of
    a sentence, best first; token_offset [hypothesis + 1]: tokens of a hypothesis; flag [sentence].
    """

    def __init__(self, path: Path, file: h5py.File) -> None:
        self.path = path
        self._file = file
        self.attributes = {name: _plain(value) for name, value in file.attrs.items()}
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

    def read(self, name: str, start: int | None = None, stop: int | None = None) -> NDArray[Any]:
        """Rows [start:stop] of a dataset, texts as str; StoreError if the store has no such one."""
        if name not in self._file:
            raise StoreError(f"{self.path}: dataset {name} must be there, got none")
        dataset = self._file[name]
        try:
            if DATASETS[name].dtype == TEXT:
                return np.asarray(dataset.asstr()[start:stop], dtype=object)
            return np.asarray(dataset[start:stop])
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{self.path}: dataset {name} must be readable: {error}") from None

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
    faults = structure_faults(file)
    if faults:
        file.close()
        raise StoreError(f"{path}: {faults[0]}")
    try:
        return Store(path, file)
    except BaseException:
        file.close()
        raise


def open_file(path: Path) -> h5py.File:
    """The HDF5 file at a path; StoreError where there is none, or one that is cut or foreign."""
    if not path.is_file():
        raise StoreError(f"{path} must be a decode store, got no file")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise StoreError(f"{path} must be a whole HDF5 file: {error}") from None


def structure_faults(file: h5py.File) -> list[str]:
    """What is wrong with attributes, datasets, types, shapes and offsets, one clause each."""
    attributes = {name: _plain(value) for name, value in file.attrs.items()}
    schema = attributes.get("schema")
    if schema != SCHEMA:
        return [f"attribute schema must be {SCHEMA!r}, got {schema!r}"]
    if attributes.get("complete") is not True:
        return [f"attribute complete must be true, got {attributes.get('complete')}"]
    if attributes.get("log_base", "e") != "e":
        return [f"attribute log_base must be 'e', got {attributes['log_base']!r}"]
    faults = attribute_faults(attributes) or _shape_faults(file, attributes)
    return faults or [
        *_offset_faults(file, "/sentence/hypothesis_offset", len(file["/hypothesis/text"])),
        *_offset_faults(file, "/hypothesis/token_offset", len(file["/token/id"])),
    ]


def _shape_faults(file: h5py.File, attributes: dict[str, Any]) -> list[str]:
    dumps = {one.dump for name, one in DATASETS.items() if name in file}
    needed = [n for n, one in DATASETS.items() if one.dump in dumps and n not in OPTIONAL]
    missing = [name for name in needed if not isinstance(file.get(name), h5py.Dataset)]
    if missing:
        return [f"dataset {name} must be there, got none" for name in missing]
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
        if one.dtype == TEXT:
            if h5py.check_string_dtype(dataset.dtype) is None:
                faults.append(f"dataset {name} must be text, got {dataset.dtype}")
        elif dataset.dtype.kind != np.dtype(one.dtype).kind:
            faults.append(f"dataset {name} must be {one.dtype}, got {dataset.dtype}")
    return faults


def _rows(dataset: h5py.Dataset) -> int:
    """How many rows a dataset has; of a single number, which has none, the rule will speak."""
    return int(dataset.shape[0]) if dataset.shape else 0


def _offset_faults(file: h5py.File, name: str, end: int) -> list[str]:
    try:
        offset = file[name][:]
    except OSError as error:
        return [f"dataset {name} must be readable: {error}"]
    if offset[0] != 0 or offset[-1] != end:
        return [f"dataset {name} must run from 0 to {end}, got {offset[0]} to {offset[-1]}"]
    falls = np.flatnonzero(np.diff(offset) < 0)
    if len(falls):
        row = int(falls[0]) + 1
        return [f"dataset {name}, row {row}, must not fall, got {offset[row - 1]}, {offset[row]}"]
    return []


def _plain(value: Any) -> Any:
    """An attribute as str, int, float, bool or list."""
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, np.generic):
        return value.item()
    return value.decode("utf-8") if isinstance(value, bytes) else value
