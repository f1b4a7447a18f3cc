from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.ensembles import chosen_ensembles
from pipeline.errors import ConfigError, DataError
from pipeline.run.settings import EnsembleConfig, MainEnsembleConfig

TARGET = "pipeline.ensembles.kinds.{}"


def main(*also: EnsembleConfig, kind: str = "random_init") -> MainEnsembleConfig:
    return MainEnsembleConfig(
        name=kind,
        _target_=TARGET.format(kind),
        seeds=[1, 2],
        also={further.name: further for further in also},
    )


def further(kind: str) -> EnsembleConfig:
    return EnsembleConfig(name=kind, _target_=TARGET.format(kind), seeds=[1, 2])


@pytest.fixture(autouse=True)
def two_runs(trained: Callable[..., Path]) -> None:
    for seed in (1, 2):
        trained(seed, {"average.safetensors": b"weights %d" % seed})


def test_main_ensemble_is_followed_by_further_ensembles(train_folder: Path) -> None:
    chosen = chosen_ensembles(main(further("checkpoint_average")), train_folder)
    assert [ensemble.name for ensemble in chosen.main] == ["random_init"]
    assert [ensemble.name for ensemble in chosen.further] == [
        "checkpoint_average.seed_1",
        "checkpoint_average.seed_2",
    ]
    assert list(chosen.by_name) == [ensemble.name for ensemble in (*chosen.main, *chosen.further)]


def test_a_further_ensemble_with_the_main_name_is_decoded_once(train_folder: Path) -> None:
    chosen = chosen_ensembles(main(further("random_init")), train_folder)
    assert (len(chosen.main), chosen.further) == (1, [])


def test_members_with_changed_weights_are_refused(
    train_folder: Path, trained: Callable[..., Path]
) -> None:
    trained(3, {"average.safetensors": b"weights 1"})
    config = MainEnsembleConfig(
        name="random_init", _target_=TARGET.format("random_init"), seeds=[1, 3]
    )
    with pytest.raises(DataError, match=r"seed_1 .* and seed_3 .* are the same"):
        chosen_ensembles(config, train_folder)


def test_a_kind_that_cannot_be_imported_is_named(train_folder: Path) -> None:
    with pytest.raises(ConfigError, match="_target_ of ensemble nowhere: must name an importable"):
        chosen_ensembles(main(kind="nowhere"), train_folder)
