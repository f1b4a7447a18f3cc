"""The paper's ensemble: models that differ in the seed of their training."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import EnsembleConfig
from pipeline.ensembles.member import Member, check_ensemble, read_member
from pipeline.errors import DataError
from pipeline.parts import read_manifest


def members(train_folder: Path, ensemble: EnsembleConfig) -> list[Member]:
    """One member a seed, in the order of `ensemble.seeds`: the average of its last checkpoints.

    Raises DataError where a seed was not trained, weights are not those that were written,
    two members have the same weights, or vocabularies differ.
    """
    trained = read_manifest(train_folder)
    found = []
    for seed in ensemble.seeds:
        name = f"seed_{seed}"
        if name not in trained:
            raise DataError(
                f"{train_folder}: ensemble.seeds must be trained, got {seed} where there are "
                f"{', '.join(sorted(trained))}"
            )
        found.append(read_member(name, train_folder / name, "average.safetensors"))
    check_ensemble(found)
    return found
