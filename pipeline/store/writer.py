"""Write a decode store to a temporary file, which is renamed when it is complete."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store.hypothesis import Hypothesis
from pipeline.store.normalisation import sum_fault
from pipeline.store.schema import (
    ATTRIBUTES,
    CONSTANTS,
    DATASETS,
    HALF_PRECISION,
    NAMES,
    TEXT,
    Flag,
    attribute_faults,
    plain,
    stored,
    value_range,
)
from pipeline.store.statistics import STATISTICS, TokenStatistics

_CHUNK_BYTES = 2**18
# Typical size of a text, from which the number of rows of a chunk follows.
_TEXT_BYTES = 2**7
# Level 1 takes a third of the time of level 4, for a few per cent more bytes.
_GZIP_LEVEL = 1
# Cache for HDF5's own records, texts included; its default would use up to 32 MiB of memory.
_RECORD_BYTES = 2**21


class StoreWriter:
    """A context manager that writes one store; if its block fails, nothing is left behind.

    attributes: the root attributes of the schema; `None` for those that do not apply. n_member may
    be left out if `members` is given. Raises StoreError if an attribute is unknown, missing or
    invalid.
    """

    def __init__(self, path: str | Path, **attributes: Any) -> None:
        self.path = Path(path)
        self._attributes = {
            name: plain(value) for name, value in attributes.items() if value is not None
        }
        members = self._attributes.get("members")
        if isinstance(members, list):
            self._attributes.setdefault("n_member", len(members))
        self._check_attributes()
        self._n_member = int(self._attributes["n_member"])
        self._vocab_size = int(self._attributes["vocab_size"])
        combination = str(self._attributes["combination"])
        self._ranges = {
            name: value_range(name, self._n_member, self._vocab_size, combination)
            for name in DATASETS
        }
        self._temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.writing")
        self._layout: str | None = None
        self._columns: dict[str, _Column] = {}
        # Kept in memory, because only the last sentence shows whether all of them have a name.
        self._groups: list[str | None] = []
        self._originals: list[str | None] = []
        self._known_originals: set[str] = set()
        self._n_sentence = self._n_hypothesis = self._n_token = 0

    def __enter__(self) -> Self:
        self._open()
        for name, dataset in DATASETS.items():
            if dataset.dump == "statistics" and name not in NAMES:
                self._columns[name] = self._new_column(name)
        self._append("/sentence/hypothesis_offset", 0)
        self._append("/hypothesis/token_offset", 0)
        return self

    def _open(self) -> None:
        try:
            if self.path.is_dir():
                raise StoreError(f"{self.path}: is a folder. Give the path of a file.")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Chunks are written once and never read, so they need no cache.
            self._file = h5py.File(self._temporary, "w", rdcc_nbytes=0)
            records = self._file.id.get_mdc_config()
            records.max_size = _RECORD_BYTES
            self._file.id.set_mdc_config(records)
        except OSError as error:
            raise StoreError(
                f"{self.path}: cannot be written ({error}). Choose another path."
            ) from None
        attributes = self._attributes | CONSTANTS | {"complete": False}
        for name in sorted(attributes):
            self._file.attrs[name] = stored(attributes[name])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            try:
                if kind is None:
                    self._finish()
            finally:
                self._file.close()
            if kind is None:
                self._temporary.replace(self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def add_sentence(
        self,
        id: int,  # noqa: A002
        source: str,
        reference: str | None,
        hypotheses: Sequence[Hypothesis],
        flag: int = 0,
        group: str | None = None,
        original: str | None = None,
    ) -> None:
        """Append a sentence with its hypotheses, best first; ids count 0, 1, 2, ...

        flag: bits of `Flag`; NO_REFERENCE, NO_HYPOTHESIS and NO_FINISHED_HYPOTHESIS are added if
        they apply. group: what the sentence has in common with others, such as a page or a speaker.
        original: name of the sentence that this one is, or that it was made from. Groups are stored
        only if every sentence has one, and so are originals. Raises StoreError if an argument
        breaks the schema; the store then stays as it was before the call.
        """
        self._check_sentence(id, source, reference, hypotheses, flag)
        self._check_names(f"sentence {id}", group, original)
        self._layout = self._same_layout(hypotheses)
        if reference is None:
            flag |= Flag.NO_REFERENCE
        if not hypotheses:
            flag |= Flag.NO_HYPOTHESIS
        elif not any(hypothesis.finished for hypothesis in hypotheses):
            flag |= Flag.NO_FINISHED_HYPOTHESIS
        for hypothesis in hypotheses:
            self._append_hypothesis(hypothesis)
        self._n_sentence += 1
        self._append("/sentence/id", id)
        self._append("/sentence/source", source)
        self._append("/sentence/reference", reference or "")
        self._append("/sentence/flag", int(flag))
        self._groups.append(group)
        self._originals.append(original)
        if original is not None:
            self._known_originals.add(original)
        self._append("/sentence/hypothesis_offset", self._n_hypothesis)

    def _check_sentence(
        self,
        sentence_id: int,
        source: str,
        reference: str | None,
        hypotheses: Sequence[Hypothesis],
        flag: int,
    ) -> None:
        if not self._columns:
            raise StoreError(f"{self.path}: the StoreWriter is not open. Use it in a `with` block.")
        if sentence_id != self._n_sentence:
            raise StoreError(
                f"{self.path}: sentence ids must count 0, 1, 2, ... "
                f"(got {sentence_id} in place of {self._n_sentence})."
            )
        where = f"sentence {sentence_id}"
        if not 0 <= flag <= 255:
            self._fail("/sentence/flag", where, f"must be in [0, 256) (got {flag})")
        self._check_text("/sentence/source", where, source)
        self._check_text("/sentence/reference", where, reference or "")
        for rank, hypothesis in enumerate(hypotheses):
            self._check_hypothesis(f"{where}, hypothesis {rank}", hypothesis)

    def _append_hypothesis(self, hypothesis: Hypothesis) -> None:
        self._columns["/token/id"].extend(hypothesis.token_id)
        for name, values in _token_arrays(hypothesis).items():
            if name not in self._columns:
                self._columns[name] = self._new_column(name, np.asarray(values))
            self._columns[name].extend(values)
        self._n_hypothesis += 1
        self._n_token += len(hypothesis.token_id)
        self._append("/hypothesis/token_offset", self._n_token)
        self._append("/hypothesis/finished", int(hypothesis.finished))
        self._append("/hypothesis/member", hypothesis.member)
        self._append("/hypothesis/text", hypothesis.text)
        self._append("/hypothesis/score", hypothesis.score)

    def _append(self, name: str, value: Any) -> None:
        self._columns[name].append(value)

    def _new_column(self, name: str, first_rows: NDArray[Any] | None = None) -> _Column:
        dataset = DATASETS[name]
        dtype = dataset.dtype
        if first_rows is None:
            shape = (self._n_member,) if "member" in dataset.axes else ()
            return _Column(self._file, name, shape, dtype)
        if name in HALF_PRECISION and first_rows.dtype == np.float16:
            dtype = "float16"
        return _Column(self._file, name, first_rows.shape[1:], dtype)

    def _check_hypothesis(self, where: str, hypothesis: Hypothesis) -> None:
        self._check_text("/hypothesis/text", where, hypothesis.text)
        tokens = np.asarray(hypothesis.token_id)
        if tokens.ndim != 1 or len(tokens) == 0 or tokens.dtype.kind not in "iu":
            rule = f"must be integers [token], at least one (got {tokens.dtype} {tokens.shape})"
            self._fail("/token/id", where, rule)
        if not isinstance(hypothesis.statistics, TokenStatistics):
            raise StoreError(
                f"{self.path}: {where}, statistics: must be TokenStatistics (got "
                f"{type(hypothesis.statistics).__name__}). Compute them with token_statistics of "
                f"pipeline.uncertainty.token. A store cannot hold texts alone; their X-BLEU is "
                f"xbleu of pipeline.uncertainty.heuristics."
            )
        arrays = _token_arrays(hypothesis)
        sizes = {"token": len(tokens), "member": self._n_member, "vocab": self._vocab_size}
        if hypothesis.topk is not None:
            sizes["k"] = np.shape(hypothesis.topk.token_id)[-1]
        for name, values in arrays.items():
            expected = tuple(sizes[axis] for axis in DATASETS[name].axes)
            if np.shape(values) != expected:
                axes = ", ".join(DATASETS[name].axes)
                rule = f"must have shape [{axes}] = {expected} (got {np.shape(values)})"
                self._fail(name, where, rule)
            self._check_values(name, where, values)
        self._check_sums(where, hypothesis)
        self._check_values("/token/id", where, tokens)
        self._check_values("/hypothesis/score", where, hypothesis.score)
        self._check_values("/hypothesis/member", where, hypothesis.member)

    def _check_values(self, name: str, where: str, values: Any) -> None:
        values = np.asarray(values)
        if values.dtype.kind not in "biuf":
            self._fail(name, where, f"must be numbers (got {values})")
        if not values.size:
            return
        allowed, high = self._ranges[name], values.max()
        if np.isnan(high):
            self._fail(name, where, "must not be NaN")
        # Log-probs have no lower bound, which saves a pass over them.
        low = values.min() if allowed.lowest > -inf else high
        if low < allowed.lowest or high > allowed.highest:
            self._fail(name, where, f"{allowed.rule} (got {low} to {high})")

    def _check_sums(self, where: str, hypothesis: Hypothesis) -> None:
        faults = {}
        if hypothesis.full_logprob is not None:
            full = np.asarray(hypothesis.full_logprob)
            faults["/token/full_logprob"] = sum_fault(full, self._vocab_size)
        if hypothesis.topk is not None:
            logprob, tail = map(np.asarray, (hypothesis.topk.logprob, hypothesis.topk.tail_logprob))
            faults["/token/topk_logprob"] = sum_fault(logprob, self._vocab_size, tail)
        for name, fault in faults.items():
            if fault is not None:
                raise StoreError(f"{self.path}: {where}, {name}: {fault}")

    def _same_layout(self, hypotheses: Sequence[Hypothesis]) -> str | None:
        """The layout of all hypotheses so far. Raises StoreError if a hypothesis differs."""
        layout = self._layout
        for rank, hypothesis in enumerate(hypotheses):
            own = _layout(hypothesis)
            if own != (layout or own):
                raise StoreError(
                    f"{self.path}: sentence {self._n_sentence}, hypothesis {rank}: all hypotheses "
                    f"must have the same dump (got {own} after {layout})."
                )
            layout = own
        return layout

    def _check_names(self, where: str, group: str | None, original: str | None) -> None:
        for name, value in zip(NAMES, (group, original), strict=True):
            if value is not None:
                self._check_text(name, where, value)
                if not value:
                    self._fail(name, where, "must not be empty")
        if original in self._known_originals:
            self._fail("/sentence/original", where, f"must be unique (got {original!r} again)")

    def _check_text(self, name: str, where: str, text: str) -> None:
        if not isinstance(text, str):
            self._fail(name, where, f"must be text (got {text!r})")
        if "\0" in text:
            self._fail(name, where, "must not contain the character NUL")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            self._fail(name, where, f"must be valid Unicode ({error.reason})")

    def _check_attributes(self) -> None:
        for name, value in self._attributes.items():
            if name in CONSTANTS and value != CONSTANTS[name]:
                raise StoreError(
                    f"{self.path}: attribute {name}: must be {CONSTANTS[name]!r} (got {value!r})."
                )
            if name not in (*ATTRIBUTES, *CONSTANTS):
                raise StoreError(
                    f"{self.path}: attribute {name}: unknown. Known are {', '.join(ATTRIBUTES)}."
                )
        for fault in attribute_faults(self._attributes):
            raise StoreError(f"{self.path}: {fault}")
        for name, value in self._attributes.items():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    self._check_text(f"attribute {name}", "", text)

    def _fail(self, name: str, where: str, rule: str) -> NoReturn:
        subject = ", ".join(word for word in (where, name) if word)
        raise StoreError(f"{self.path}: {subject}: {rule}.")

    def _finish(self) -> None:
        for name, values in zip(NAMES, (self._groups, self._originals), strict=True):
            if None not in values:
                self._columns[name] = self._new_column(name)
                self._columns[name].extend(np.array(values, dtype=object))
        for column in self._columns.values():
            column.flush()
        self._file.attrs["complete"] = True


class _Column:
    """A dataset that grows by whole chunks, so that no chunk is compressed twice."""

    def __init__(self, file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> None:
        text = dtype == TEXT
        self._type: np.dtype[Any] = np.dtype(object if text else dtype)
        row_bytes = _TEXT_BYTES if text else self._type.itemsize * int(np.prod(shape, dtype=int))
        chunk_rows = max(1, _CHUNK_BYTES // max(1, row_bytes))
        self._chunk: NDArray[Any] = np.empty((chunk_rows, *shape), self._type)
        self._filled = 0
        self._dataset = file.create_dataset(
            name,
            shape=(0, *shape),
            maxshape=(None, *shape),
            chunks=self._chunk.shape,
            dtype=h5py.string_dtype() if text else self._type,
            compression="gzip",
            compression_opts=_GZIP_LEVEL,
            shuffle=True,
            track_times=False,
            fillvalue=np.nan if self._type.kind == "f" else None,
        )

    def append(self, value: Any) -> None:
        self._chunk[self._filled] = value
        self._filled += 1
        if self._filled == len(self._chunk):
            self.flush()

    def extend(self, rows: Any) -> None:
        rows = np.asarray(rows)
        while len(rows):
            fitting = rows[: len(self._chunk) - self._filled]
            self._chunk[self._filled : self._filled + len(fitting)] = fitting
            self._filled += len(fitting)
            if self._filled == len(self._chunk):
                self.flush()
            rows = rows[len(fitting) :]

    def flush(self) -> None:
        if self._filled:
            start = len(self._dataset)
            self._dataset.resize(start + self._filled, axis=0)
            self._dataset[start:] = self._chunk[: self._filled]
            self._filled = 0


def _token_arrays(hypothesis: Hypothesis) -> dict[str, Any]:
    """Values of the token datasets that this hypothesis fills, except its token ids, by name."""
    arrays: dict[str, Any] = {
        f"/token/{name}": getattr(hypothesis.statistics, name) for name in STATISTICS
    }
    if hypothesis.full_logprob is not None:
        arrays["/token/full_logprob"] = hypothesis.full_logprob
    if hypothesis.topk is not None:
        arrays["/token/topk_id"] = hypothesis.topk.token_id
        arrays["/token/topk_logprob"] = hypothesis.topk.logprob
        arrays["/token/tail_logprob"] = hypothesis.topk.tail_logprob
    return arrays


def _layout(hypothesis: Hypothesis) -> str:
    """Describe in words what a hypothesis keeps of its token distributions."""
    kept = []
    if hypothesis.full_logprob is not None:
        half = np.asarray(hypothesis.full_logprob).dtype == np.float16
        kept.append("full in float16" if half else "full in float32")
    if hypothesis.topk is not None:
        kept.append(f"topk with k = {np.shape(hypothesis.topk.token_id)[-1]}")
    return " and ".join(kept) or "statistics"
