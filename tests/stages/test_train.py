"""Stage train with a fake trainer: failed members, finished members, learning curves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.run.artifacts import Provenance, write_manifest
from pipeline.run.settings import ROOT

pytestmark = pytest.mark.usefixtures("side_by_side")

# Fails for seed 2 until the file `repaired` exists, and records the seeds that it trains.
TRAINER = """
from pathlib import Path
from pipeline.errors import DataError

def trainer(job):
    folder = Path(__file__).parent
    (folder / f"trained_{job.seed}").touch()
    if job.seed == 2 and not (folder / "repaired").exists():
        raise DataError("train.h5: no utterances.")
    (job.out / "average.safetensors").write_text(str(job.seed))
    (job.out / "curve.csv").write_text(f"update,valid_loss_nats\\n1,{job.seed}.5\\n")
"""


def _train(folder: Path, tracking: str = "off") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stages.train", f"io.root='{folder / 'out: put'}'",
         "experiment=smoke", "train._target_=trainer.trainer", "ensemble.seeds=[0,2,3]",
         f"tracking={tracking}"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("train")
    data = folder / "out: put" / "prepare" / "nmt_ende" / "fairseq"
    data.mkdir(parents=True)
    (data / "dict.de.txt").write_text("a 1\n")
    write_manifest(data.parent, Provenance("prepare", "code", "settings", {}))
    (folder / "trainer.py").write_text(TRAINER)
    return folder


def test_failed_member_is_named_and_trained_again(folder: Path) -> None:
    trained = folder / "out: put" / "train" / "nmt_ende"
    first = _train(folder)
    assert first.returncode == 1
    assert "1 of 3 parts failed (seed_2)." in first.stderr
    assert "train.h5: no utterances." in first.stdout + first.stderr
    assert {path.name for path in trained.iterdir()} == {"seed_0", "seed_3"}
    for note in folder.glob("trained_*"):
        note.unlink()
    (folder / "repaired").touch()
    second = _train(folder, "mlflow_local")
    assert second.returncode == 0, second.stderr
    assert [note.name for note in folder.glob("trained_*")] == ["trained_2"]
    assert (trained.with_name("nmt_ende.curves.csv")).read_text().splitlines() == [
        "member,update,measure,value",
        "seed_0,1,valid_loss_nats,0.5",
        "seed_2,1,valid_loss_nats,2.5",
        "seed_3,1,valid_loss_nats,3.5",
    ]
    # In MLflow the run has the mean of all curves, and a child for the member that it trained.
    client = MlflowClient(f"sqlite:///{trained.parents[1] / 'mlflow.db'}")
    child, run = sorted(client.search_runs(["1"]), key=lambda run: run.info.run_name)
    assert run.info.run_name == "train _target_=trainer.trainer seeds=[0,2,3] smoke"
    assert child.info.run_name == "seed_2"
    assert child.data.metrics == {"valid_loss_nats": 2.5}
    assert run.data.metrics == {"valid_loss_nats": pytest.approx(6.5 / 3)}
    finished = (trained / "seed_2" / "manifest.json").stat().st_mtime
    assert child.info.end_time == round(1000 * finished)
    assert run.info.start_time <= child.info.start_time <= child.info.end_time


def test_missing_prepared_data_names_the_stage_to_run(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text(TRAINER)
    result = _train(tmp_path)
    assert result.returncode == 1
    assert "Run python -m stages.prepare first" in result.stderr
