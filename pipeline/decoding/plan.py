"""Which decodes a task needs: one job a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.config import DecodeConfig, TestSetConfig
from pipeline.errors import ConfigError

_SEARCHES = ("beam", "greedy")


@dataclass(frozen=True)
class Job:
    """One decode of one test set; `name` is the part that holds its store.

    search_members: those of `members` that find the hypotheses; takes_hypotheses: they come from
    the store that `decode.hypotheses` names instead.
    """

    name: str
    test_set: str
    ensemble: str
    members: tuple[str, ...]
    regime: str
    combination: str
    search_members: tuple[str, ...]
    takes_hypotheses: bool


def jobs(
    ensemble: str,
    members: Sequence[str],
    decode: DecodeConfig,
    test_sets: Mapping[str, TestSetConfig],
) -> list[Job]:
    """The jobs of a task, those that take longest first.

    Every test set that is to be searched, by the ensemble with `decode.combination` and, where
    `decode.also` has expr, by that posterior. By each member alone where it has members, and the
    references by teacher forcing where it has that: in-domain sets, and for the latter those whose
    `regimes` ask for it. Raises ConfigError where the members that shall search are none of the
    ensemble's, or the regime does not search.
    """
    everything = tuple(members)
    _check_search(decode, everything)
    combinations = [decode.combination, *(["expr"] if "expr" in decode.also else [])]
    searched = {role: one for role, one in test_sets.items() if "search" in one.regimes}
    in_domain = [role for role, one in searched.items() if one.in_domain]
    plan = [
        _with_searching(_job(ensemble, everything, role, decode.regime, combination), decode)
        for combination in combinations
        for role in searched
    ]
    if "members" in decode.also:
        for member in members:
            for role in in_domain:
                single = _job(member, (member,), role, decode.regime, "prex")
                plan.append(replace(single, name=f"{member}.{decode.regime}.{role}"))
    if "teacher_forcing" in decode.also:
        plan += [
            _job(ensemble, everything, role, "teacher_forcing", decode.combination)
            for role, one in test_sets.items()
            if role in in_domain or "teacher_forcing" in one.regimes
        ]
    return list({job.name: job for job in plan}.values())


def _job(ensemble: str, members: tuple[str, ...], role: str, regime: str, combination: str) -> Job:
    kind = regime if regime == "teacher_forcing" else combination
    name = f"{ensemble}.{kind}.{role}"
    return Job(name, role, ensemble, members, regime, combination, members, False)


def _with_searching(job: Job, decode: DecodeConfig) -> Job:
    if job.regime not in _SEARCHES:
        return job
    searching = tuple(decode.search_members) or job.members
    return replace(job, search_members=searching, takes_hypotheses=decode.hypotheses is not None)


def _check_search(decode: DecodeConfig, members: tuple[str, ...]) -> None:
    chosen = list(decode.search_members)
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
    if decode.regime not in _SEARCHES and (chosen or decode.hypotheses is not None):
        raise ConfigError(
            f"decode.search_members and decode.hypotheses are for decode.regime=beam or greedy, "
            f"got decode.regime={decode.regime}"
        )
