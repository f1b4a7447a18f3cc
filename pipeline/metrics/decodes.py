"""What the metrics need of each decode store of a task, and of the measures made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, NO_REFERENCE, Cell, Key
from pipeline.quality.statistic import FloatArray
from pipeline.run.files import digest, read_json
from pipeline.run.settings import TestSetConfig
from pipeline.store import SEARCHES, Store, look_ahead, open_store

SETTING_COLUMNS = ["beam", "temperature", "length_norm"]
_NOT_MEASURES = {"sentence_id", "flag", *SETTING_COLUMNS}


@dataclass(frozen=True)
class Decode:
    """The 1-best of one store.

    `sources`, `texts` and `references` [sentence], None where there is none; `members` found it;
    `cell` holds the key, corpus and signature that all cells of this store share; `in_domain` is
    the setting of its test set.
    """

    path: Path
    cell: Cell
    in_domain: bool
    members: tuple[str, ...]
    sources: list[str]
    texts: list[str | None]
    references: list[str | None]

    @property
    def is_search(self) -> bool:
        """Whether its first hypothesis is the system's answer."""
        return self.cell.regime in SEARCHES

    @property
    def is_forced(self) -> bool:
        """Whether its hypotheses are the references."""
        return self.cell.regime == "teacher_forcing"

    @property
    def is_ensemble(self) -> bool:
        """Whether several members made it, or could have."""
        return self.cell.ensemble != "single"

    @property
    def scorable(self) -> NDArray[np.bool_]:
        """Which sentences have both a hypothesis and a reference: [sentence]."""
        return np.array(
            [
                text is not None and reference is not None
                for text, reference in zip(self.texts, self.references, strict=True)
            ],
            dtype=bool,
        )

    @property
    def why_not_scorable(self) -> str:
        """The reason in words, for a store without any scorable sentence."""
        if not self.texts:
            return "the test set has no sentence"
        if all(one is None for one in self.references):
            return NO_REFERENCE
        if all(one is None for one in self.texts):
            return "no hypothesis"
        return "no sentence has both a hypothesis and a reference"


def read_decodes(
    folder: Path, parts: Iterable[str], task: str, test_sets: Mapping[str, TestSetConfig]
) -> dict[str, Decode]:
    """Part -> decode, of the stores {folder}/{part}/store.h5.

    A store is one of a single member where its ensemble is called as its only member, and one of an
    averaged model where its ensemble is `checkpoint_average`: neither has a combination. Raises
    StoreError for a store that cannot be read, DataError for one of a test set that is not there.
    """
    paths = {part: folder / part / "store.h5" for part in parts}
    look_ahead(paths.values())
    decodes = {}
    for part, path in paths.items():
        with open_store(path) as store:
            decodes[part] = _decode(store, task, test_sets)
    return decodes


def _decode(store: Store, task: str, test_sets: Mapping[str, TestSetConfig]) -> Decode:
    test_set = str(store.attributes.get("test_set", ""))
    if test_set not in test_sets:
        raise DataError(
            f"{store.path}: attribute test_set must be one of {', '.join(test_sets)}, "
            f"got {test_set!r}: run python -m stages.decode again"
        )
    ensemble = str(store.attributes.get("ensemble", ""))
    single = [ensemble] == store.members
    settings = test_sets[test_set]
    hypotheses = "-" if single or ensemble == CHECKPOINT_AVERAGE else store.combination
    cell = Cell(
        task=task,
        test_set=test_set,
        ensemble="single" if single else ensemble,
        hypotheses="reference" if store.regime == "teacher_forcing" else hypotheses,
        regime=store.regime,
        data=settings.corpus,
        signature=str(store.attributes.get("signature", "")),
        also_called=" ".join(settings.also_called),
    )
    return Decode(
        store.path,
        cell,
        settings.in_domain,
        tuple(store.members),
        store.sources(),
        store.best_texts(),
        store.references(),
    )


@dataclass(frozen=True)
class Measures:
    """The sentence-level measures of one store at one (B, T, length norm): name -> [sentence].

    NaN stands where a sentence has no value; `why_null` says it of measures that no sentence has.
    """

    beam: int
    temperature: float
    length_norm: bool
    values: Mapping[str, FloatArray]
    why_null: Mapping[str, str]

    @property
    def setting(self) -> tuple[int, float, bool]:
        """What must agree for two sets of measures to be compared."""
        return self.beam, self.temperature, self.length_norm

    def reason(self, name: str) -> str:
        """Why no sentence has the measure."""
        return self.why_null.get(name, "no scored sentence has a value of this measure")


def first_of_each_length_norm(grid: Iterable[Measures]) -> dict[bool, Measures]:
    """Length norm -> the first measures of B = 1, where T has no effect."""
    first: dict[bool, Measures] = {}
    for measures in grid:
        if measures.beam == 1:
            first.setdefault(measures.length_norm, measures)
    return first


def measure_table(path: Path, needed: Sequence[str], **how: Any) -> pd.DataFrame:
    """A table of measures of stage uncertainty; `how`: what pandas is to read of it.

    Raises DataError where there is no file, where it is damaged, and where a column is missing.
    """
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.uncertainty first")
    try:
        frame = pd.read_parquet(path, **how)
        frame[list(needed)]
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise DataError(
            f"{path} must be whole and have the columns {', '.join(needed)}, got {reason}: "
            "run python -m stages.uncertainty again"
        ) from None
    return frame


@dataclass(frozen=True)
class Measured:
    """A decode and its measures, one item a setting."""

    decode: Decode
    grid: list[Measures]


def read_measures(path: Path, n_sentence: int) -> list[Measures]:
    """The measures of a sequence.parquet, one item a setting, in the order of the file.

    Raises DataError where there is no file, or where a setting does not list each sentence once.
    """
    frame = measure_table(path, ["sentence_id", *SETTING_COLUMNS])
    by_setting = frame.groupby(SETTING_COLUMNS, sort=False)
    checks = path.with_name("checks.json")
    report = read_json(checks, "uncertainty") if checks.is_file() else {}
    names = [
        str(name)
        for name in frame.columns
        if name not in _NOT_MEASURES and pd.api.types.is_numeric_dtype(frame[name])
    ]
    grid = []
    for _, rows in by_setting:
        beam, temperature, length_norm = rows[SETTING_COLUMNS].iloc[0]
        ordered = rows.sort_values("sentence_id")
        if not np.array_equal(ordered["sentence_id"].to_numpy(), np.arange(n_sentence)):
            raise DataError(
                f"{path} must list each of the {n_sentence} sentences of its store once for B = "
                f"{beam}, T = {temperature}, got {len(ordered)} rows: run stages.uncertainty again"
            )
        values = {name: ordered[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names}
        # The variance of probabilities underflows: its logarithm ranks the same sentences.
        if "ln_var_p" in values:
            values["var_p"] = values.pop("ln_var_p")
        grid.append(
            Measures(
                int(beam), float(temperature), bool(length_norm), values, report.get("null", {})
            )
        )
    return grid


_Item = TypeVar("_Item")
_ONE_MEMBER = "one member: no spread"


def groups(decodes: Sequence[Decode]) -> list[list[Decode]]:
    """The decodes by key, in their order."""
    return groups_by(decodes, lambda decode: decode)


def groups_by(items: Iterable[_Item], decode_of: Callable[[_Item], Decode]) -> list[list[_Item]]:
    """Things made of decodes, grouped by the key of their decode, in their order."""
    by_key: dict[Key, list[_Item]] = {}
    for one in items:
        by_key.setdefault(decode_of(one).cell.key, []).append(one)
    return list(by_key.values())


def shared_cell(group: Sequence[Decode]) -> Cell:
    """What the cells of a group share; the signatures of several decodes come as one digest.

    Raises DataError where the decodes do not list the same sentences.
    """
    sizes = {len(decode.texts) for decode in group}
    if len(sizes) > 1:
        raise DataError(
            f"the decodes of {group[0].cell.test_set} must list the same sentences, "
            f"got {sorted(sizes)}"
        )
    cell = group[0].cell
    if len(group) == 1 and cell.ensemble != "single":
        return cell
    signatures = digest(*(decode.cell.signature for decode in group))[:12]
    of = "members" if cell.ensemble == "single" else "ensembles"
    signature = (
        f"task:{cell.task}|set:{cell.test_set}|ensemble:{cell.ensemble}|{of}:{len(group)}"
        f"|regime:{cell.regime}|decodes:{signatures}"
    )
    return replace(cell, signature=signature)


def scorable_in_all(group: Sequence[Decode]) -> NDArray[np.bool_]:
    """Which sentences every decode of a group has a hypothesis and a reference of: [sentence]."""
    return np.asarray(np.stack([decode.scorable for decode in group]).all(axis=0))


def texts(decode: Decode, used: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
    """Hypotheses and references of the sentences in use."""
    places = np.flatnonzero(used)
    return [str(decode.texts[i]) for i in places], [str(decode.references[i]) for i in places]


def with_spread(cell: Cell, values: Sequence[float]) -> Cell:
    """A cell with the standard deviation over the values that it is the mean of.

    One ensemble alone has none; a single member alone says so.
    """
    if len(values) > 1:
        return replace(cell, spread=float(np.std(values, ddof=1)))
    if cell.ensemble == "single":
        return replace(cell, reason=cell.reason or _ONE_MEMBER)
    return cell
