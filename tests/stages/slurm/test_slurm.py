"""Members that are trained as Slurm jobs, also requeued ones, have the weights of a local run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.run.settings import ROOT

from .conftest import Cluster

SMALL = (
    *("data.test_sentences=8", "data.dev_sentences=6", "data.vocabulary_size=100"),
    *("data.near_duplicate_jaccard=1", "ensemble.seeds=[0,1,2]", "tracking=off"),
    *("train.warmup_updates=2", "train.batch_tokens=100", "train.average_last=2"),
    *("train.checkpoint_interval_updates=10", "train.validate_interval_updates=20"),
)
ON_SLURM = (
    *("hydra/launcher=slurm", "hydra.launcher.timeout_min=15", "hydra.launcher.mem_gb=1.5"),
    *("hydra.launcher.signal_delay_s=10",),
)
WAIT_SECONDS = 900


def start(environment: dict[str, str], name: str, root: Path, *overrides: str) -> subprocess.Popen:
    return launch(environment, name, f"io.root='{root}'", *SMALL, *overrides)


def launch(environment: dict[str, str], name: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", f"stages.{name}", *arguments],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )


def finish(process: subprocess.Popen) -> str:
    try:
        output, _ = process.communicate(timeout=WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"not finished in {WAIT_SECONDS} s: {process.communicate()[0][-3000:]}")
    return output


def done(process: subprocess.Popen) -> str:
    output = finish(process)
    assert process.returncode == 0, output[-4000:]
    return output


def weights(root: Path) -> dict[str, str]:
    """Return member -> sha256 of its averaged weights."""
    folders = sorted((root / "train" / "nmt_ende").glob("seed_*"))
    models = {folder.name: json.loads((folder / "model.json").read_text()) for folder in folders}
    return {name: model["weights"]["average.safetensors"] for name, model in models.items()}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Path:
    root = tmp_path_factory.mktemp("prepared")
    done(start(dict(os.environ), "prepare", root, f"data.packages='{help_packages}'"))
    return root


def copy_inputs(prepared: Path, root: Path) -> Path:
    shutil.copytree(prepared / "prepare", root / "prepare")
    return root


def test_members_of_a_job_array_equal_local_members(
    slurm: Cluster, prepared: Path, tmp_path: Path
) -> None:
    local, remote = (copy_inputs(prepared, tmp_path / name) for name in ("local", "slurm"))
    done(start(dict(os.environ), "train", local, "train.updates=20"))
    before = slurm.jobs("train")
    done(start(slurm.environment, "train", remote, "train.updates=20", *ON_SLURM))
    assert len(slurm.jobs("train") - before) == 3
    assert weights(remote) == weights(local)
    assert len(set(weights(remote).values())) == 3


def test_requeued_job_resumes_and_gives_the_same_weights(
    slurm: Cluster, prepared: Path, tmp_path: Path
) -> None:
    settings = ("train.updates=300", "ensemble.seeds=[0]")
    local, remote = (copy_inputs(prepared, tmp_path / name) for name in ("local", "slurm"))
    done(start(dict(os.environ), "train", local, *settings))
    before = slurm.jobs("train")
    process = start(slurm.environment, "train", remote, *settings, *ON_SLURM)
    deadline = time.monotonic() + WAIT_SECONDS
    while not list(remote.glob("resume/train/nmt_ende/*/state_*.pt")):
        if time.monotonic() > deadline or process.poll() is not None:
            pytest.fail(f"no state to resume from: {finish(process)[-3000:]}")
        time.sleep(0.1)
    (job,) = slurm.jobs("train") - before
    slurm.command("scontrol", "requeue", job)
    done(process)
    assert "Restarts=1" in slurm.command("scontrol", "-o", "show", "job", job)
    assert weights(remote) == weights(local)
