"""Decodes that stand for others: averages of checkpoints, and ensembles without one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.metrics.cell import CHECKPOINT_AVERAGE
from pipeline.metrics.decodes import Decode
from pipeline.run.settings import PipelineConfig
from pipeline.store import SUBSET

_CHECKPOINT = "checkpoint"


def averaged_runs(config: PipelineConfig, decodes: Mapping[str, Decode]) -> frozenset[str]:
    """The training runs whose single members also are the run's averages of checkpoints.

    They are the runs of the checkpoint ensembles, or all runs without such ensembles. There are
    none if the main members are no averages, if averages were decoded themselves, or if a run has
    no single member.
    """
    kinds = {decode.cell.ensemble for decode in decodes.values()}
    if config.ensemble.name != "random_init" or config.train.average_last == 1:
        return frozenset()
    if CHECKPOINT_AVERAGE in kinds:
        return frozenset()
    kind = _CHECKPOINT if _CHECKPOINT in kinds else config.ensemble.name
    wanted = _runs_of(kind, decodes)
    return wanted if wanted <= _runs_of(config.ensemble.name, decodes) else frozenset()


def _runs_of(kind: str, decodes: Mapping[str, Decode]) -> frozenset[str]:
    return frozenset(
        run for decode in decodes.values() if decode.cell.ensemble == kind for run in decode.runs
    )


def checkpoint_averages(decodes: Mapping[str, Decode], runs: frozenset[str]) -> list[Decode]:
    """The decodes by single members of these runs, as decodes by averages of checkpoints."""
    return [
        replace(decode, cell=replace(decode.cell, ensemble=CHECKPOINT_AVERAGE))
        for decode in decodes.values()
        if decode.cell.ensemble == "single" and runs.issuperset(decode.runs)
    ]


def leave_one_out(decodes: Mapping[str, Decode], kind: str) -> dict[str, Decode]:
    """Part -> decode by an ensemble of `kind` without one of its training runs.

    These are decodes by subsets of an ensemble of at least three members, each from a run of its
    own. Their cells name the ensemble that they are subsets of.
    """
    whole = [
        decode
        for decode in decodes.values()
        if decode.cell.ensemble == kind and decode.runs_to_leave_out
    ]
    return {
        part: replace(decode, cell=replace(decode.cell, ensemble=kind))
        for part, decode in decodes.items()
        if decode.cell.ensemble == SUBSET and any(_lacks_one(decode, other) for other in whole)
    }


def _lacks_one(decode: Decode, whole: Decode) -> bool:
    own, of_whole = decode.cell, whole.cell
    return (
        (own.test_set, own.regime, own.hypotheses)
        == (of_whole.test_set, of_whole.regime, of_whole.hypotheses)
        and len(decode.members) == len(whole.members) - 1
        and set(decode.members) < set(whole.members)
    )
