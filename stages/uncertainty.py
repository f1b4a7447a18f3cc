"""Compute the measures of all ensemble decodes of a task, from the decode stores only."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, StoreError
from pipeline.quality.tokenisers import check_tokeniser, measure_rules
from pipeline.run.application import run
from pipeline.run.artifacts import Artifact, is_complete, new_artifact
from pipeline.run.code import provenance
from pipeline.run.files import new_files
from pipeline.run.points import is_multirun
from pipeline.run.settings import PipelineConfig, implementations, iterate_values
from pipeline.store import Store, check_stores, open_store, validate
from pipeline.store.ranking import ranking_warning
from pipeline.uncertainty.checks import inconsistencies
from pipeline.uncertainty.hypothesis_report import log_hypotheses
from pipeline.uncertainty.offline import (
    decodes_of_single_members,
    ensemble_decodes,
    write_measures,
    write_measures_of_single,
)
from pipeline.uncertainty.own_measures import HYPOTHESES, SENTENCES
from pipeline.uncertainty.sequence import Grid

_log = logging.getLogger(__name__)


def uncertainty(config: PipelineConfig) -> None:
    """Write sequence.parquet, token.parquet and checks.json for each ensemble decode of a task.

    They go to {io.root}/uncertainty/{task}/{part}/ or, for a single store io.store, to io.out.
    Searches of single members have no token.parquet, and only the measures of a single model.
    """
    grid = _grid(config)
    if config.io.store is not None:
        _log_run([_measure_one(config, grid, config.io.store)])
        return
    if config.io.out is not None or config.io.member_stores:
        raise ConfigError("io.out, io.member_stores: need io.store. Set it, or leave them out.")
    decodes = Path(config.io.root) / "decode" / config.task.name
    with ExitStack() as stack:
        parts = Artifact(decodes, "decode").parts()
        paths = {part: decodes / part / "store.h5" for part in parts}
        check_stores(paths.values())
        stores = {part: stack.enter_context(open_store(path)) for part, path in paths.items()}
        folder = Path(config.io.root) / "uncertainty" / config.task.name
        functions = (*grid.extra_measures.values(), *grid.hypothesis_measures.values())
        made_from = provenance(config, "uncertainty", parts, *functions)
        if is_multirun() and is_complete(folder, made_from):
            _log.info("%s: complete, and not made again", folder)
            return
        out = stack.enter_context(new_artifact(folder, made_from))
        measured = []
        for part, store, members in ensemble_decodes(stores):
            (out / part).mkdir()
            checks = write_measures(store, out / part, grid, members)
            measured.append(_warned(store, checks, folder / part))
        for part, store in decodes_of_single_members(stores):
            (out / part).mkdir()
            checks = write_measures_of_single(store, out / part, grid)
            measured.append(_warned(store, checks, folder / part))
    _log_run(measured)


def _measure_one(config: PipelineConfig, grid: Grid, path: Any) -> dict[str, Any]:
    if not isinstance(path, str):
        raise ConfigError(
            f"io.store: must be one store for stage uncertainty (got {len(path)}). Run it once per "
            "store, or run stages.metrics, which takes several."
        )
    if config.io.out is None:
        raise ConfigError("io.out: missing. Set it to the folder for the results of io.store.")
    out = Path(config.io.out)
    for store_path in (path, *config.io.member_stores):
        # These files may come from other software, so their values are checked first.
        for fault in validate(store_path):
            raise StoreError(fault)
    with new_files(out, "io.out") as folder, ExitStack() as stack:
        store = stack.enter_context(open_store(path))
        if warning := ranking_warning(store):
            _log.warning("%s", warning)
        members = [stack.enter_context(open_store(path)) for path in config.io.member_stores]
        return _warned(store, write_measures(store, folder, grid, members), out)


def _warned(store: Store, checks: dict[str, Any], final: Path) -> dict[str, Any]:
    """Return checks.json, which will be in the folder `final`, after a warning of its findings."""
    for found in inconsistencies(checks):
        _log.warning("%s: %s; see %s", store.path, found, final / "checks.json")
    for name, count in checks["sentences_without_own_measure"].items():
        if count:
            _log.warning("%s: %s is NaN in %d sentences with a hypothesis", store.path, name, count)
    if checks["identical_members"]:
        _log.warning("%s: identical members %s", store.path, checks["identical_members"])
    return checks


def _log_run(measured: list[dict[str, Any]]) -> None:
    """Log what was measured, once per run; `measured` is the checks.json of each store."""
    names = ("sentences", "sentences_without_hypothesis", "tokens")
    counts = [sum(checks[name] for checks in measured) for name in names]
    _log.info(
        "measures of %d decodes: %d sentences (%d without a hypothesis), %d tokens",
        len(measured),
        *counts,
    )
    log_hypotheses(measured)


def _grid(config: PipelineConfig) -> Grid:
    settings = config.uncertainty
    rules = measure_rules(config)
    check_tokeniser(rules.bleu_tokeniser)
    return Grid(
        beam=list(iterate_values(settings.beam)),
        temperature=list(iterate_values(settings.temperature)),
        length_norm=list(iterate_values(settings.length_norm)),
        rules=rules,
        extra_measures=implementations(settings.extra_measures, SENTENCES),
        hypothesis_measures=implementations(settings.hypothesis_measures, HYPOTHESES),
    )


if __name__ == "__main__":
    run(uncertainty, needs_root=True, uses=("store", "member_stores", "out"))
