"""The ensembles of a plan have the names that those of a decode have."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch
from hydra import compose, initialize_config_dir

from pipeline.ensembles import Ensemble, chosen_ensembles
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.models.weights import save_weights
from pipeline.fairseq_bridge.training.state import kept_weights
from pipeline.plan.sizes import planned_ensembles
from pipeline.run.files import write_json
from pipeline.run.settings import CONF, PipelineConfig, plain, typed

TRAINING = (
    *("train.updates=60", "train.checkpoint_interval_updates=10", "train.keep_checkpoints=5"),
    *("train.average_last=2", "train.warmup_updates=5", "ensemble.seeds=[1,3]"),
)


def _settings(*overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return typed(compose("pipeline", ["experiment=smoke", *TRAINING, *overrides]))


def _train(folder: Path, settings: PipelineConfig) -> None:
    """What stage train leaves of models of one number."""
    for seed in settings.ensemble.seeds:
        part = folder / f"seed_{seed}"
        part.mkdir(parents=True)
        for place, path in enumerate(
            [*kept_weights(part, plain(settings.train)).values(), part / "average.safetensors"]
        ):
            save_weights({"weight": torch.full((1,), float(10 * seed + place))}, path)
        hashes = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in part.glob("*.safetensors")
        }
        description = {"model": {}, "seed": seed, "updates": 60, "vocabulary_sha256": "v"}
        write_json(part / "model.json", description | {"weights": hashes})
        write_json(part / "part.json", {"digest": "digest", "file_bytes": {}})
    write_json(folder / "manifest.json", {path.name: "digest" for path in folder.glob("seed_*")})


def _names(ensembles: list[Ensemble]) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.name, one.member_names) for one in ensembles]


@pytest.mark.parametrize(
    "kind",
    [
        ("random_init",),
        ("checkpoint",),
        ("checkpoint", *(f"ensemble.settings.{one}=2" for one in ("members", "average", "every"))),
        ("checkpoint", "train.schedule=cosine", "train.cycles=3"),
        ("checkpoint_average",),
        ("snapshot", "train.schedule=cosine", "train.cycles=3"),
        ("mc_dropout", "ensemble.settings.members=3"),
    ],
    ids=" ".join,
)
def test_names_are_those_of_the_decode(kind: tuple[str, ...], tmp_path: Path) -> None:
    name, *more = kind
    settings = _settings(
        f"ensemble={name}", *more, "+ensemble@ensemble.also.checkpoint_average=checkpoint_average"
    )
    folder = tmp_path / "train" / "nmt_ende"
    _train(folder, settings)
    real = chosen_ensembles(settings.ensemble, folder)
    main, further = planned_ensembles(settings.ensemble, settings.train)
    assert _names(main) == _names(real.main)
    assert _names(further) == _names(real.further)


def test_a_training_that_is_too_short_for_its_checkpoints_is_named() -> None:
    settings = _settings("ensemble=checkpoint", "train.updates=30", "ensemble.settings.members=4")
    with pytest.raises(ConfigError, match=r"must give the 4 checkpoints .* got 30, which give 3"):
        planned_ensembles(settings.ensemble, settings.train)


def test_given_models_are_numbered_from_one() -> None:
    settings = _settings("ensemble=imported", "ensemble.settings.checkpoints=[a.pt,b.pt]")
    (main,), _ = planned_ensembles(settings.ensemble, settings.train)
    assert main.member_names == ("imported_1", "imported_2")
