"""What must be right of a file before its values can be read: attributes, datasets, shapes."""

from __future__ import annotations

from math import ceil, prod
from typing import Any

import h5py
import numpy as np

from pipeline.store.schema import (
    CONSTANTS,
    DATASETS,
    HALF_PRECISION,
    OPTIONAL,
    TEXT,
    Dataset,
    attribute_faults,
    plain,
)

# Of a type of fixed length: it takes all of it in memory, row for row.
_MOST_TEXT_BYTES = 2**16


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
        return [f"the file must be whole and sound HDF5: {one_line(error)}"]


def one_line(error: BaseException) -> str:
    """What h5py says, on one line."""
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
        rule = _broken_type(dataset, name, one)
        if rule is not None:
            faults.append(f"dataset {name} must be {rule}, got {dataset.dtype}")
    return faults


def _rows(dataset: h5py.Dataset) -> int:
    """How many rows a dataset has; of a single number, which has none, the rule will speak."""
    return int(dataset.shape[0]) if dataset.shape else 0


def _unwritten(dataset: h5py.Dataset) -> bool:
    """Whether some of its values are on no disk: they would read as 0, whatever their number."""
    if dataset.chunks is None:
        size: int = dataset.id.get_storage_size()
        return size < prod(map(int, dataset.shape)) * int(dataset.dtype.itemsize)
    n_chunk: int = dataset.id.get_num_chunks()
    whole: int = prod(ceil(n / m) for n, m in zip(dataset.shape, dataset.chunks, strict=True))
    return n_chunk < whole


def _broken_type(dataset: h5py.Dataset, name: str, schema: Dataset) -> str | None:
    """What type it must have and has not: the schema's, a wider one, half where that may be."""
    if schema.dtype == TEXT:
        text = h5py.check_string_dtype(dataset.dtype)
        if text is None:
            return TEXT
        fits = text.length is None or text.length <= _MOST_TEXT_BYTES
        return None if fits else f"text of at most {_MOST_TEXT_BYTES} bytes"
    wanted = np.dtype("float16" if name in HALF_PRECISION else schema.dtype)
    given = dataset.dtype
    fits = given.kind == wanted.kind and (given.kind != "f" or given.itemsize >= wanted.itemsize)
    return None if fits else schema.dtype


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
