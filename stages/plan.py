"""Estimate what a run would cost: FLOPs, time, disk space and memory of every stage.

No stage is run. With plan.hardware=this_machine, one core is timed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hydra.core.hydra_config import HydraConfig

from pipeline.errors import ConfigError
from pipeline.run.application import run
from pipeline.run.settings import PipelineConfig, plain

if TYPE_CHECKING:
    from pipeline.plan.costs import ModelCosts
    from pipeline.plan.hardware import Hardware, Lengths


def plan(config: PipelineConfig) -> None:
    """Print the plan of a task on plan.devices devices of plan.hardware.

    Raises ConfigError if an ensemble has models that are not those of group `model`.
    """
    from pipeline.ensembles import planned_ensembles
    from pipeline.plan.costs import model_costs
    from pipeline.plan.hardware import Lengths
    from pipeline.plan.sizes import baseline_size, set_sizes, target_share
    from pipeline.plan.table import plan_text
    from pipeline.plan.work import all_work

    for ensemble in planned_ensembles(config.ensemble, config.train).by_name.values():
        if ensemble.tokenizer is not None:
            raise ConfigError(
                f"ensemble {ensemble.name}: its cost cannot be estimated, since only the models of "
                f"group model can be planned. Decode one small test set and multiply its time."
            )
    is_speech = config.task.family == "speech"
    data = config.data.speech if is_speech else config.data
    sizes, from_prepared = set_sizes(config)
    size = baseline_size(config, sizes)
    lengths = Lengths(
        round(size.source_length),
        round(size.target_length),
        config.data.speech.feature_bins if is_speech else None,
    )
    costs = model_costs(
        config.model.architecture,
        plain(config.model.settings),
        data.vocabulary_size,
        lengths.source,
        lengths.target,
        lengths.bins,
    )
    hardware = _hardware(config, costs, lengths, data.vocabulary_size)
    share = target_share(config, size)
    work = all_work(config, costs, data.vocabulary_size, sizes, share, hardware)
    devices = config.plan.devices or _devices(config)
    text = plan_text(
        config, costs, work, hardware, devices, overrides=_overrides(), from_prepared=from_prepared
    )
    print(text)


def _overrides() -> list[str]:
    """The overrides of the command line that the planned stages would use."""
    overrides = HydraConfig.get().overrides.task
    return [override for override in overrides if not override.startswith("plan.")]


def _hardware(
    config: PipelineConfig, costs: ModelCosts, lengths: Lengths, vocab_size: int
) -> Hardware:
    from pipeline.plan.hardware import accelerator, this_machine

    name = config.plan.hardware
    if name == "this_machine":
        return this_machine(config, costs, lengths, vocab_size)
    return accelerator(
        name,
        config.task.family,
        config.train.precision,
        config.decode.dtype,
        config.plan.usable_share,
    )


def _devices(config: PipelineConfig) -> int:
    if config.plan.hardware == "this_machine":
        return len(os.sched_getaffinity(0))
    return config.train.processes


if __name__ == "__main__":
    run(plan)
