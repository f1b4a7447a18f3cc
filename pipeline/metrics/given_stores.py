"""Decode stores that a user names, as one task whose settings come from their attributes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Self

from pipeline.errors import ConfigError, DataError, StoreError
from pipeline.run.settings import PipelineConfig, TestSetConfig, iterate_values
from pipeline.store import SEARCHES, SUBSET, Store, open_store, validate
from pipeline.store.ranking import ranking_warning

_log = logging.getLogger(__name__)
_FORCED = "teacher_forcing"


@dataclass(frozen=True)
class GivenStore:
    """What names and compares a store; texts are [sentence], with None for a missing reference."""

    path: Path
    task: str
    test_set: str
    ensemble: str
    members: tuple[str, ...]
    combination: str
    regime: str
    sources: list[str]
    references: list[str | None]

    @classmethod
    def read(cls, store: Store) -> Self:
        """Raises StoreError if the store lacks the name of its task, test set or ensemble."""
        return cls(
            store.path,
            _name(store, "task"),
            _name(store, "test_set"),
            _name(store, "ensemble"),
            tuple(store.members),
            store.combination,
            store.regime,
            store.sources(),
            store.references(),
        )

    @property
    def is_of_ensemble(self) -> bool:
        """Whether it is no decode of a single member by itself, and none of a subset."""
        return self.ensemble != SUBSET and (self.ensemble,) != self.members

    @property
    def system(self) -> tuple[object, ...]:
        """What must be equal for two test sets to be compared, as for the cells."""
        combination = self.regime if self.regime == _FORCED else self.combination
        return self.ensemble, self.members, combination, self.regime

    @property
    def decoded_by(self) -> str:
        """The system in words."""
        return (
            f"ensemble {self.ensemble} of {', '.join(self.members)}; "
            f"combination {self.combination}, regime {self.regime}"
        )


def _name(store: Store, attribute: str) -> str:
    name = store.attributes.get(attribute, "")
    if not name or "/" in name or name.startswith(".") or not name.isprintable():
        raise StoreError(
            f"{store.path}: attribute {attribute}: must be a name without / that does not begin "
            f"with a dot (got {name!r}). Results are named after it; write it into the store."
        )
    return str(name)


@dataclass(frozen=True)
class GivenStores:
    """The stores of one task, in the order of the settings, and its in-domain test set."""

    stores: list[GivenStore]
    baseline: str

    @property
    def task(self) -> str:
        """The task of all stores."""
        return self.stores[0].task

    @property
    def settings(self) -> dict[str, Any]:
        """Setting -> value, for the settings that name the task, its test sets and ensemble."""
        test_sets: dict[str, TestSetConfig] = {}
        for store in self.stores:
            test_set = test_sets.setdefault(
                store.test_set,
                TestSetConfig(
                    kind="files",
                    path=store.path.name,
                    corpus=store.test_set,
                    baseline=store.test_set == self.baseline,
                ),
            )
            test_set.in_domain |= any(text is not None for text in store.references)
        main = next((store for store in self.stores if store.is_of_ensemble), self.stores[0])
        return {
            "task.name": self.task,
            "task.label": None,
            "task.test_sets": test_sets,
            "ensemble.name": main.ensemble,
            "train.average_last": 1,
        }

    def parts(self) -> dict[str, GivenStore]:
        """Name of a part of the decode folder -> its store."""
        parts: dict[str, GivenStore] = {}
        for store in self.stores:
            is_joint = store.is_of_ensemble and store.regime in SEARCHES
            name = f"{store.ensemble}.{store.combination if is_joint else store.regime}"
            name += f".{store.test_set}"
            numbered = (f"{name}.{number}" for number in count(2))
            parts[next(part for part in chain([name], numbered) if part not in parts)] = store
        return parts


def read_given_stores(config: PipelineConfig) -> GivenStores:
    """The stores that io.store, io.baseline and io.member_stores name, validated.

    Raises StoreError if one is not valid, DataError or ConfigError if they do not fit together.
    """
    io = config.io
    in_domain = _paths(io.baseline)
    paths = _paths(io.store) | in_domain | _paths(io.member_stores)
    stores = {resolved: _validated(path) for resolved, path in paths.items()}
    given = [*stores.values()]
    _check_one_task(given)
    _check_systems(given)
    _check_texts(given)
    baseline = _in_domain_set(given, [stores[resolved] for resolved in in_domain])
    if not any(store.is_of_ensemble for store in given):
        _log.warning(
            "io.store: has no decode by an ensemble, so there is no error detection and no OOD "
            "detection. A store whose ensemble has the name of its only member counts as a decode "
            "of that member by itself."
        )
    return GivenStores(given, baseline)


def _paths(value: Any) -> dict[Path, Path]:
    """The files of a setting that is null, a file or a list of files: resolved -> as given."""
    return {Path(file).resolve(): Path(file) for file in iterate_values(value) if file is not None}


def _validated(path: Path) -> GivenStore:
    for fault in validate(path):
        raise StoreError(fault)
    with open_store(path) as store:
        if warning := ranking_warning(store):
            _log.warning("%s", warning)
        return GivenStore.read(store)


def _check_one_task(stores: Sequence[GivenStore]) -> None:
    first = stores[0]
    for store in stores:
        if store.task != first.task:
            raise DataError(
                f"{store.path}: must be of the task of {first.path}, {first.task} (got "
                f"{store.task}). Run stages.metrics once per task; io.out can be the same."
            )
    if not any(store.regime in SEARCHES for store in stores):
        regimes = ", ".join(dict.fromkeys(store.regime for store in stores))
        raise ConfigError(
            f"io.store: must have a decode of regime {' or '.join(SEARCHES)} (got {regimes}). "
            "Add the store of the system's output."
        )


def _check_systems(stores: Sequence[GivenStore]) -> None:
    """Each store must add something, and the decodes of one ensemble must be alike."""
    seen: dict[tuple[object, ...], GivenStore] = {}
    largest: dict[str, GivenStore] = {}
    for store in stores:
        other = seen.setdefault((store.test_set, *store.system), store)
        if other is not store:
            raise DataError(
                f"{store.path}: must differ from {other.path} in its test set or system (got "
                f"{store.test_set}; {store.decoded_by}). Give one of "
                "them, or name them differently."
            )
        if store.is_of_ensemble:
            other = largest.setdefault(store.ensemble, store)
            if len(other.members) != len(store.members):
                raise DataError(
                    f"{store.path}: must have as many members as {other.path}, since both are of "
                    f"ensemble {store.ensemble} (got {len(store.members)} and "
                    f"{len(other.members)}). Name the ensembles differently; a decode by a single "
                    "member has the member's name as its ensemble."
                )


def _check_texts(stores: Sequence[GivenStore]) -> None:
    """Stores of one test set must have the same sentences."""
    first: dict[tuple[str, str], tuple[GivenStore, Sequence[str | None]]] = {}
    for store in stores:
        for what, texts in (("source", store.sources), ("reference", store.references)):
            if what == "reference" and all(text is None for text in texts):
                continue
            other, expected = first.setdefault((store.test_set, what), (store, texts))
            if list(texts) != list(expected):
                raise DataError(
                    f"{store.path}: must have the {what}s of {other.path}, since both are of test "
                    f"set {store.test_set} (got {_difference(texts, expected)}). Write stores of "
                    "the same sentences, or name the test sets differently."
                )


def _difference(texts: Sequence[str | None], expected: Sequence[str | None]) -> str:
    if len(texts) != len(expected):
        return f"{len(texts)} and {len(expected)} sentences"
    pairs = enumerate(zip(texts, expected, strict=True))
    return next(
        f"{ours!r} and {other!r} for sentence {number}"
        for number, (ours, other) in pairs
        if ours != other
    )


def _in_domain_set(stores: Sequence[GivenStore], baseline: Sequence[GivenStore]) -> str:
    """The test set of the baseline or, without one, the only test set."""
    test_sets = list(dict.fromkeys(store.test_set for store in stores))
    chosen = list(dict.fromkeys(store.test_set for store in baseline))
    if not chosen:
        if len(test_sets) > 1:
            raise ConfigError(
                f"io.baseline: must be set, since io.store has several test sets "
                f"({', '.join(test_sets)}). Set it to the store of the in-domain test set."
            )
        return test_sets[0]
    if len(chosen) > 1:
        raise ConfigError(
            f"io.baseline: must be of one test set (got {', '.join(chosen)}). Move the others to "
            "io.store."
        )
    if len(test_sets) == 1:
        raise ConfigError(
            f"io.baseline: must be of another test set than io.store (both are of {chosen[0]}). "
            "Leave it out, or give the test sets different names."
        )
    _check_comparable(stores, chosen[0])
    return chosen[0]


def _check_comparable(stores: Iterable[GivenStore], in_domain: str) -> None:
    """Warn about decodes of other test sets without an in-domain decode by the same system."""
    by_ensemble = [
        store for store in stores if store.is_of_ensemble and store.regime in (*SEARCHES, _FORCED)
    ]
    inside = [store for store in by_ensemble if store.test_set == in_domain]
    outside = [store for store in by_ensemble if store.test_set != in_domain]
    systems = {store.system for store in inside}
    alone = [store for store in outside if store.system not in systems]
    if len(alone) == len(outside):
        ours, theirs = (
            "; ".join(store.decoded_by for store in side) or "no ensemble"
            for side in (inside, outside)
        )
        raise ConfigError(
            f"io.baseline: must be decoded as the other test sets are, by the same ensemble, "
            f"members, combination and regime (got {ours}, and for the others {theirs}). Decode "
            "the in-domain test set in the same way, or leave io.baseline out."
        )
    for store in alone:
        _log.warning(
            "%s: no OOD detection, since %s was not decoded in the same way (%s)",
            store.path,
            in_domain,
            store.decoded_by,
        )
