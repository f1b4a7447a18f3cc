"""Decode every test set of a task with the ensemble, and where tables need it with its members."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from pipeline.config import PipelineConfig, implementation, plain
from pipeline.decoding.plan import Job, jobs
from pipeline.ensembles import Member
from pipeline.errors import ConfigError, DataError
from pipeline.parts import PartFolder, digest, file_sha256, write_json
from stages import code_digest, run, run_parts

_log = logging.getLogger(__name__)
# Settings of the search that scoring a given target does not use.
_SEARCH_ONLY = ("beam", "max_length_ratio", "max_length_offset", "settings", "_target_")
# Settings that say which jobs there are; what of them a job needs is in the job.
_PLAN_ONLY = ("name", "also", "regime", "combination")


def decode(config: PipelineConfig) -> None:
    """Write {io.root}/decode/{task}/: one store a job of pipeline.decoding.plan, ensemble.json."""
    root = Path(config.io.root)
    find_members = implementation(config.ensemble._target_, "ensemble._target_")
    members: list[Member] = find_members(root / "train" / config.task.name, config.ensemble)
    names = [member.name for member in members]
    plan = {
        job.name: job
        for job in jobs(config.ensemble.name, names, config.decode, config.task.test_sets)
    }
    _check_vocabulary(config, members)
    code = code_digest("decode", find_members, _search(config))
    folder = PartFolder(
        root / "decode" / config.task.name,
        {job.name: digest(code, *_content(config, job, members)) for job in plan.values()},
    )
    if config.part is None:
        made = run_parts(config, folder)
        write_json(folder.root / "ensemble.json", _ensemble(config, members))
        _log.info("decoded %d of %d parts into %s", len(made), len(plan), folder.root)
    elif config.part in plan:
        with folder.building(config.part) as part:
            row = list(plan).index(config.part)
            _decode_part(config, plan[config.part], members, part / "store.h5", row)
    else:
        raise ConfigError(f"part must be one of {', '.join(plan)}, got {config.part}")


def _decode_part(
    config: PipelineConfig, job: Job, ensemble: Sequence[Member], store: Path, row: int
) -> None:
    import torch

    from pipeline.decoding.ensemble import as_ensemble
    from pipeline.decoding.run import Decoder, decode_to_store
    from pipeline.decoding.teacher_forcing import score_targets
    from pipeline.decoding.test_set import read_test_set
    from pipeline.fairseq_bridge.models import load_dictionary, load_member

    torch.set_num_threads(1)
    source, target = (load_dictionary(path) for path in _dictionaries(config))
    members = [one for one in ensemble if one.name in job.members]
    model = as_ensemble(
        [load_member(one.description["model"], one.weights, source, target) for one in members]
    )
    search = score_targets if job.regime == "teacher_forcing" else _search(config)
    decode_to_store(
        Decoder(source, target, model, search, config.decode, config.dump),
        read_test_set(_test_set(config, job)),
        store,
        _attributes(config, job, members, model.vocab_size),
        f"decode {job.name}",
        row,
    )


def _search(config: PipelineConfig) -> Any:
    return implementation(config.decode._target_, "decode._target_")


def _attributes(
    config: PipelineConfig, job: Job, members: Sequence[Member], vocab_size: int
) -> dict[str, Any]:
    """Root attributes of a job's store."""
    beam = None if job.regime == "teacher_forcing" else config.decode.beam
    settings = {"job": asdict(job) | {"members": list(job.members)}, **_settings(config, job)}
    signature = {
        "task": config.task.name,
        "set": job.test_set,
        "ensemble": job.ensemble,
        "members": f"{len(members)}:{digest(*(one.sha256 for one in members))[:12]}",
        "regime": job.regime,
        "combination": job.combination,
        "beam": beam,
        "length_penalty": config.decode.length_penalty,
        "decode": digest(*_content(config, job, members))[:12],
    }
    return {
        "task": config.task.name,
        "test_set": job.test_set,
        "ensemble": job.ensemble,
        "regime": job.regime,
        "combination": job.combination,
        "beam": beam,
        "length_penalty": config.decode.length_penalty,
        "members": [one.name for one in members],
        "search_members": [one.name for one in members],
        "vocab_size": vocab_size,
        "config": yaml.safe_dump(settings, sort_keys=True, allow_unicode=True),
        "signature": "|".join(
            f"{key}:{value}" for key, value in signature.items() if value is not None
        ),
    }


def _content(config: PipelineConfig, job: Job, members: Sequence[Member]) -> list[Any]:
    """What a job's store is made from: settings and the sha256 of weights and files."""
    weights = [one.sha256 for one in members if one.name in job.members]
    files = [_test_set(config, job), *_dictionaries(config)]
    return [asdict(job), _settings(config, job), weights, [file_sha256(path) for path in files]]


def _settings(config: PipelineConfig, job: Job) -> dict[str, Any]:
    """The settings that enter the result of a job."""
    unused = _PLAN_ONLY + (_SEARCH_ONLY if job.regime == "teacher_forcing" else ())
    decode_settings = {
        key: value for key, value in plain(config.decode).items() if key not in unused
    }
    return {"decode": decode_settings, "dump": plain(config.dump)}


def _check_vocabulary(config: PipelineConfig, members: Sequence[Member]) -> None:
    path = _dictionaries(config)[1]
    found = file_sha256(path)
    for member in members:
        trained_with = member.description["vocabulary_sha256"]
        if trained_with != found:
            raise DataError(
                f"{path} must be the vocabulary that member {member.name} was trained with "
                f"(sha256 {trained_with}), got {found}: run python -m stages.train again"
            )


def _ensemble(config: PipelineConfig, members: Sequence[Member]) -> dict[str, Any]:
    return {
        "ensemble": config.ensemble.name,
        "members": [{"name": one.name, "seed": one.seed, "sha256": one.sha256} for one in members],
    }


def _prepared(config: PipelineConfig) -> Path:
    return Path(config.io.root) / "prepare" / config.task.name


def _test_set(config: PipelineConfig, job: Job) -> Path:
    return _existing(_prepared(config) / "test" / f"{job.test_set}.jsonl")


def _dictionaries(config: PipelineConfig) -> tuple[Path, Path]:
    folder = _prepared(config) / "fairseq"
    return (
        _existing(folder / f"dict.{config.task.source_language}.txt"),
        _existing(folder / f"dict.{config.task.target_language}.txt"),
    )


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    return path


if __name__ == "__main__":
    run(decode)
