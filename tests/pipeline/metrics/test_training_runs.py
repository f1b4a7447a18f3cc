"""Training runs of members, averages of checkpoints, and ensembles without one run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, common_cell
from pipeline.metrics.replicates import averaged_runs, checkpoint_averages, leave_one_out
from pipeline.metrics.training_runs import read_member_runs, run_of_member
from tests.composed_settings import composed_settings

SEEDS = ("seed_1", "seed_2", "seed_3")


def decode(
    ensemble: str, members: tuple[str, ...], test_set: str = "newstest14", hypotheses: str = "prex"
) -> Decode:
    runs = tuple(map(run_of_member, members))
    key = ("nmt_ende", test_set, ensemble, hypotheses, "beam")
    cell = Cell(*key, runs=";".join(dict.fromkeys(runs)), members=len(members), signature=ensemble)
    return Decode(Path("s.h5"), cell, True, members, ["s"], ["t"], ["r"], member_runs=runs)


def decodes(*checkpoint_runs: str) -> dict[str, Decode]:
    """The decodes of an ensemble of three, its members, and checkpoint ensembles of some runs."""
    singles = [decode("single", (seed,), hypotheses="-") for seed in SEEDS]
    checkpoints = [
        decode("checkpoint", (f"{run}.update_1", f"{run}.update_2")) for run in checkpoint_runs
    ]
    all_decodes = [decode("random_init", SEEDS), *singles, *checkpoints]
    return {str(number): item for number, item in enumerate(all_decodes)}


@pytest.mark.parametrize(
    ("member", "run"),
    [
        ("seed_1", "seed_1"),
        ("seed_12.update_00001200", "seed_12"),
        ("seed_3.update_00000600.mean_of_2", "seed_3"),
        ("imported_1", "imported_1"),
        ("my.seed_1", "my.seed_1"),
        ("seed_1b", "seed_1b"),
    ],
)
def test_run_of_a_member_by_its_name(member: str, run: str) -> None:
    assert run_of_member(member) == run


def test_run_of_a_member_by_its_checkpoints(tmp_path: Path) -> None:
    members = [
        {"name": "mc_dropout_1", "checkpoints": {"seed_7/average.safetensors": "a"}},
        {"name": "mean", "checkpoints": {"seed_1/update_1.st": "a", "seed_1/update_2.st": "b"}},
        {"name": "soup", "checkpoints": {"seed_1/average.st": "a", "seed_2/average.st": "b"}},
        {"name": "imported_1", "checkpoints": {}},
        {"name": "imported_2", "checkpoints": {"model.pt": "a"}},
    ]
    path = tmp_path / "ensemble.json"
    path.write_text(json.dumps([{"kind": "k", "name": "k", "members": members}]))
    assert read_member_runs(path) == {"mc_dropout_1": "seed_7", "mean": "seed_1"}
    assert read_member_runs(tmp_path / "none.json") == {}


def test_a_cell_of_replicates_names_all_their_runs() -> None:
    items = decodes("seed_2", "seed_1")
    cell = common_cell([item for item in items.values() if item.cell.ensemble == "checkpoint"])
    assert (cell.runs, cell.members) == ("seed_2;seed_1", 2)
    single = common_cell([item for item in items.values() if item.cell.ensemble == "single"])
    assert (single.runs, single.members) == (";".join(SEEDS), 1)


def test_averages_come_from_exactly_the_runs_of_the_checkpoint_ensembles() -> None:
    items = decodes("seed_1", "seed_3")
    runs = averaged_runs(composed_settings(), items)
    assert runs == {"seed_1", "seed_3"}
    averages = checkpoint_averages(items, runs)
    assert [item.members for item in averages] == [("seed_1",), ("seed_3",)]
    assert {item.cell.ensemble for item in averages} == {"checkpoint_average"}
    assert averaged_runs(composed_settings(), decodes()) == set(SEEDS)


@pytest.mark.parametrize(
    "overrides",
    [
        ["train.average_last=1"],
        ["ensemble=checkpoint"],
        ["ensemble=mc_dropout"],
        ["ensemble=imported"],
        ["ensemble=snapshot"],
    ],
)
def test_members_that_are_no_averages_do_not_stand_in_for_them(overrides: list[str]) -> None:
    assert averaged_runs(composed_settings(*overrides), decodes("seed_1")) == set()


def test_averages_that_were_decoded_are_not_replaced() -> None:
    items = decodes("seed_1") | {"average": decode("checkpoint_average", ("seed_1",))}
    assert averaged_runs(composed_settings(), items) == set()


def test_runs_without_a_single_member_have_no_average() -> None:
    assert averaged_runs(composed_settings(), decodes("seed_1", "seed_9")) == set()


def test_ensembles_without_one_run_are_subsets_of_all_members_but_one() -> None:
    items = decodes() | {
        "without_1": decode("subset", ("seed_2", "seed_3")),
        "without_2": decode("subset", ("seed_1", "seed_3")),
        "one": decode("subset", ("seed_1",)),
        "other set": decode("subset", ("seed_1", "seed_2"), "PRM"),
        "other posterior": decode("subset", ("seed_1", "seed_2"), hypotheses="expr"),
        "other members": decode("subset", ("seed_1", "seed_9")),
    }
    left_out = leave_one_out(items, "random_init")
    assert list(left_out) == ["without_1", "without_2"]
    assert {item.cell.key for item in left_out.values()} == {items["0"].cell.key}


def test_members_of_one_run_cannot_be_left_out() -> None:
    checkpoints = ("seed_1.update_1", "seed_1.update_2", "seed_1.update_3")
    items = {
        "whole": decode("checkpoint", checkpoints),
        "subset": decode("subset", checkpoints[:2]),
    }
    assert leave_one_out(items, "checkpoint") == {}
