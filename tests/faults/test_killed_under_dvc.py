"""Training killed by SIGKILL and resumed by `dvc repro` gives the weights of an undisturbed run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.conftest import copy_repository, environment_of_copy
from tests.faults.conftest import Undisturbed
from tests.faults.small_run import SETTINGS, kill

# Python imports this at startup: a process that is about to complete the file waits to be killed.
STOP_BEFORE = """
import os, pathlib, time
replace = pathlib.Path.replace
def stopping(self, target):
    if pathlib.Path(target).name == os.environ["STOP_BEFORE"]:
        pathlib.Path(os.environ["STOPPED"]).touch()
        time.sleep(600)
    return replace(self, target)
pathlib.Path.replace = stopping
"""
REPRO = [sys.executable, "-m", "dvc", "repro", "train"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, help_packages: Path) -> Path:
    folder = tmp_path_factory.mktemp("killed") / "clone"
    overrides = [*SETTINGS, f"data.packages='{help_packages}'"]
    copy_repository(folder, "fault", " ".join(f'"{override}"' for override in overrides))
    return folder


def _kill_before(file: str, clone: Path, folder: Path) -> None:
    """Start `dvc repro` and kill all its processes when a process is about to complete `file`."""
    (folder / "sitecustomize.py").write_text(STOP_BEFORE)
    stopped = folder / "stopped"
    environment = environment_of_copy() | {
        "PYTHONPATH": str(folder),
        "STOP_BEFORE": file,
        "STOPPED": str(stopped),
    }
    with (folder / "log").open("w") as log:
        run = subprocess.Popen(
            REPRO,
            cwd=clone,
            env=environment,
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        deadline = time.monotonic() + 600
        while not stopped.exists() and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        reached = stopped.exists()
        run.kill()  # first DVC, or it would update its own files when its child processes end
        kill(run)
    assert reached, (folder / "log").read_text()[-4000:]


def _weights(folder: Path) -> dict[str, dict[str, bytes]]:
    return {
        str(path.relative_to(folder)): {
            name: tensor.tobytes() for name, tensor in load_file(path).items()
        }
        for path in sorted(folder.rglob("*.safetensors"))
    }


@pytest.mark.parametrize("file", ["state_00000012.pt", "average.safetensors"])
def test_case_19_killed_training_resumes(
    file: str, clone: Path, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    complete = undisturbed.run.root / "train" / "nmt_ende"
    trained = clone / "outputs" / "train" / "nmt_ende"
    for seed in (1, 2):  # left by the previous case
        (trained / f"seed_{seed}" / "manifest.json").unlink(missing_ok=True)
    _kill_before(file, clone, tmp_path)
    assert (
        not (trained / "seed_1" / "manifest.json").exists()
        or not (trained / "seed_2" / "manifest.json").exists()
    )
    again = subprocess.run(
        REPRO, cwd=clone, env=environment_of_copy(), capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stdout[-2000:] + again.stderr[-4000:]
    assert "resumes after update" in again.stdout + again.stderr
    assert _weights(trained) == _weights(complete)
    assert (trained / "seed_1" / "curve.csv").read_bytes() == (
        complete / "seed_1" / "curve.csv"
    ).read_bytes()


def test_dvc_plots_the_curves_of_all_members(clone: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "dvc", "plots", "show", "--json"],
        cwd=clone, env=environment_of_copy(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (plot,) = json.loads(shown)["data"]["outputs/train/nmt_ende.curves.csv"]
    points = plot["content"]["data"]["values"]
    assert {point["member"] for point in points} == {"seed_1", "seed_2"}
    assert {point["measure"] for point in points} == {
        "train_loss_nats",
        "valid_loss_nats",
        "valid_bleu",
    }
    assert plot["content"]["spec"]["encoding"]["x"]["field"] == "update"
