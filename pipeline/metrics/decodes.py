"""The 1-best hypotheses of a task's decode stores, and replicates, which share a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import CHECKPOINT_AVERAGE, NO_REFERENCE, Cell, Key
from pipeline.metrics.training_runs import joined_runs, read_member_runs, run_of_member
from pipeline.quality.normalisation import normalised
from pipeline.quality.weighted_metric import FloatArray
from pipeline.run.files import digest
from pipeline.run.settings import TaskConfig
from pipeline.store import SEARCHES, Store, check_stores, open_store

# (hypotheses, references) -> error [sentence] in percent
SentenceErrors = Callable[[Sequence[str], Sequence[str]], FloatArray]
_Item = TypeVar("_Item")
_FEWEST_MEMBERS = 3  # of an ensemble that one member can be left out of


@dataclass(frozen=True)
class Decode:
    """The 1-best hypotheses of one store.

    `sources`, `texts` and `references` are [sentence], with None for a missing text. `members` are
    the members that decoded, and `member_runs` [member] their training runs. `groups` and
    `originals` are [sentence] or None: the group of sentences (a page, a recording, a speaker) and
    the sentence that each was made from. `cell` holds the key, corpus, training runs and signature
    that all cells of the store share. `in_domain` is a setting of the test set.
    """

    path: Path
    cell: Cell
    in_domain: bool
    members: tuple[str, ...]
    sources: list[str]
    texts: list[str | None]
    references: list[str | None]
    groups: list[str] | None = None
    originals: list[str] | None = None
    member_runs: tuple[str, ...] = ()

    @property
    def runs(self) -> list[str]:
        """The training runs of the members, without repetitions."""
        return list(dict.fromkeys(self.member_runs))

    @property
    def runs_to_leave_out(self) -> list[str]:
        """The training runs that an ensemble can do without: each gave one of three or more."""
        runs = self.runs
        return runs if len(runs) == len(self.members) >= _FEWEST_MEMBERS else []

    @property
    def is_search(self) -> bool:
        """Whether the first hypothesis is the output of the system."""
        return self.cell.regime in SEARCHES

    @property
    def is_forced(self) -> bool:
        """Whether the hypotheses are the references."""
        return self.cell.regime == "teacher_forcing"

    @property
    def is_ensemble(self) -> bool:
        """Whether the decode is of an ensemble; an ensemble may have one member."""
        return self.cell.ensemble != "single"

    @property
    def scorable(self) -> NDArray[np.bool_]:
        """Which sentences have both a hypothesis and a reference, [sentence]."""
        return np.array(
            [
                text is not None and reference is not None
                for text, reference in zip(self.texts, self.references, strict=True)
            ],
            dtype=bool,
        )

    @property
    def why_not_scorable(self) -> str:
        """Why no sentence of the store can be scored."""
        if not self.texts:
            return "the test set has no sentence"
        if all(reference is None for reference in self.references):
            return NO_REFERENCE
        if all(text is None for text in self.texts):
            return "no hypothesis"
        return "no sentence has both a hypothesis and a reference"

    def resampling_groups(self, unit: str) -> tuple[list[str], str]:
        """What the bootstrap draws, [sentence], and its name in signatures.

        With `unit` "group" these are the groups of the store; each sentence is a group if the store
        has none. With "sentence" they are original sentences, which test sets share if they were
        made of the same ones.
        """
        if unit == "group" and self.groups is not None:
            return self.groups, "group"
        sentences = self.originals or [
            f"{self.cell.test_set}:{number}" for number in range(len(self.texts))
        ]
        return sentences, "sentence" if unit == "sentence" else "sentence, no groups"

    def scored_texts(self, used: NDArray[np.bool_]) -> tuple[list[str], list[str]]:
        """Hypotheses and references of the sentences in use, which must be scorable, in NFC."""
        sentences = np.flatnonzero(used)
        hypotheses, references = (
            normalised([str(texts[i]) for i in sentences])
            for texts in (self.texts, self.references)
        )
        return hypotheses, references

    def errors_percent(self, sentence_errors: SentenceErrors) -> FloatArray:
        """Error of each sentence in percent, [sentence]; NaN where it cannot be scored."""
        errors = np.full(len(self.texts), np.nan)
        scorable = self.scorable
        errors[scorable] = sentence_errors(*self.scored_texts(scorable))
        return errors


def read_decodes(folder: Path, parts: Iterable[str], task: TaskConfig) -> dict[str, Decode]:
    """Part -> decode, from the stores {folder}/{part}/store.h5.

    A store was decoded by a single member if its ensemble has the name of its only member, and by
    an averaged model if its ensemble is `checkpoint_average`; neither has a combination. The
    training runs of members come from {folder}/ensemble.json or, without it, from their names.
    Raises StoreError if a store cannot be read, DataError if its test set is not one of the task.
    """
    paths = {part: folder / part / "store.h5" for part in parts}
    check_stores(paths.values())
    member_runs = read_member_runs(folder / "ensemble.json")
    decodes = {}
    for part, path in paths.items():
        with open_store(path) as store:
            decodes[part] = _read_decode(store, task, member_runs)
    return decodes


def _read_decode(store: Store, task: TaskConfig, member_runs: Mapping[str, str]) -> Decode:
    test_set = str(store.attributes.get("test_set", ""))
    if test_set not in task.test_sets:
        raise DataError(
            f"{store.path}: attribute test_set must be one of {', '.join(task.test_sets)} "
            f"(got {test_set!r}). Run python -m stages.decode again."
        )
    ensemble = str(store.attributes.get("ensemble", ""))
    single = [ensemble] == store.members
    settings = task.test_sets[test_set]
    runs = tuple(member_runs.get(name) or run_of_member(name) for name in store.members)
    hypotheses = "-" if single or ensemble == CHECKPOINT_AVERAGE else store.combination
    cell = Cell(
        task=task.name,
        test_set=test_set,
        ensemble="single" if single else ensemble,
        hypotheses="reference" if store.regime == "teacher_forcing" else hypotheses,
        regime=store.regime,
        data=settings.corpus,
        runs=joined_runs(runs),
        members=len(store.members),
        signature=str(store.attributes.get("signature") or _unsigned(store)),
        roles=" ".join(settings.roles),
        task_label=task.label or "",
        family=task.family,
    )
    return Decode(
        store.path,
        cell,
        settings.in_domain,
        tuple(store.members),
        store.sources(),
        store.best_texts(),
        store.references(),
        store.groups(),
        store.originals(),
        runs,
    )


def _unsigned(store: Store) -> str:
    """The signature of a store without one, as other toolkits write them."""
    names = {"task": "task", "test_set": "set", "ensemble": "ensemble"}
    known = {short: store.attributes.get(name, "") for name, short in names.items()}
    known |= {"regime": store.regime, "combination": store.combination}
    return "|".join(f"{name}:{value}" for name, value in known.items())


def by_key(items: Iterable[_Item], decode_of: Callable[[_Item], Decode]) -> list[list[_Item]]:
    """Group items by the key of their decode, in their order.

    Decodes of one key are replicates: single members, or ensembles of one kind from several
    training runs. A cell is the mean over its replicates.
    """
    items_of_key: dict[Key, list[_Item]] = {}
    for item in items:
        items_of_key.setdefault(decode_of(item).cell.key, []).append(item)
    return list(items_of_key.values())


def decodes_by_key(decodes: Iterable[Decode]) -> list[list[Decode]]:
    """Group decodes into replicates, in their order."""
    return by_key(decodes, lambda decode: decode)


def common_cell(decodes: Sequence[Decode]) -> Cell:
    """The common fields of the cells of replicates; several signatures become one digest.

    Raises DataError if the decodes have different numbers of sentences.
    """
    sizes = {len(decode.texts) for decode in decodes}
    if len(sizes) > 1:
        raise DataError(
            f"{decodes[0].path}: the decodes of {decodes[0].cell.test_set} must have the same "
            f"sentences (got {sorted(sizes)} sentences). Run python -m stages.decode again."
        )
    cell = decodes[0].cell
    if len(decodes) == 1 and cell.ensemble != "single":
        return cell
    signatures = digest(*(decode.cell.signature for decode in decodes))[:12]
    counted = "members" if cell.ensemble == "single" else "ensembles"
    signature = (
        f"task:{cell.task}|set:{cell.test_set}|ensemble:{cell.ensemble}|{counted}:{len(decodes)}"
        f"|regime:{cell.regime}|decodes:{signatures}"
    )
    runs = joined_runs(run for decode in decodes for run in decode.runs)
    members = max(decode.cell.members for decode in decodes)
    return replace(cell, signature=signature, runs=runs, members=members)


def runs_of_each(decodes: Sequence[Decode]) -> list[str]:
    """The training runs of each decode, as its cells name them."""
    return [decode.cell.runs for decode in decodes]


def scorable_in_all(decodes: Sequence[Decode]) -> NDArray[np.bool_]:
    """Which sentences have a hypothesis and a reference in every decode, [sentence]."""
    return np.asarray(np.stack([decode.scorable for decode in decodes]).all(axis=0))
