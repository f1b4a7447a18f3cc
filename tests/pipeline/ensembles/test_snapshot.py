from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.ensembles.kinds import snapshot as members
from pipeline.errors import ConfigError, DataError


def test_checkpoints_at_the_ends_of_cycles_are_members(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
) -> None:
    trained(1, checkpoints({20: 1.0, 40: 2.0, 50: 3.0, 60: 4.0}))
    (ensemble,) = members(train_folder, settings("snapshot", 1, cycles=3))
    assert (ensemble.kind, ensemble.name) == ("snapshot", "snapshot.seed_1")
    assert [member.update for member in ensemble.members] == [20, 40, 60]


def test_a_run_without_the_end_of_a_cycle_is_rejected(
    train_folder: Path,
    trained: Callable[..., Path],
    checkpoints: Callable[..., dict[str, bytes]],
    settings: Callable[..., Any],
) -> None:
    trained(1, checkpoints({50: 1.0, 60: 2.0}))
    with pytest.raises(
        DataError, match=r"has 1 checkpoints at the ends of 3 cycles of 20 updates.*cycles=3"
    ):
        members(train_folder, settings("snapshot", 1, cycles=3))


def test_a_single_cycle_is_rejected(train_folder: Path, settings: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"settings\.cycles .*got 1"):
        members(train_folder, settings("snapshot", 1, cycles=1))
