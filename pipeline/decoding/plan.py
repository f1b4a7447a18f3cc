"""Which decodes a task needs: one job a store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import yaml

from pipeline.ensembles import Ensemble
from pipeline.errors import ConfigError
from pipeline.run.settings import DecodeConfig, DumpConfig, TestSetConfig, plain
from pipeline.statistics.subsets import subsets as drawn_subsets
from pipeline.store import SEARCHES, SUBSET


@dataclass(frozen=True)
class Job:
    """One decode of one test set; `name` is the part that holds its store.

    ensemble: its kind, the member's name where that decodes alone, or `subset`; ensemble_name: the
    ensemble that members belong to; search_members: those of `members` that find the hypotheses;
    takes_hypotheses: they come from the store that `decode.hypotheses` names instead.
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


def jobs(
    main: Sequence[Ensemble],
    further: Sequence[Ensemble],
    decode: DecodeConfig,
    test_sets: Mapping[str, TestSetConfig],
) -> list[Job]:
    """The jobs of a task, those that take longest first.

    Every test set that is to be searched, by the main ensembles with `decode.combination` and,
    where `decode.also` has expr, by that posterior. By each of their members alone on in-domain
    sets where it has members, on the others where it has members_ood. By `decode.subsets_per_size`
    subsets of every number of members between one and all on in-domain sets, where the regime
    searches. By further ensembles with `decode.combination` alone. The references by teacher
    forcing where it has that, or where that is the regime, which then searches nothing: in-domain
    sets, and those whose `regimes` ask for it. Raises ConfigError where the members that shall
    search are none of the main ensembles', or the regime does not search.
    """
    _check_search(decode, main)
    plan: list[Job] = []
    if decode.regime != "teacher_forcing":
        plan += _searches(main, further, decode, test_sets)
    if "teacher_forcing" in (decode.regime, *decode.also):
        plan += _scorings([*main, *further], decode, test_sets)
    return list({job.name: job for job in plan}.values())


def _searches(
    main: Sequence[Ensemble],
    further: Sequence[Ensemble],
    decode: DecodeConfig,
    test_sets: Mapping[str, TestSetConfig],
) -> Iterator[Job]:
    searched = [role for role, one in test_sets.items() if "search" in one.regimes]
    in_domain = [role for role in searched if test_sets[role].in_domain]
    combinations = [decode.combination, *(["expr"] if "expr" in decode.also else [])]
    for combination in combinations:
        for ensemble in main:
            for role in searched:
                job = _job(ensemble, role, decode.regime, combination)
                yield _with_searching(job, decode)
    for ensemble in further:
        for role in searched:
            yield _job(ensemble, role, decode.regime, decode.combination)
    by_members = [
        role
        for role in searched
        if ("members" if role in in_domain else "members_ood") in decode.also
    ]
    for ensemble in main:
        yield from _jobs_of_members(ensemble, by_members, decode.regime)
        for combination in combinations if decode.regime in SEARCHES else ():
            yield from _jobs_of_subsets(ensemble, in_domain, decode, combination)


def _scorings(
    ensembles: Sequence[Ensemble], decode: DecodeConfig, test_sets: Mapping[str, TestSetConfig]
) -> Iterator[Job]:
    for ensemble in ensembles:
        for role, one in test_sets.items():
            of_searched = one.in_domain and "search" in one.regimes
            if of_searched or "teacher_forcing" in one.regimes:
                yield _job(ensemble, role, "teacher_forcing", decode.combination)


def _job(ensemble: Ensemble, role: str, regime: str, combination: str) -> Job:
    kind = regime if regime == "teacher_forcing" else combination
    members = ensemble.member_names
    return Job(
        f"{ensemble.name}.{kind}.{role}",
        role,
        ensemble.kind,
        ensemble.name,
        members,
        regime,
        combination,
        members,
        False,
    )


def _jobs_of_members(ensemble: Ensemble, roles: Sequence[str], regime: str) -> Iterator[Job]:
    for member in ensemble.member_names:
        for role in roles:
            yield replace(
                _job(ensemble, role, regime, "prex"),
                name=f"{member}.{regime}.{role}",
                ensemble=member,
                members=(member,),
                search_members=(member,),
            )


def _jobs_of_subsets(
    ensemble: Ensemble, roles: Sequence[str], decode: DecodeConfig, combination: str
) -> Iterator[Job]:
    names = ensemble.member_names
    for size in range(2, len(names)):
        for places in drawn_subsets(len(names), size, decode.subsets_per_size, decode.seed):
            members = tuple(names[place] for place in places)
            label = "_".join(str(place + 1) for place in places)
            for role in roles:
                yield replace(
                    _job(ensemble, role, decode.regime, combination),
                    name=f"{ensemble.name}.subset_{label}.{combination}.{role}",
                    ensemble=SUBSET,
                    members=members,
                    search_members=members,
                )


def _with_searching(job: Job, decode: DecodeConfig) -> Job:
    if job.regime not in SEARCHES:
        return job
    chosen = tuple(one for one in decode.search_members if one in job.members)
    return replace(
        job, search_members=chosen or job.members, takes_hypotheses=decode.hypotheses is not None
    )


def _check_search(decode: DecodeConfig, main: Sequence[Ensemble]) -> None:
    chosen = list(decode.search_members)
    for ensemble in main:
        if chosen and not set(chosen) & set(ensemble.member_names):
            raise ConfigError(
                f"decode.search_members must have a member of ensemble {ensemble.name} "
                f"({', '.join(ensemble.member_names)}), got {', '.join(chosen)}"
            )
    members = {name: None for ensemble in main for name in ensemble.member_names}
    if set(chosen) - set(members) or len(set(chosen)) < len(chosen):
        raise ConfigError(
            f"decode.search_members must be distinct members of the ensemble "
            f"({', '.join(members)}), got {', '.join(chosen)}"
        )
    if decode.hypotheses is not None and chosen:
        raise ConfigError(
            f"decode.search_members must be [] where decode.hypotheses names a store, "
            f"got {', '.join(chosen)}"
        )
    if decode.regime not in SEARCHES and (chosen or decode.hypotheses is not None):
        raise ConfigError(
            f"decode.search_members and decode.hypotheses are for decode.regime=beam or greedy, "
            f"got decode.regime={decode.regime}"
        )


_Item = TypeVar("_Item")
_LABEL = re.compile(r"(?P<part>.+)@(?P<number>[0-9]+)of(?P<count>[1-9][0-9]*)")


@dataclass(frozen=True)
class Shard:
    """Every `count`-th block, from the one at place `number` on (counted from 1)."""

    number: int
    count: int

    def own(self, blocks: Sequence[_Item]) -> Sequence[_Item]:
        """The blocks of this shard."""
        return blocks[self.number - 1 :: self.count]

    def label(self, part: str) -> str:
        """What setting `part` says for this shard of a part."""
        return f"{part}@{self.number}of{self.count}"


def shards(count: int, n_block: int) -> list[Shard]:
    """The shards of a decode that is cut into `count` jobs; none where a job would do it all."""
    used = min(count, n_block)
    return [Shard(number, used) for number in range(1, used + 1)] if used > 1 else []


def shard_of(label: str) -> tuple[str, Shard | None]:
    """The part that setting `part` names, and the shard of it, if it names one."""
    found = _LABEL.fullmatch(label)
    if found is None or not 1 <= int(found["number"]) <= int(found["count"]):
        return label, None
    return found["part"], Shard(int(found["number"]), int(found["count"]))


_SAMPLING = ("sampling_temperature", "sampling_top_k", "sampling_top_p", "seed")
_SEARCH = ("n_best", "unk_penalty", "min_length")
_FINDING = ("beam", "max_length_ratio", "max_length_offset", "settings", "_target_")
# Settings that a regime does not use.
_UNUSED: dict[str, tuple[str, ...]] = {
    "beam": _SAMPLING,
    "greedy": _SAMPLING,
    "sample": _SEARCH,
    "teacher_forcing": (*_SAMPLING, *_SEARCH, *_FINDING),
}
# Settings that say which jobs there are, what of them a job needs is in the job; a path; a check;
# how the work is spread.
_NOT_IN_RESULT = (
    *("name", "also", "regime", "combination", "search_members"),
    *("hypotheses", "self_check", "parts_per_job", "shards", "subsets_per_size"),
)


def settings_of(job: Job, decode: DecodeConfig, dump: DumpConfig) -> dict[str, Any]:
    """The settings that enter the result of a job, as plain values."""
    unused = (*_NOT_IN_RESULT, *_UNUSED[job.regime])
    used = {key: value for key, value in plain(decode).items() if key not in unused}
    return {"decode": used, "dump": plain(dump), "job": asdict(job) | {"members": [*job.members]}}


def store_attributes(
    task: str,
    job: Job,
    settings: dict[str, Any],
    search_members: Sequence[str],
    vocab_size: int,
    digests: dict[str, str],
) -> dict[str, Any]:
    """Root attributes of a job's store; None: does not apply.

    settings: of `settings_of`; digests: `members` and `decode`, of the weights and of all that the
    result is made from.
    """
    used = settings["decode"]
    return {
        "task": task,
        "test_set": job.test_set,
        "ensemble": job.ensemble,
        "regime": job.regime,
        "combination": job.combination,
        "beam": used.get("beam"),
        # With a penalty the score is not that of the log-probabilities alone.
        "length_penalty": None if used.get("unk_penalty") else used["length_penalty"],
        **{name: used.get(name) for name in _SAMPLING},
        "sampling_top_k": used.get("sampling_top_k") or None,
        "members": list(job.members),
        "search_members": list(search_members),
        "vocab_size": vocab_size,
        "config": yaml.safe_dump(_yaml_plain(settings), sort_keys=True, allow_unicode=True),
        "signature": _signature(task, job, used, digests),
    }


def _signature(task: str, job: Job, used: dict[str, Any], digests: dict[str, str]) -> str:
    described = {
        "task": task,
        "set": job.test_set,
        "ensemble": job.ensemble,
        "members": f"{len(job.members)}:{digests['members'][:12]}",
        "regime": job.regime,
        "combination": job.combination,
        "beam": used.get("beam"),
        "length_penalty": used["length_penalty"],
        "temperature": used.get("sampling_temperature"),
        "seed": used.get("seed"),
        "decode": digests["decode"][:12],
    }
    return "|".join(f"{key}:{value}" for key, value in described.items() if value is not None)


def _yaml_plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _yaml_plain(one) for key, one in value.items()}
    return [_yaml_plain(one) for one in value] if isinstance(value, list | tuple) else value
