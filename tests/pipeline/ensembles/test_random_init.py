from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.ensembles.kinds import checkpoint_average
from pipeline.ensembles.kinds import random_init as members
from pipeline.errors import DataError

AVERAGE = "average.safetensors"


def test_members_are_the_averages_of_the_chosen_seeds_in_their_order(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    for seed in (0, 1, 2):
        trained(seed, {AVERAGE: b"weights %d" % seed})
    (ensemble,) = members(train_folder, settings("random_init", 2, 0))
    assert (ensemble.kind, ensemble.name) == ("random_init", "random_init")
    assert [(member.name, member.seed) for member in ensemble.members] == [
        ("seed_2", 2),
        ("seed_0", 0),
    ]
    assert ensemble.members[0].weights == train_folder / "seed_2" / AVERAGE
    assert ensemble.members[0].update == 60


def test_checkpoint_average_gives_one_ensemble_per_seed(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    for seed in (1, 2):
        trained(seed, {AVERAGE: b"weights %d" % seed})
    ensembles = checkpoint_average(train_folder, settings("checkpoint_average", 1, 2))
    assert [(ensemble.kind, ensemble.name, ensemble.member_names) for ensemble in ensembles] == [
        ("checkpoint_average", "checkpoint_average.seed_1", ("seed_1",)),
        ("checkpoint_average", "checkpoint_average.seed_2", ("seed_2",)),
    ]


def test_a_seed_that_was_not_trained_is_rejected(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    trained(1, {AVERAGE: b"a"})
    with pytest.raises(DataError, match=r"ensemble\.seeds: seed 2 was not trained"):
        members(train_folder, settings("random_init", 1, 2))


def test_changed_or_missing_weights_are_rejected(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    file = trained(1, {AVERAGE: b"a"}) / AVERAGE
    (member,) = members(train_folder, settings("random_init", 1))[0].members
    member.check_weights()
    file.write_bytes(b"")
    with pytest.raises(DataError, match=r"sha256 differs from the one in model\.json"):
        member.check_weights()
    file.unlink()
    with pytest.raises(DataError, match="no such file"):
        member.check_weights()


def test_weights_that_the_description_does_not_list_are_rejected(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    trained(1, {})
    with pytest.raises(
        DataError, match=r"model\.json: average\.safetensors is not listed .*member seed_1"
    ):
        members(train_folder, settings("random_init", 1))


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"seed": 1}'])
def test_a_damaged_description_is_rejected(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any], content: str
) -> None:
    part = trained(1, {AVERAGE: b"a"})
    (part / "model.json").write_text(content, encoding="utf-8")
    with pytest.raises(
        DataError, match=r"model\.json: damaged, or without some of the keys model, seed"
    ):
        members(train_folder, settings("random_init", 1))
    (part / "model.json").unlink()
    with pytest.raises(DataError, match=r"model\.json: no such file"):
        members(train_folder, settings("random_init", 1))
