"""The parts of the decode stage for a task, with one store each; their shards and sizes."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from pipeline.ensembles import Ensemble
from pipeline.errors import ConfigError, MachineError
from pipeline.run.settings import DecodeConfig, DumpConfig, TestSetConfig
from pipeline.statistics.subsets import subsets
from pipeline.store import SEARCHES, SUBSET
from pipeline.store.statistics import n_columns

_Item = TypeVar("_Item")
_LABEL = re.compile(r"(?P<part>.+)@(?P<number>[0-9]+)of(?P<count>[1-9][0-9]*)")
_FLOAT_BYTES, _ID_BYTES = 4, 8
_CANDIDATE_BYTES = _FLOAT_BYTES + 2 * _ID_BYTES


@dataclass(frozen=True)
class Part:
    """One decode of one test set: one unit of the decode stage's work, and one store.

    name: of the part's folder. ensemble: the kind of ensemble, the member's name for a decode by a
    single member, or `subset`. ensemble_name: the ensemble that the members belong to.
    search_members: the `members` that find the hypotheses. takes_hypotheses: whether they come from
    the file that `decode.hypotheses` names. The fields are part of the store format; see
    `pipeline.decoding.inputs.settings_of`.
    """

    name: str
    test_set: str
    ensemble: str
    ensemble_name: str
    members: tuple[str, ...]
    regime: str
    combination: str
    search_members: tuple[str, ...]
    takes_hypotheses: bool


def plan_parts(
    main: Sequence[Ensemble],
    further: Sequence[Ensemble],
    decode: DecodeConfig,
    test_sets: Mapping[str, TestSetConfig],
) -> list[Part]:
    """The parts of a task, those that take longest first.

    - The main ensembles decode every test set whose `regimes` include search, with
      `decode.combination` and, if `decode.also` has expr, with ExPr.
    - Their members decode alone: in-domain sets if `decode.also` has members, OOD sets if it has
      members_ood.
    - `decode.subsets_per_size` subsets of each number of members decode in-domain sets, if the
      regime is a search.
    - Further ensembles decode the same test sets with `decode.combination`.
    - References are scored by teacher forcing if `decode.also` has teacher_forcing: those of
      searched in-domain sets, and of sets whose `regimes` include it. If `decode.regime` is
      teacher_forcing, these are the only parts.

    Raises ConfigError if decode.search_members are not members of the main ensembles, or if the
    regime is not a search.
    """
    _check_search(decode, main)
    plan: list[Part] = []
    if decode.regime != "teacher_forcing":
        plan += _searches(main, further, decode, test_sets)
    if "teacher_forcing" in (decode.regime, *decode.also):
        plan += _scorings([*main, *further], decode, test_sets)
    return list({part.name: part for part in plan}.values())


def _searches(
    main: Sequence[Ensemble],
    further: Sequence[Ensemble],
    decode: DecodeConfig,
    test_sets: Mapping[str, TestSetConfig],
) -> Iterator[Part]:
    searched = [name for name, test_set in test_sets.items() if "search" in test_set.regimes]
    in_domain = [name for name in searched if test_sets[name].in_domain]
    combinations = [decode.combination, *(["expr"] if "expr" in decode.also else [])]
    for combination in combinations:
        for ensemble in main:
            for name in searched:
                part = _part(ensemble, name, decode.regime, combination)
                yield _with_search_members(part, decode)
    for ensemble in further:
        for name in searched:
            yield _part(ensemble, name, decode.regime, decode.combination)
    by_members = [
        name
        for name in searched
        if ("members" if name in in_domain else "members_ood") in decode.also
    ]
    for ensemble in main:
        yield from _parts_of_members(ensemble, by_members, decode.regime)
        for combination in combinations if decode.regime in SEARCHES else ():
            yield from _parts_of_subsets(ensemble, in_domain, decode, combination)


def _scorings(
    ensembles: Sequence[Ensemble], decode: DecodeConfig, test_sets: Mapping[str, TestSetConfig]
) -> Iterator[Part]:
    for ensemble in ensembles:
        for name, test_set in test_sets.items():
            is_searched = "search" in test_set.regimes
            if (test_set.in_domain and is_searched) or "teacher_forcing" in test_set.regimes:
                yield _part(ensemble, name, "teacher_forcing", decode.combination)


def _part(ensemble: Ensemble, test_set: str, regime: str, combination: str) -> Part:
    kind = regime if regime == "teacher_forcing" else combination
    members = ensemble.member_names
    return Part(
        f"{ensemble.name}.{kind}.{test_set}",
        test_set,
        ensemble.kind,
        ensemble.name,
        members,
        regime,
        combination,
        members,
        False,
    )


def _parts_of_members(ensemble: Ensemble, test_sets: Sequence[str], regime: str) -> Iterator[Part]:
    for member in ensemble.member_names:
        for test_set in test_sets:
            yield replace(
                _part(ensemble, test_set, regime, "prex"),
                name=f"{member}.{regime}.{test_set}",
                ensemble=member,
                members=(member,),
                search_members=(member,),
            )


def _parts_of_subsets(
    ensemble: Ensemble, test_sets: Sequence[str], decode: DecodeConfig, combination: str
) -> Iterator[Part]:
    names = ensemble.member_names
    for size in range(2, len(names)):
        for subset in subsets(len(names), size, decode.subsets_per_size, decode.seed):
            members = tuple(names[index] for index in subset)
            label = "_".join(str(index + 1) for index in subset)
            for test_set in test_sets:
                yield replace(
                    _part(ensemble, test_set, decode.regime, combination),
                    name=f"{ensemble.name}.subset_{label}.{combination}.{test_set}",
                    ensemble=SUBSET,
                    members=members,
                    search_members=members,
                )


def _with_search_members(part: Part, decode: DecodeConfig) -> Part:
    if part.regime not in SEARCHES:
        return part
    chosen = tuple(name for name in decode.search_members if name in part.members)
    return replace(
        part, search_members=chosen or part.members, takes_hypotheses=decode.hypotheses is not None
    )


def _check_search(decode: DecodeConfig, main: Sequence[Ensemble]) -> None:
    chosen = list(decode.search_members)
    names = ", ".join(chosen)
    for ensemble in main:
        if chosen and not set(chosen) & set(ensemble.member_names):
            raise ConfigError(
                f"decode.search_members: no member of ensemble {ensemble.name} (got {names}). "
                f"Add one of {', '.join(ensemble.member_names)}."
            )
    members = {name: None for ensemble in main for name in ensemble.member_names}
    if set(chosen) - set(members) or len(set(chosen)) < len(chosen):
        raise ConfigError(
            f"decode.search_members: must be distinct members of the ensemble (got {names}). "
            f"Choose from {', '.join(members)}."
        )
    if decode.hypotheses is not None and chosen:
        raise ConfigError(
            f"decode.search_members: must be [] if decode.hypotheses is set (got {names}). "
            f"Set only one of them."
        )
    if decode.regime not in SEARCHES and (chosen or decode.hypotheses is not None):
        raise ConfigError(
            f"decode.search_members, decode.hypotheses: need decode.regime=beam or greedy "
            f"(got {decode.regime}). Remove them or change the regime."
        )


@dataclass(frozen=True)
class Shard:
    """Every `count`-th block of a part, starting at block `number`, counted from 1."""

    number: int
    count: int

    def own(self, blocks: Sequence[_Item]) -> Sequence[_Item]:
        """The blocks of this shard."""
        return blocks[self.number - 1 :: self.count]

    def label(self, part: str) -> str:
        """The value of setting `part` for this shard."""
        return f"{part}@{self.number}of{self.count}"


def shards(count: int, n_block: int) -> list[Shard]:
    """At most `count` shards of a part with `n_block` blocks; [] if one job decodes all of it."""
    used = min(count, n_block)
    return [Shard(number, used) for number in range(1, used + 1)] if used > 1 else []


def shard_of(label: str) -> tuple[str, Shard | None]:
    """The part that a value of setting `part` names, and the shard, if it names one."""
    match = _LABEL.fullmatch(label)
    if match is None or not 1 <= int(match["number"]) <= int(match["count"]):
        return label, None
    return match["part"], Shard(int(match["number"]), int(match["count"]))


class EnsembleSize(Protocol):
    """The properties of an ensemble on which the size of a part depends."""

    @property
    def n_member(self) -> int:
        """Number of members that score."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens of their vocabulary."""


@dataclass(frozen=True)
class PartSize:
    """Expected size of one part; memory: the largest arrays of a batch, without the weights."""

    sentences: int
    tokens: int
    disk_bytes: int
    memory_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.sentences} sentences, about {self.tokens} tokens, {_at_most(self.disk_bytes)} "
            f"of disk and {_at_most(self.memory_bytes)} of memory besides the weights"
        )


def _at_most(n_byte: int) -> str:
    return "less than 1 MiB" if n_byte < 2**20 else f"at most {n_byte / 2**20:.0f} MiB"


def part_size(
    expected_tokens: Iterable[int],
    model: EnsembleSize,
    regime: str,
    combination: str,
    decode: DecodeConfig,
    dump: DumpConfig,
) -> PartSize:
    """Expected size of a part whose hypotheses have expected_tokens [sentence].

    The disk space is estimated as two uncompressed stores, because blocks exist until they are
    joined.
    """
    n_hypothesis = 1
    rows = decode.beam
    if regime == "sample":
        rows *= model.n_member if combination == "member" else 1
        n_hypothesis = rows
    elif regime in SEARCHES:
        n_hypothesis = decode.n_best or decode.beam
    n_sentence = n_token = 0
    for count in expected_tokens:
        n_sentence += 1
        n_token += count
    tokens = n_token * n_hypothesis
    memory = decode.batch_sentences * rows * model.n_member * model.vocab_size * _FLOAT_BYTES
    return PartSize(n_sentence, tokens, 2 * tokens * _token_bytes(model, dump), memory)


def sent_bytes(n_member: int, regime: str) -> int:
    """Bytes that a decode on an accelerator sends to the host per prefix.

    They are the statistics and, of a search, score, position and token of two candidates per
    prefix; of a sample, its token.
    """
    tokens = 2 * _CANDIDATE_BYTES if regime in SEARCHES else _ID_BYTES if regime == "sample" else 0
    return n_columns(n_member) * _FLOAT_BYTES + tokens


def check_disk_space(size: PartSize, folder: Path, name: str) -> None:
    """Raise MachineError if the disk of a folder has no room for a part of this size."""
    free_bytes = shutil.disk_usage(folder).free
    if size.disk_bytes > free_bytes:
        raise MachineError(
            f"{folder}: no room for {name} ({size}; {free_bytes / 2**20:.0f} MiB free). "
            f"Choose dump=statistics, dump=topk or fewer sentences."
        )


def _token_bytes(model: EnsembleSize, dump: DumpConfig) -> int:
    statistics = (n_columns(model.n_member) + 1) * _FLOAT_BYTES  # and the token id
    if dump.kind == "full":
        return statistics + model.n_member * model.vocab_size * np.dtype(dump.dtype).itemsize
    if dump.kind == "topk":
        return statistics + ((1 + model.n_member) * dump.k + model.n_member) * _FLOAT_BYTES
    return statistics
