"""Which decodes a task needs: one job a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.config import DecodeConfig, TestSetConfig


@dataclass(frozen=True)
class Job:
    """One decode of one test set; `name` is the part that holds its store."""

    name: str
    test_set: str
    ensemble: str
    members: tuple[str, ...]
    regime: str
    combination: str


def jobs(
    ensemble: str,
    members: Sequence[str],
    decode: DecodeConfig,
    test_sets: Mapping[str, TestSetConfig],
) -> list[Job]:
    """The jobs of a task, those that take longest first.

    Every test set by the ensemble with `decode.combination`; in-domain sets also as `decode.also`
    asks: by the other posterior, by each member alone, and their references by teacher forcing.
    """
    everything = tuple(members)
    plan = [
        _job(ensemble, everything, role, decode.regime, decode.combination) for role in test_sets
    ]
    for role, test_set in test_sets.items():
        if not test_set.in_domain:
            continue
        if "expr" in decode.also:
            plan.append(_job(ensemble, everything, role, decode.regime, "expr"))
        if "members" in decode.also:
            for member in members:
                single = _job(member, (member,), role, decode.regime, "prex")
                plan.append(replace(single, name=f"{member}.{decode.regime}.{role}"))
        if "teacher_forcing" in decode.also:
            plan.append(_job(ensemble, everything, role, "teacher_forcing", decode.combination))
    return list({job.name: job for job in plan}.values())


def _job(ensemble: str, members: tuple[str, ...], role: str, regime: str, combination: str) -> Job:
    kind = regime if regime == "teacher_forcing" else combination
    return Job(f"{ensemble}.{kind}.{role}", role, ensemble, members, regime, combination)
