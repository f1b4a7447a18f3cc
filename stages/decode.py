"""Decode every test set of a task with the ensemble, and where tables need it with its members."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.config import PipelineConfig, TestSetConfig, implementation
from pipeline.decoding.job_settings import settings_of, store_attributes
from pipeline.decoding.plan import Job, jobs
from pipeline.ensembles import Member
from pipeline.errors import ConfigError, DataError
from pipeline.parts import PartFolder, digest, file_sha256, write_json
from stages import code_digest, run, run_parts

_log = logging.getLogger(__name__)


def decode(config: PipelineConfig) -> None:
    """Write {io.root}/decode/{task}/: one store a job of pipeline.decoding.plan, ensemble.json."""
    root = Path(config.io.root)
    find_members = implementation(config.ensemble._target_, "ensemble._target_")
    members: list[Member] = find_members(root / "train" / config.task.name, config.ensemble)
    names = [member.name for member in members]
    plan = {
        job.name: job
        for job in jobs(config.ensemble.name, names, config.decode, _test_sets(config))
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
            resume = root / "resume" / "decode" / config.task.name / config.part
            _remove_other_work(resume, folder.parts[config.part])
            resume /= folder.parts[config.part]
            _decode_part(config, plan[config.part], members, part / "store.h5", resume, row)
    else:
        raise ConfigError(f"part must be one of {', '.join(plan)}, got {config.part}")


def _decode_part(
    config: PipelineConfig,
    job: Job,
    ensemble: Sequence[Member],
    store: Path,
    resume: Path,
    row: int,
) -> None:
    import torch

    from pipeline.decoding.estimate import estimate, refuse_what_does_not_fit
    from pipeline.decoding.run import decode_to_store
    from pipeline.decoding.self_check import SELF_CHECK_SENTENCES, self_check
    from pipeline.decoding.start import decoder_of
    from pipeline.decoding.test_set import read_test_set
    from pipeline.fairseq_bridge.models import load_dictionary, load_member

    torch.set_num_threads(1)
    source, target = (load_dictionary(path) for path in _dictionaries(config))
    load = {
        one.name: partial(
            load_member,
            one.description["model"],
            one.weights,
            source,
            target,
            config.decode.device,
            config.decode.dtype,
        )
        for one in ensemble
    }
    test_set = read_test_set(_test_set(config, job))
    taken = _hypotheses(config, job)
    decoder = decoder_of(
        job,
        load,
        _search(config),
        (source, target),
        config.decode,
        config.dump,
        None if taken is None else (taken, test_set),
    )
    lengths = [len(one.source_pieces) + 1 for one in test_set]
    expected = estimate(
        lengths, decoder.model, job.regime, job.combination, config.decode, config.dump
    )
    _log.info("%s: %s", job.name, expected)
    refuse_what_does_not_fit(expected, store.parent, job.name)
    if config.decode.self_check:
        first = [one.encoded(source, target) for one in test_set[:SELF_CHECK_SENTENCES]]
        difference = self_check(decoder, first, job.combination)
        _log.info("%s: self-check passed, largest difference %.1e nats", job.name, difference)
    attributes = _attributes(config, job, ensemble, decoder.model.vocab_size)
    decode_to_store(decoder, test_set, store, attributes, f"decode {job.name}", resume, row)


def _remove_other_work(folder: Path, own: str) -> None:
    """Delete what was begun for a part with other settings, weights or code."""
    for path in folder.glob("*"):
        if path.name != own:
            shutil.rmtree(path)


def _search(config: PipelineConfig) -> Any:
    return implementation(config.decode._target_, "decode._target_")


def _attributes(
    config: PipelineConfig, job: Job, ensemble: Sequence[Member], vocab_size: int
) -> dict[str, Any]:
    from pipeline.store import open_store

    searching: Sequence[str] = job.search_members
    taken = _hypotheses(config, job)
    if taken is not None:
        with open_store(taken) as store:
            searching = store.attributes.get("search_members", [])
    weights = [one.sha256 for one in ensemble if one.name in job.members]
    digests = {
        "members": digest(*weights),
        "decode": digest(*_content(config, job, ensemble)),
    }
    settings = settings_of(job, config.decode, config.dump)
    return store_attributes(config.task.name, job, settings, searching, vocab_size, digests)


def _content(config: PipelineConfig, job: Job, ensemble: Sequence[Member]) -> list[Any]:
    """What a job's store is made from: settings and the sha256 of weights and files."""
    weights = [one.sha256 for one in ensemble if one.name in job.members]
    taken = _hypotheses(config, job)
    files = [_test_set(config, job), *_dictionaries(config), *([taken] if taken else [])]
    settings = settings_of(job, config.decode, config.dump)
    return [settings, weights, [file_sha256(path) for path in files]]


def _test_sets(config: PipelineConfig) -> dict[str, TestSetConfig]:
    """The test sets that could be prepared."""
    prepared = _existing(_prepared(config) / "manifest.json")
    absent = json.loads(prepared.read_text(encoding="utf-8")).get("absent_sets", {})
    for role, reason in absent.items():
        _log.info("no decode of %s, which is absent: %s", role, reason)
    return {role: one for role, one in config.task.test_sets.items() if role not in absent}


def _hypotheses(config: PipelineConfig, job: Job) -> Path | None:
    """The store whose hypotheses a job scores instead of searching."""
    if not job.takes_hypotheses or config.decode.hypotheses is None:
        return None
    path = Path(config.decode.hypotheses.replace("{test_set}", job.test_set))
    if not path.is_file():
        raise ConfigError(f"decode.hypotheses must name a decode store, got {path}, which is none")
    return path


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
    return _prepared_file(config, f"test/{job.test_set}.jsonl")


def _dictionaries(config: PipelineConfig) -> tuple[Path, Path]:
    return (
        _prepared_file(config, f"fairseq/dict.{config.task.source_language}.txt"),
        _prepared_file(config, f"fairseq/dict.{config.task.target_language}.txt"),
    )


def _prepared_file(config: PipelineConfig, name: str) -> Path:
    """A file of the prepared data; DataError where it is not as it was written, or missing."""
    path = _existing(_prepared(config) / name)
    manifest = json.loads((_prepared(config) / "manifest.json").read_text(encoding="utf-8"))
    written, found = manifest["files"].get(name), file_sha256(path)
    if found != written:
        raise DataError(
            f"{path} must have the sha256 that stage prepare wrote down, {written}, got {found}: "
            "run python -m stages.prepare again"
        )
    return path


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    return path


if __name__ == "__main__":
    run(decode)
