"""Shards and points of a sweep that run as Slurm jobs give the results of a local run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.stages.trained_members import FEW_SETS, prepare_and_train

from .conftest import Cluster
from .test_slurm import ON_SLURM, done, launch

SETS = ("help", "permuted")
SMALL = (
    *("experiment=laptop", "ensemble.seeds=[1,2]", "tracking=off", "~report.figures"),
    *("decode.beam=2", "decode.batch_sentences=4", "decode.part_sentences=2", "decode.also=[]"),
    *("decode.subsets_per_size=0", "uncertainty.beam=2"),
    *FEW_SETS,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trained")
    prepare_and_train(root)
    return root


def copy_inputs(trained: Path, root: Path) -> Path:
    for stage in ("prepare", "train"):
        shutil.copytree(trained / stage, root / stage)
    return root


def stores(root: Path) -> dict[str, bytes]:
    parts = [f"random_init.prex.{name}" for name in SETS]
    folder = root / "decode" / "nmt_ende"
    return {part: (folder / part / "store.h5").read_bytes() for part in parts}


def test_shards_that_run_as_jobs_join_into_the_bytes_of_one_decode(
    slurm: Cluster, trained: Path, tmp_path: Path
) -> None:
    local, remote = (copy_inputs(trained, tmp_path / name) for name in ("local", "slurm"))
    done(launch(dict(os.environ), "decode", f"io.root={local}", *SMALL))
    sharded = (f"io.root={remote}", "decode.shards=2", *SMALL, *ON_SLURM)
    before = slurm.jobs("decode")
    done(launch(slurm.environment, "decode", *sharded))
    n_job = len(slurm.jobs("decode") - before)
    assert n_job == len(SETS) * 2 + len(SETS)  # the shards, then one job per store
    assert stores(remote) == stores(local)


def test_points_that_run_as_jobs_equal_local_points(
    slurm: Cluster, trained: Path, tmp_path: Path
) -> None:
    summaries = []
    before = slurm.jobs("sweep")
    for name, environment, launcher in (
        ("local", dict(os.environ), ()),
        ("slurm", slurm.environment, ON_SLURM),
    ):
        root = copy_inputs(trained, tmp_path / name)
        swept = ("-m", "uncertainty.temperature=1,2,5,10", f"io.root={root}", *SMALL, *launcher)
        done(launch(environment, "sweep", *swept))
        summaries.append((root / "sweep" / "nmt_ende" / "summary.csv").read_bytes())
    assert len(slurm.jobs("sweep") - before) == 4  # as many as the node has cores
    assert summaries[0] == summaries[1]
