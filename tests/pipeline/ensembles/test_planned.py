"""Planned ensembles have the names of the ensembles after training."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from pipeline.ensembles import Chosen, chosen_ensembles, planned_ensembles
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.models.weights import checkpoint_name, kept_updates, save_weights
from pipeline.run.artifacts import write_manifest
from pipeline.run.files import write_json
from pipeline.run.settings import PipelineConfig, plain
from tests.artifacts import list_parts, made_by
from tests.composed_settings import composed_settings

TRAINING = (
    *("train.updates=60", "train.checkpoint_interval_updates=10", "train.keep_checkpoints=5"),
    *("train.average_last=2", "train.warmup_updates=5", "ensemble.seeds=[1,3]"),
)


def _settings(*overrides: str) -> PipelineConfig:
    return composed_settings("experiment=smoke", *TRAINING, *overrides)


def _train(folder: Path, settings: PipelineConfig) -> None:
    """Write the outputs of stage train, with models of one number."""
    for seed in settings.ensemble.seeds:
        part = folder / f"seed_{seed}"
        part.mkdir(parents=True)
        kept = map(checkpoint_name, kept_updates(plain(settings.train)))
        for index, name in enumerate([*kept, "average.safetensors"]):
            save_weights({"weight": torch.full((1,), float(10 * seed + index))}, part / name)
        hashes = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in part.glob("*.safetensors")
        }
        description = {"model": {}, "seed": seed, "updates": 60, "vocabulary_sha256": "v"}
        write_json(part / "model.json", description | {"weights": hashes})
        write_manifest(part, made_by("train"), [])
    list_parts(folder, "train")


def _names(chosen: Chosen) -> list[list[tuple[str, tuple[str, ...]]]]:
    return [
        [(ensemble.name, ensemble.member_names) for ensemble in ensembles]
        for ensembles in (chosen.main, chosen.further)
    ]


@pytest.mark.parametrize(
    "kind",
    [
        ("random_init",),
        ("checkpoint",),
        (
            "checkpoint",
            *(f"ensemble.settings.{name}=2" for name in ("members", "average", "every")),
        ),
        ("checkpoint", "train.schedule=cosine", "train.cycles=3"),
        ("checkpoint_average",),
        ("snapshot", "train.schedule=cosine", "train.cycles=3"),
        ("mc_dropout", "ensemble.settings.members=3"),
        ("checkpoint", "ensemble.name=renamed"),
    ],
    ids=" ".join,
)
def test_planned_names_equal_those_after_training(kind: tuple[str, ...], tmp_path: Path) -> None:
    name, *more = kind
    settings = _settings(
        f"ensemble={name}", *more, "+ensemble@ensemble.also.checkpoint_average=checkpoint_average"
    )
    folder = tmp_path / "train" / "nmt_ende"
    _train(folder, settings)
    planned = planned_ensembles(settings.ensemble, settings.train)
    assert _names(planned) == _names(chosen_ensembles(settings.ensemble, folder))


def test_a_training_with_too_few_checkpoints_is_rejected() -> None:
    settings = _settings("ensemble=checkpoint", "train.updates=30", "ensemble.settings.members=4")
    with pytest.raises(
        ConfigError,
        match=r"train\.updates: ensemble checkpoint needs 4 checkpoints, but 30 updates give 3",
    ):
        planned_ensembles(settings.ensemble, settings.train)


def test_imported_models_are_numbered_from_one() -> None:
    settings = _settings("ensemble=imported", "ensemble.settings.checkpoints=[a.pt,b.pt]")
    (main,) = planned_ensembles(settings.ensemble, settings.train).main
    assert main.member_names == ("imported_1", "imported_2")


def test_a_kind_that_is_not_registered_has_one_member_per_seed() -> None:
    settings = _settings("ensemble._target_=tests.plugin.functions.reversed_members")
    (main,) = planned_ensembles(settings.ensemble, settings.train).main
    assert len(main.members) == 2
