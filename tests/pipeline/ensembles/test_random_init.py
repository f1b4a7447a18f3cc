from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.ensembles.kinds import checkpoint_average
from pipeline.ensembles.kinds import random_init as members
from pipeline.errors import DataError

AVERAGE = "average.safetensors"


def test_one_member_a_seed_in_the_order_asked_for_and_no_stranger(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    for seed in (0, 1, 2):
        trained(seed, {AVERAGE: b"weights %d" % seed})
    (found,) = members(train_folder, settings("random_init", 2, 0))
    assert (found.kind, found.name) == ("random_init", "random_init")
    assert [(one.name, one.seed) for one in found.members] == [("seed_2", 2), ("seed_0", 0)]
    assert found.members[0].weights == train_folder / "seed_2" / AVERAGE
    assert found.members[0].update == 60


def test_averages_alone_are_an_ensemble_of_one_each(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    for seed in (1, 2):
        trained(seed, {AVERAGE: b"weights %d" % seed})
    found = checkpoint_average(train_folder, settings("checkpoint_average", 1, 2))
    assert [(one.kind, one.name, one.member_names) for one in found] == [
        ("checkpoint_average", "checkpoint_average.seed_1", ("seed_1",)),
        ("checkpoint_average", "checkpoint_average.seed_2", ("seed_2",)),
    ]


def test_a_seed_that_the_manifest_does_not_list_is_refused(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    trained(1, {AVERAGE: b"a"})
    with pytest.raises(DataError, match=r"ensemble.seeds must be trained, got 2"):
        members(train_folder, settings("random_init", 1, 2))


def test_weights_that_are_not_those_that_were_written_are_refused(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    file = trained(1, {AVERAGE: b"a"}) / AVERAGE
    (member,) = members(train_folder, settings("random_init", 1))[0].members
    member.check_weights()
    file.write_bytes(b"")
    with pytest.raises(DataError, match=r"sha256 of model\.json"):
        member.check_weights()
    file.unlink()
    with pytest.raises(DataError, match="no such weights"):
        member.check_weights()


def test_weights_that_the_description_does_not_list_are_refused(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any]
) -> None:
    trained(1, {})
    with pytest.raises(DataError, match=r"model\.json must list the weights of member seed_1"):
        members(train_folder, settings("random_init", 1))


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"seed": 1}'])
def test_a_damaged_description_is_named(
    train_folder: Path, trained: Callable[..., Path], settings: Callable[..., Any], content: str
) -> None:
    part = trained(1, {AVERAGE: b"a"})
    (part / "model.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"model\.json must be JSON with model, seed"):
        members(train_folder, settings("random_init", 1))
    (part / "model.json").unlink()
    with pytest.raises(DataError, match=r"model\.json must exist"):
        members(train_folder, settings("random_init", 1))
