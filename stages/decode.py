"""Decode every test set of a task with the ensembles and, where tables need it, single members."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline.decoding.counts import lines_of_test_sets
from pipeline.decoding.diversity_report import diversity_report
from pipeline.decoding.gpus import gpu_count, use_gpu_of_job
from pipeline.decoding.inputs import Inputs, Prepared, check_weights
from pipeline.decoding.plan import Part, plan_parts, shard_of
from pipeline.ensembles import (
    chosen_ensembles,
    derived_folder,
    ensemble_functions,
    manifest,
    remove_unused,
)
from pipeline.errors import ConfigError
from pipeline.run.application import run
from pipeline.run.artifacts import PartFolder
from pipeline.run.code import code_digest
from pipeline.run.extras import check_extra_of
from pipeline.run.jobs import job_number, run_parts, run_shards
from pipeline.run.logs import DETAILS
from pipeline.run.settings import DecodeConfig, PipelineConfig, TestSetConfig, implementation

_log = logging.getLogger(__name__)


def decode(config: PipelineConfig) -> None:
    """Write {io.root}/decode/{task}/, with one store for each part of the plan.

    Beside them, ensemble.json describes the members and diversity.json how much they differ. For
    ensembles with a tokenizer of their own, vocabulary.json has the piece of every token id.
    """
    root, task = Path(config.io.root), config.task
    if not _root(config).exists():  # otherwise all parts may be complete
        check_extra_of(config.ensemble._target_, "stage decode")
    prepared = Prepared(root / "prepare" / task.name, task.source_language, task.target_language)
    chosen = chosen_ensembles(config.ensemble, root / "train" / task.name)
    code = code_digest("decode", *ensemble_functions(config.ensemble), *_plug_in(config.decode))
    inputs = Inputs(prepared, chosen.by_name, config.decode, config.dump, code)
    inputs.check_vocabularies()
    test_sets = _test_sets(config, prepared)
    plan = plan_parts(chosen.main, chosen.further, config.decode, test_sets)
    if config.part is None:
        _decode_all(config, inputs, plan)
    else:
        _decode_one(config, inputs, plan)


def _plug_in(decode: DecodeConfig) -> list[Callable[..., Any]]:
    """The search function, unless it is among the deps of this stage in dvc.yaml.

    Those import torch, which takes seconds, although all parts may be complete.
    """
    if decode._target_.startswith("pipeline.decoding."):
        return []
    return [implementation(decode._target_, "decode._target_")]


def _decode_all(config: PipelineConfig, inputs: Inputs, plan: list[Part]) -> None:
    ensembles = list(inputs.ensembles.values())
    members = [member for ensemble in ensembles for member in ensemble.members]
    check_weights(members)
    inputs.check_sources(plan[0].test_set)
    remove_unused(derived_folder(Path(config.io.root) / "train" / config.task.name), members)
    report = _root(config) / "diversity.json"
    beside = {"ensemble.json": manifest(ensembles), report.name: diversity_report(inputs, report)}
    if pieces := inputs.own_vocabularies():
        beside["vocabulary.json"] = pieces
    folder = _folder(config, inputs, plan, beside)
    n_missing = len(folder.missing())
    counts = len(plan) - n_missing, len(plan), n_missing
    _log.info("%s: %d of %d parts are reused, %d are decoded", folder.root, *counts)
    n_gpu = gpu_count(config.decode.device)
    run_shards(config, folder, {part.name: inputs.shard_labels(part) for part in plan}, n_gpu)
    decoded = run_parts(config, folder, config.decode.parts_per_job, n_gpu)
    for line in lines_of_test_sets(folder.root, plan, decoded):
        _log.info("%s", line)
    _log.info("decoded %d of %d parts into %s", len(decoded), len(plan), folder.root)


def _decode_one(config: PipelineConfig, inputs: Inputs, plan: list[Part]) -> None:
    from pipeline.decoding.part import decode_part, decode_shard

    if config.decode.device == "cuda":
        use_gpu_of_job(job_number())
    task = config.task.name
    name, shard = shard_of(str(config.part))
    row = {part.name: index for index, part in enumerate(plan)}
    if name not in row:
        raise ConfigError(f"part: no such part ({name}). Choose one of {', '.join(row)}.")
    part = plan[row[name]]
    folder = _folder(config, inputs, [part], {})
    resume = Path(config.io.root) / "resume" / "decode" / task / name / folder.parts[name]
    if shard is not None:
        decode_shard(inputs, task, part, shard, resume, row[name])
        return
    with folder.building(name) as building:
        decode_part(inputs, task, part, building / "store.h5", resume, row[name])


def _root(config: PipelineConfig) -> Path:
    return Path(config.io.root) / "decode" / config.task.name


def _folder(
    config: PipelineConfig, inputs: Inputs, plan: list[Part], beside: dict[str, Any]
) -> PartFolder:
    """The folder of all parts; only the parts of the plan have a digest."""
    parts = {part.name: inputs.provenance(part) for part in plan}
    return PartFolder(_root(config), "decode", parts, beside)


def _test_sets(config: PipelineConfig, prepared: Prepared) -> dict[str, TestSetConfig]:
    """The test sets that could be prepared."""
    absent = prepared.absent_sets()
    if config.part is None and absent:  # stage prepare has logged why
        log = _log if job_number() == 0 else DETAILS  # once for all points of a sweep
        log.info("not decoded, since they were not prepared: %s", ", ".join(absent))
    sets = config.task.test_sets.items()
    return {name: test_set for name, test_set in sets if name not in absent}


if __name__ == "__main__":
    run(decode, has_parts=True, needs_root=True)
