"""Overhead of MLflow: a process that logs as much as the demo, with and without tracking.

It logs what stages train and metrics log for EN-DE together, and represents every tracked run of
the demo, so the sum is an upper bound.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from pipeline.run.settings import CONF, ROOT
from tests.bench.measurement import Measurement, alternating_seconds

# Counted in the results of the demo.
N_METRIC, N_FIGURE, FIGURE_BYTES, CELLS_BYTES = 44, 8, 100_000, 3_000_000
N_MEMBER, N_VALIDATION = 4, 4
DEMO_SECONDS = 1800  # about the time that README.md states for two idle cores
LOGGED = f"""
import sys
import time
from pathlib import Path
from omegaconf import OmegaConf
import stages.metrics  # loaded in the process of the stage anyway
from pipeline import tracking
from pipeline.run.settings import typed
folder = Path(sys.argv[1])
with tracking.open_run(typed(OmegaConf.load(sys.argv[2])), "metrics") as log:
    log.metrics({{f"measure {{place}}": float(place) for place in range({N_METRIC})}})
    log.artifacts(folder / "cells.csv", *sorted(folder.glob("*.svg")))
    log.mean_curve([folder / "curve.csv"] * {N_MEMBER})
    for member in range({N_MEMBER}):
        log.curve(f"seed_{{member}}", folder / "curve.csv", time.time(), time.time())
    log.register("nmt_ende ensembles", folder / "ensemble.json")
"""


def measure() -> list[Measurement]:
    """Measure a tracked run, the first run (creates the database), and the share of a demo."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _write_artifacts(folder)
        off, local = (_settings(folder, kind) for kind in ("off", "mlflow_local"))
        _run(folder, off)  # warm up: the first run compiles
        start = time.perf_counter()
        _run(folder, local)
        first = time.perf_counter() - start
        without, tracked = alternating_seconds(
            lambda: _run(folder, off), lambda: _run(folder, local), clock=time.perf_counter
        )
    n_run = _runs_of_a_demo()
    added = first - without + (n_run - 1) * (tracked - without)
    return [
        Measurement("process of a run without tracking", without, "s"),
        Measurement("overhead of tracking per run", tracked - without, "s"),
        Measurement("overhead of tracking of the first run, with database", first - without, "s"),
        Measurement(f"overhead of tracking of the {n_run} tracked runs of a demo", added, "s"),
        Measurement(
            f"share of a demo of {DEMO_SECONDS / 60:.0f} minutes",
            100 * added / DEMO_SECONDS,
            "%",
            "<= 3",
        ),
    ]


def _runs_of_a_demo() -> int:
    """Count the tracked runs: train and metrics for each task, tables once."""
    dag = yaml.safe_load((CONF / "dag.yaml").read_text(encoding="utf-8"))
    return 2 * len(dag["tasks"]) + 1


def _write_artifacts(folder: Path) -> None:
    for place in range(N_FIGURE):
        (folder / f"figure_{place:02d}.svg").write_bytes(bytes(FIGURE_BYTES))
    (folder / "ensemble.json").write_text("{}", encoding="utf-8")
    (folder / "cells.csv").write_bytes(bytes(CELLS_BYTES))
    rows = [f"{100 * place},1.5,1.4,20.1" for place in range(1, N_VALIDATION + 1)]
    header = "update,train_loss_nats,valid_loss_nats,valid_bleu"
    (folder / "curve.csv").write_text("\n".join([header, *rows]), encoding="utf-8")


def _settings(folder: Path, kind: str) -> Path:
    """Write the demo's settings with this tracking option to a file."""
    overrides = ["experiment=demo", f"tracking={kind}", f"io.root={folder / 'results'}"]
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = compose("pipeline", overrides)
    path = folder / f"{kind}.yaml"
    path.write_text(OmegaConf.to_yaml(config), encoding="utf-8")
    return path


def _run(folder: Path, settings: Path) -> None:
    command = [sys.executable, "-c", LOGGED, str(folder), str(settings)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
