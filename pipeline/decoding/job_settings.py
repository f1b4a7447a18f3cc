"""What of the settings a job uses, and the root attributes of its store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import yaml

from pipeline.config import DecodeConfig, DumpConfig, plain
from pipeline.decoding.plan import Job

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
