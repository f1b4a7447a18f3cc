"""Runs in MLflow: one store, ASCII names, and children with their parent."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from mlflow import MlflowClient
from mlflow.entities import Run

from pipeline.errors import MachineError, PipelineError
from pipeline.run.locks import exclusive_lock
from pipeline.run.settings import CONF, ROOT, PipelineConfig, typed
from pipeline.tracking import experiment, metric_name, open_run, run
from tests.conftest import CORES_OF_A_STAGE

pytestmark = pytest.mark.slow

ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}


def settings(root: Path, *overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return typed(compose("pipeline", [f"io.root='{root}'", *overrides]))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("H_C-IW^(B)", "H_C-IW_B"),
        ("prr prex=entropy @1", "prr_prex_entropy_1"),
        ("Größe", "Gr_e"),
        ("tab:ood/roc_auc", "tab_ood/roc_auc"),
    ],
)
def test_case_22_names_are_ascii(text: str, name: str) -> None:
    assert metric_name(text) == name


def test_run_has_params_metrics_curves_and_files(tmp_path: Path) -> None:
    curve = tmp_path / "curve.csv"
    curve.write_text("update,loss\n10,2.5\n20,1.5\n")
    root = tmp_path / "out: put"
    now = time.time()
    with open_run(settings(root, "experiment=smoke"), "metrics", now - 60) as log:
        log.metrics({"bleu": 20.5, "undefined": math.nan})
        log.curve("seed_1", curve, begun=now - 50, ended=now - 20)
        log.artifacts(curve)
    client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("nmt_ende")
    assert experiment is not None
    child, run = client.search_runs([experiment.experiment_id])
    if "mlflow.parentRunId" in run.data.tags:
        child, run = run, child
    assert run.data.metrics == {"bleu": 20.5}
    assert run.info.run_name == "metrics smoke"
    assert run.data.params["decode.beam"] == "5"
    assert run.data.tags["task"] == "nmt_ende"
    assert run.info.status == "FINISHED"
    assert child.data.tags["mlflow.parentRunId"] == run.info.run_id
    assert child.data.tags["stage"] == "metrics"
    # The duration in MLflow is that of the work, not that of logging it.
    assert 60_000 <= run.info.end_time - run.info.start_time < 120_000
    assert child.info.end_time - child.info.start_time == 30_000
    assert [m.value for m in client.get_metric_history(child.info.run_id, "loss")] == [2.5, 1.5]
    assert {f.path for f in client.list_artifacts(run.info.run_id)} == {
        "curve.csv",
        "settings.yaml",
    }


@pytest.mark.parametrize("absolute", [True, False])
def test_sqlite_of_the_users_own_is_made_under_a_lock_with_artifacts_beside_it(
    absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("shared")
    uri = f"sqlite:///{(tmp_path if absolute else Path()) / folder / 'fresh.db'}"
    created = []
    create_database = experiment._create_database

    def locked(path: Path) -> None:
        held = pytest.raises(PipelineError, match=r"fresh\.lock: locked")
        with held, exclusive_lock(folder / "fresh.lock", "MLflow", wait=False):
            pass
        created.append(path)
        create_database(path)

    monkeypatch.setattr(experiment, "_create_database", locked)
    config = settings(tmp_path / "out", f"tracking.uri='{uri}'")
    (tmp_path / "curve.csv").write_text("update,loss\n")
    for _ in range(2):
        with open_run(config, "metrics") as log:
            log.artifacts(tmp_path / "curve.csv")
    assert created == [tmp_path / folder / "fresh.db"]
    assert len(list((folder / "mlartifacts" / "nmt_ende").rglob("curve.csv"))) == 2
    assert not Path("mlruns").exists()


def test_param_that_mlflow_cannot_hold_ends_with_a_mark_and_a_hash() -> None:
    texts = ["x" * 6000, "x" * 6001, "x" * 6000 + "y"]
    whole, *cut = map(run._shortened, texts)
    assert whole == texts[0]
    assert [len(text) for text in cut] == [6000, 6000]
    assert cut[0] != cut[1]
    digest = hashlib.sha256(texts[1].encode()).hexdigest()
    assert cut[0].endswith(f"xxx... (cut; all in settings.yaml, sha256 {digest})")


def test_mean_curve_has_the_updates_and_columns_of_all_members(tmp_path: Path) -> None:
    curves = [tmp_path / "1.csv", tmp_path / "2.csv"]
    curves[0].write_text("update,loss,valid_bleu\n10,2.5,1\n20,1.5,2\n")
    curves[1].write_text("update,loss\n10,3.5\n30,1.0\n")
    with open_run(settings(tmp_path), "train") as log:
        log.mean_curve(curves)
        log.mean_curve([])
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs(["1"])
    assert run.data.metrics == {"loss": 3.0}
    assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == [10]


def test_members_are_a_new_version_only_if_they_change(tmp_path: Path) -> None:
    manifest = tmp_path / "ensemble.json"
    for members in ("[1]", "[1]", "[1, 2]", "[1]"):
        manifest.write_text(members)
        with open_run(settings(tmp_path), "metrics") as log:
            log.register("nmt_ende ensembles", manifest)
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    versions = client.search_model_versions("name='nmt_ende ensembles'")
    assert sorted(int(version.version) for version in versions) == [1, 2, 3]
    runs = client.search_runs(["1"])
    assert all(
        [artifact.path for artifact in client.list_artifacts(run.info.run_id)].count(
            "ensemble.json"
        )
        for run in runs
    )


def test_a_stage_that_fails_leaves_a_failed_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stop"), open_run(settings(tmp_path), "metrics"):
        raise ValueError("stop")
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs(["1"])
    assert run.info.status == "FAILED"


def test_a_curve_that_cannot_be_read_leaves_a_failed_child(tmp_path: Path) -> None:
    curve = tmp_path / "curve.csv"
    curve.write_text("update,loss\n10,2.5\n20,?\n")
    with (
        pytest.raises(ValueError, match="could not convert"),
        open_run(settings(tmp_path, "experiment=smoke"), "train") as log,
    ):
        log.curve("seed_1", curve, begun=0, ended=1)
    runs = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}").search_runs(["1"])
    assert {run.info.run_name: run.info.status for run in runs} == {
        "train smoke": "FAILED",
        "seed_1": "FAILED",
    }


def test_a_run_without_git_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with open_run(settings(tmp_path), "metrics"):
        pass
    (run,) = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}").search_runs(["1"])
    assert run.data.tags["git"] == "unknown"


def test_a_server_that_does_not_answer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    config = settings(tmp_path, "tracking=mlflow_server", "tracking.uri=http://127.0.0.1:9")
    with (
        pytest.raises(
            MachineError, match=r"tracking\.uri: no MLflow server answers at http://127\.0\.0\.1:9"
        ),
        open_run(config, "metrics"),
    ):
        pass


def test_tracking_off_touches_nothing(tmp_path: Path) -> None:
    with open_run(settings(tmp_path, "tracking=off"), "metrics") as log:
        log.metrics({"bleu": 1.0})
        log.artifacts(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_without_mlflow_tracking_is_off_and_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(experiment, "is_installed", lambda _: False)
    experiment._warn_once.cache_clear()
    for stage in ("uncertainty", "metrics"):
        with open_run(settings(tmp_path), stage) as log:
            log.metrics({"bleu": 1.0})
    assert [record.getMessage() for record in caplog.records] == [
        "tracking: off, since mlflow is not installed. "
        "Run pip install 'sequence-uncertainty[tracking]', or set tracking=off."
    ]
    assert list(tmp_path.iterdir()) == []


def _sweep(folder: Path, body: str, at_once: int = 1) -> subprocess.CompletedProcess[str]:
    """Run a sweep of three temperatures of a stage with this body and root {folder}/out."""
    script = folder / "stage.py"
    script.write_text(
        "from pipeline import tracking\n"
        "from pipeline.errors import DataError\n"
        "from pipeline.run.application import run\n"
        "def metrics(config):\n"
        "    temperature = config.uncertainty.temperature\n"
        f"    {body}\n"
        "    with tracking.open_run(config, 'metrics') as log:\n"
        "        log.metrics({'temperature': temperature})\n"
        "run(metrics, lock=None)\n"
    )
    sweep = ["uncertainty.temperature=1,2,5", f"io.root={folder / 'out'}"]
    return subprocess.run(
        [sys.executable, script, "-m", *sweep],
        check=False,
        cwd=ROOT,
        env={**ENVIRONMENT, CORES_OF_A_STAGE: str(at_once)},
        capture_output=True,
        text=True,
    )


def _parent_and_children(root: Path) -> tuple[Run, list[Run]]:
    client = MlflowClient(f"sqlite:///{root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("nmt_ende")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = (run for run in runs if "mlflow.parentRunId" not in run.data.tags)
    children = [run for run in runs if run is not parent]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    return parent, children


def test_case_20_sweep_of_three_jobs_is_three_runs_with_one_parent(tmp_path: Path) -> None:
    result = _sweep(tmp_path, "pass", at_once=2)
    assert result.returncode == 0, result.stderr
    parent, children = _parent_and_children(tmp_path / "out")
    assert [run.info.status for run in (parent, *children)] == ["FINISHED"] * 4
    assert {run.data.metrics["temperature"] for run in children} == {1, 2, 5}


def test_a_sweep_with_a_job_that_fails_is_a_failed_run(tmp_path: Path) -> None:
    result = _sweep(tmp_path, "if temperature == 2: raise DataError('2 must not be, got 2')")
    assert result.returncode == 1
    failed = "1 of 3 points failed: uncertainty.temperature=2 (2 must not be, got 2)."
    assert failed in result.stderr.splitlines()[-1]
    parent, children = _parent_and_children(tmp_path / "out")
    assert parent.info.status == "FAILED"
    assert {run.data.metrics["temperature"] for run in children} == {1, 5}


def test_a_sweep_that_cannot_be_tracked_does_not_start(tmp_path: Path) -> None:
    with open_run(settings(tmp_path / "out"), "metrics"):
        pass
    MlflowClient(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}").delete_experiment("1")
    result = _sweep(tmp_path, "raise AssertionError('it starts')")
    assert result.returncode == 1
    assert result.stderr.startswith("error: experiment nmt_ende: deleted in MLflow. Restore it by")
    assert result.stderr.count("\n") == 1


def test_eight_processes_start_on_a_store_that_does_not_exist_yet(tmp_path: Path) -> None:
    """The default database takes the same path; only the place of the file differs."""
    script = tmp_path / "begin.py"
    script.write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from hydra import compose, initialize_config_dir\n"
        "from pipeline.run.settings import CONF, typed\n"
        "from pipeline.tracking import open_run\n"
        "overrides = ['io.root=out', \"tracking.uri='sqlite:///fresh.db'\"]\n"
        "with initialize_config_dir(version_base='1.3', config_dir=str(CONF)):\n"
        "    settings = typed(compose('pipeline', overrides))\n"
        "Path(f'ready {sys.argv[1]}').touch()\n"
        "while len(list(Path().glob('ready *'))) < 8:\n"
        "    time.sleep(0.05)\n"
        "with open_run(settings, f'stage_{sys.argv[1]}') as log:\n"
        "    log.metrics({f'm{index}': index for index in range(600)})\n"
    )
    command = [sys.executable, str(script)]
    runs = [
        subprocess.Popen([*command, str(number)], cwd=tmp_path, env=ENVIRONMENT)
        for number in range(8)
    ]
    assert [run.wait() for run in runs] == [0] * 8
    client = MlflowClient(f"sqlite:///{tmp_path / 'fresh.db'}")
    tracked = client.search_runs(["1"])
    assert {run.data.tags["stage"] for run in tracked} == {f"stage_{n}" for n in range(8)}
    assert {len(run.data.metrics) for run in tracked} == {600}
    assert [experiment.name for experiment in client.search_experiments()] == ["nmt_ende"]
    assert not (tmp_path / "mlruns").exists()
    assert not (tmp_path / "out").exists()
