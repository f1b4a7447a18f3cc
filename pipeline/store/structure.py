"""Check the structure of a store, without its values: attributes, datasets, shapes, offsets."""

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

# Limit of fixed-length text, because every row takes the full length in memory.
_MAX_TEXT_BYTES = 2**16


def structure_faults(file: h5py.File) -> list[str]:
    """Faults of attributes, datasets, types, shapes and offsets, one sentence each."""
    try:
        attributes = {name: plain(value) for name, value in file.attrs.items()}
        return (
            _constant_faults(attributes)
            or attribute_faults(attributes)
            or _dataset_faults(file)
            or _shape_faults(file, attributes)
            or [
                *_offset_faults(file, "/sentence/hypothesis_offset", "/hypothesis/text", 0),
                *_offset_faults(file, "/hypothesis/token_offset", "/token/id", 1),
            ]
        )
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        # h5py raises these errors if a file is damaged.
        return [f"damaged HDF5 file ({one_line(error)})."]


def one_line(error: BaseException) -> str:
    """The message of an error on one line."""
    return " ".join(str(error).split())


def _constant_faults(attributes: dict[str, Any]) -> list[str]:
    for name, expected in CONSTANTS.items():
        # HDF5 has no boolean type, so other toolkits write 1 for true.
        value = attributes.get(name, "e" if name == "log_base" else None)
        if value != expected:
            return [f"attribute {name}: must be {expected!r} (got {value!r})."]
    return []


def _dataset_faults(file: h5py.File) -> list[str]:
    """Datasets that are missing, or that are not stored in this file."""
    links = {name: _link(file, name) for name in DATASETS}
    dumps = {DATASETS[name].dump for name, link in links.items() if link is not None}
    faults = []
    for name, link in links.items():
        needed = DATASETS[name].dump in dumps | {"statistics"} and name not in OPTIONAL
        if link is None and needed:
            faults.append(f"dataset {name}: missing.")
        elif link is not None:
            item = file[name] if isinstance(link, h5py.HardLink) else None
            if not isinstance(item, h5py.Dataset) or item.is_virtual or item.external:
                faults.append(
                    f"dataset {name}: must be a dataset that is stored in the file itself (got a "
                    f"link, a group, or a virtual or external dataset)."
                )
    return faults


def _link(file: h5py.File, name: str) -> object | None:
    """The link of a name: the first soft or external link on its path, else the hard link."""
    item: Any = file
    link: object | None = None
    for key in name.strip("/").split("/"):
        link = item.get(key, getlink=True) if isinstance(item, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            return link
        item = item[key]
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
    for name, schema in DATASETS.items():
        if name not in file:
            continue
        dataset = file[name]
        expected = tuple(sizes[axis] for axis in schema.axes)
        if dataset.shape != expected:
            axes = ", ".join(schema.axes)
            faults.append(f"dataset {name}: must be [{axes}] = {expected} (got {dataset.shape}).")
        elif _has_unwritten_rows(dataset) and schema.axes[0] not in ("sentence", "hypothesis"):
            faults.append(f"dataset {name}: has rows that were never written.")
        rule = _broken_type(dataset, name, schema)
        if rule is not None:
            faults.append(f"dataset {name}: must be {rule} (got {dataset.dtype}).")
    return faults


def _rows(dataset: h5py.Dataset) -> int:
    """Number of rows; 0 for a scalar, which the check of shapes then reports."""
    return int(dataset.shape[0]) if dataset.shape else 0


def _has_unwritten_rows(dataset: h5py.Dataset) -> bool:
    """Whether some values take no space in the file; HDF5 would read them as the fill value."""
    if dataset.chunks is None:
        size: int = dataset.id.get_storage_size()
        return size < prod(map(int, dataset.shape)) * int(dataset.dtype.itemsize)
    n_chunk: int = dataset.id.get_num_chunks()
    expected: int = prod(ceil(n / m) for n, m in zip(dataset.shape, dataset.chunks, strict=True))
    return n_chunk < expected


def _broken_type(dataset: h5py.Dataset, name: str, schema: Dataset) -> str | None:
    """The type that a dataset should have, if it has neither that type nor a wider one."""
    if schema.dtype == TEXT:
        text = h5py.check_string_dtype(dataset.dtype)
        if text is None:
            return TEXT
        fits = text.length is None or text.length <= _MAX_TEXT_BYTES
        return None if fits else f"text of at most {_MAX_TEXT_BYTES} bytes"
    narrowest = np.dtype("float16" if name in HALF_PRECISION else schema.dtype)
    dtype = dataset.dtype
    same_kind = dtype.kind == narrowest.kind
    fits = same_kind and (dtype.kind != "f" or dtype.itemsize >= narrowest.itemsize)
    return None if fits else schema.dtype


def _offset_faults(file: h5py.File, name: str, of: str, minimum: int) -> list[str]:
    """Faults of offsets into the rows of dataset `of`; each step must be at least `minimum`."""
    offset, end = file[name][:], len(file[of])
    if offset[0] != 0 or offset[-1] != end:
        return [f"dataset {name}: must run from 0 to {end} (got {offset[0]} to {offset[-1]})."]
    wrong = np.flatnonzero(np.diff(offset) < minimum)
    if len(wrong):
        row = int(wrong[0]) + 1
        rule = "must not decrease" if minimum == 0 else "must increase (a hypothesis has a token)"
        return [f"dataset {name}, row {row}: {rule}: {offset[row - 1]}, {offset[row]}."]
    return []
