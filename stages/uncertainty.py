"""Compute every measure of every ensemble decode of a task, from the decode stores alone."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from pathlib import Path

from pipeline.errors import ConfigError, StoreError
from pipeline.run.application import run
from pipeline.run.artifacts import Artifact, new_artifact
from pipeline.run.code import provenance
from pipeline.run.files import new_files
from pipeline.run.settings import PipelineConfig, implementation, iterate_values
from pipeline.store import SUBSET, Store, check_stores, open_store, validate
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid

_log = logging.getLogger(__name__)


def uncertainty(config: PipelineConfig) -> None:
    """Write {io.root}/uncertainty/{task}/{part}/, or io.out for the one store io.store.

    A folder holds sequence.parquet, token.parquet and checks.json.
    """
    grid = _grid(config)
    if config.io.store is not None:
        _measure_one(config, grid, config.io.store)
        return
    if config.io.out is not None or config.io.member_stores:
        raise ConfigError("io.out and io.member_stores must come with io.store, got none")
    decodes = Path(config.io.root) / "decode" / config.task.name
    with ExitStack() as stack:
        parts = Artifact(decodes, "decode").parts()
        paths = {part: decodes / part / "store.h5" for part in parts}
        check_stores(paths.values())
        stores = {part: stack.enter_context(open_store(path)) for part, path in paths.items()}
        singles = [store for store in stores.values() if _is_single_member(store)]
        folder = Path(config.io.root) / "uncertainty" / config.task.name
        plug_ins = grid.extra.values()
        out = stack.enter_context(
            new_artifact(folder, provenance(config, "uncertainty", parts, *plug_ins))
        )
        for part, store in stores.items():
            if not (_is_single_member(store) or store.attributes.get("ensemble") == SUBSET):
                (out / part).mkdir()
                members = [one for one in singles if _decodes_same(one, store)]
                _measure(config, grid, store, out / part, members)


def _measure_one(config: PipelineConfig, grid: Grid, path: str) -> None:
    if config.io.out is None:
        raise ConfigError("io.out must name the folder for the results of io.store, got none")
    out = Path(config.io.out)
    # Whoever wrote these files, no value of theirs has been checked yet.
    for fault in (fault for one in (path, *config.io.member_stores) for fault in validate(one)):
        raise StoreError(fault)
    with new_files(out, "io.out") as folder, ExitStack() as stack:
        store = stack.enter_context(open_store(path))
        members = [stack.enter_context(open_store(one)) for one in config.io.member_stores]
        _measure(config, grid, store, folder, members)


def _measure(
    config: PipelineConfig, grid: Grid, store: Store, folder: Path, members: list[Store]
) -> None:
    checks = write_measures(store, folder, grid, config.uncertainty.eos, members)
    _log.info(
        "%s: measures of %d sentences, %d of them without a hypothesis, %d tokens",
        store.path,
        checks["sentences"],
        checks["sentences_without_hypothesis"],
        checks["tokens"],
    )
    if not checks["ok"]:
        _log.warning("%s breaks a rule of its own numbers: see checks.json", store.path)
    if checks["identical_members"]:
        _log.warning("%s has identical members: %s", store.path, checks["identical_members"])


def _grid(config: PipelineConfig) -> Grid:
    settings = config.uncertainty
    return Grid(
        beam=list(iterate_values(settings.beam)),
        temperature=list(iterate_values(settings.temperature)),
        length_norm=list(iterate_values(settings.length_norm)),
        weights_from=settings.weights_from,
        extra={
            name: implementation(dotted, f"uncertainty.extra_measures.{name}")
            for name, dotted in settings.extra_measures.items()
        },
    )


def _is_single_member(store: Store) -> bool:
    """Whether a member decoded alone; an ensemble that happens to have one member is none."""
    return store.n_member == 1 and store.attributes.get("ensemble") == store.members[0]


def _decodes_same(single: Store, store: Store) -> bool:
    same = all(
        single.attributes.get(name) == store.attributes.get(name) for name in ("test_set", "regime")
    )
    return same and single.members[0] in store.members


if __name__ == "__main__":
    run(uncertainty)
