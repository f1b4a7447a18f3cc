from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from pipeline.ensembles.kinds import checkpoint as members
from pipeline.errors import ConfigError, DataError

VALUES = {10 * index: float(index) for index in range(1, 8)}


def test_the_last_checkpoints_of_each_run_form_an_ensemble(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
) -> None:
    for seed in (1, 2):
        trained(seed, checkpoints(VALUES))
    ensembles = members(train_folder, settings("checkpoint", 2, 1, members=3, average=1, every=1))
    assert [ensemble.name for ensemble in ensembles] == ["checkpoint.seed_2", "checkpoint.seed_1"]
    assert [member.update for member in ensembles[0].members] == [50, 60, 70]
    assert ensembles[0].members[0].name == "seed_2.update_00000050"
    assert ensembles[0].members[0].weights.parent == train_folder / "seed_2"


def test_members_can_be_averages_of_checkpoints(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
) -> None:
    trained(1, checkpoints(VALUES))
    asked = settings("checkpoint", 1, members=3, average=3, every=2)
    (averaged,) = members(train_folder, asked)
    weights = [load_file(member.weights)["weight"].tolist() for member in averaged.members]
    assert weights == [[2.0, 2.0], [4.0, 4.0], [6.0, 6.0]]
    assert list(averaged.members[0].made_from) == [
        f"seed_1/update_{update:08d}.safetensors" for update in (10, 20, 30)
    ]
    assert not averaged.members[0].weights.is_relative_to(train_folder)
    first = averaged.members[0].weights
    before = (first.stat().st_mtime_ns, first.read_bytes())
    assert members(train_folder, asked) == [averaged]
    assert (first.stat().st_mtime_ns, first.read_bytes()) == before


@pytest.mark.parametrize("damage", ["cut", "lost", "half"])
def test_damaged_or_incomplete_average_is_written_again(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
    damage: str,
) -> None:
    trained(1, checkpoints(VALUES))
    asked = settings("checkpoint", 1, members=1, average=7, every=1)
    path = members(train_folder, asked)[0].members[0].weights
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[:-1])
    elif damage == "lost":
        path.unlink()
    else:  # as after a killed process
        half = path.parent.with_name(f".{path.parent.name}.building")
        path.parent.rename(half)
        path = half.with_name(path.parent.name) / path.name
        (half / path.name).write_bytes(content[:-1])
    (averaged,) = members(train_folder, asked)
    assert averaged.members[0].weights.read_bytes() == content
    averaged.members[0].check_weights()


def test_a_checkpoint_with_another_sha256_is_not_averaged(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
) -> None:
    part = trained(1, checkpoints(VALUES))
    (part / "update_00000060.safetensors").write_bytes(b"other")
    with pytest.raises(DataError, match=r"update_00000060\.safetensors: sha256 differs"):
        members(train_folder, settings("checkpoint", 1, members=1, average=2, every=1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 8}, r"has 7 checkpoints, .*needs 8\. Train with train\.keep_checkpoints=8"),
        ({"members": 3, "every": 4}, "needs 9"),
        ({"members": 3, "average": 6}, "needs 8"),
    ],
)
def test_too_few_checkpoints_are_rejected(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
    changes: dict[str, int],
    message: str,
) -> None:
    trained(1, checkpoints(VALUES))
    values = {"members": 1, "average": 1, "every": 1} | changes
    with pytest.raises(DataError, match=message):
        members(train_folder, settings("checkpoint", 1, **values))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": 0}, r"settings\.members of ensemble checkpoint: must be an integer >= 1"),
        ({"every": 1.5}, r"settings\.every .*got 1\.5"),
        ({"average": None}, r"settings\.average .*got None"),
        ({"averages": 3}, r"settings\.averages: no such setting\. Did you mean average"),
    ],
)
def test_invalid_settings_are_named(
    train_folder: Path, settings: Callable[..., Any], changes: dict[str, Any], message: str
) -> None:
    values = {"members": 1, "average": 1, "every": 1} | changes
    with pytest.raises(ConfigError, match=message):
        members(train_folder, settings("checkpoint", 1, **values))
