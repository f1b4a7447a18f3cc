"""What MLflow adds to a run: a process that logs as much as the demo, with tracking and without.

The metrics of EN-DE log most; here they stand for each tracked run of a demo, so that the sum is a
bound from above.
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

# Counted in the demo's own database.
N_METRIC, N_FIGURE, FIGURE_BYTES = 2910, 8, 100_000
DEMO_SECONDS = 1800  # about what README.md says of two quiet cores
LOGGED = f"""
import sys
from pathlib import Path
from omegaconf import OmegaConf
import stages.metrics  # what the process of the stage has loaded anyway
from pipeline import tracking
from pipeline.run.settings import typed
folder = Path(sys.argv[1])
with tracking.open_run(typed(OmegaConf.load(sys.argv[2])), "metrics") as log:
    log.metrics({{f"measure {{place}}": float(place) for place in range({N_METRIC})}})
    log.artifacts(*sorted(folder.glob("*.svg")))
    log.register("nmt_ende ensembles", folder / "ensemble.json")
"""


def measure() -> list[Measurement]:
    """Seconds a tracked run, seconds of the first that makes the database, share of a demo."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _write_artifacts(folder)
        off, local = (_settings(folder, kind) for kind in ("off", "mlflow_local"))
        _run(folder, off)  # what the first run of all compiles
        start = time.perf_counter()
        _run(folder, local)
        first = time.perf_counter() - start
        without, tracked = alternating_seconds(
            lambda: _run(folder, off), lambda: _run(folder, local), clock=time.perf_counter
        )
    n_run = _runs_of_a_demo()
    added = first - without + (n_run - 1) * (tracked - without)
    return [
        Measurement("a run's process without tracking", without, "s"),
        Measurement("tracking adds to a run", tracked - without, "s"),
        Measurement("tracking adds to the first run, database made", first - without, "s"),
        Measurement(f"tracking adds to the {n_run} tracked runs of a demo", added, "s"),
        Measurement(
            f"share of a demo of {DEMO_SECONDS / 60:.0f} minutes",
            100 * added / DEMO_SECONDS,
            "%",
            "<= 3",
        ),
    ]


def _runs_of_a_demo() -> int:
    """Train and metrics are tracked for each task, tables once; other stages are not."""
    dag = yaml.safe_load((CONF / "dag.yaml").read_text(encoding="utf-8"))
    return 2 * len(dag["tasks"]) + 1


def _write_artifacts(folder: Path) -> None:
    for place in range(N_FIGURE):
        (folder / f"figure_{place:02d}.svg").write_bytes(bytes(FIGURE_BYTES))
    (folder / "ensemble.json").write_text("{}", encoding="utf-8")


def _settings(folder: Path, kind: str) -> Path:
    """A file of the demo's settings with this option of tracking."""
    overrides = ["experiment=demo", f"tracking={kind}", f"io.root={folder / 'results'}"]
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = compose("pipeline", overrides)
    path = folder / f"{kind}.yaml"
    path.write_text(OmegaConf.to_yaml(config), encoding="utf-8")
    return path


def _run(folder: Path, settings: Path) -> None:
    command = [sys.executable, "-c", LOGGED, str(folder), str(settings)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
