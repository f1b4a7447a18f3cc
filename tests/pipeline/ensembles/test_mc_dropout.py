from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.ensembles import DropoutMask
from pipeline.ensembles.kinds import mc_dropout as members
from pipeline.errors import ConfigError


def test_members_are_one_model_with_different_masks(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    for seed in (3, 4):
        trained(seed, {"average.safetensors": b"weights %d" % seed})
    (ensemble,) = members(train_folder, settings("mc_dropout", 3, 4, members=2, rate=0.2, seed=7))
    assert ensemble.member_names == ("mc_dropout_1", "mc_dropout_2")
    assert [member.mask for member in ensemble.members] == [
        DropoutMask(0.2, 7),
        DropoutMask(0.2, 8),
    ]
    assert {member.weights for member in ensemble.members} == {
        train_folder / "seed_3" / "average.safetensors"
    }
    assert len({member.model_sha256 for member in ensemble.members}) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"rate": 0},
            r"settings\.rate of ensemble mc_dropout: must be null or in \(0, 1\) \(got 0\)",
        ),
        ({"rate": 1}, r"settings\.rate .*got 1"),
        ({"members": 0}, r"settings\.members .*got 0"),
    ],
)
def test_invalid_settings_are_named(
    train_folder: Path, settings: Callable[..., Any], changes: dict[str, Any], message: str
) -> None:
    values = {"members": 2, "rate": None, "seed": 0} | changes
    with pytest.raises(ConfigError, match=message):
        members(train_folder, settings("mc_dropout", 1, **values))
