"""README.md's sweep, five temperatures by three beams on the demo's EN-DE, decodes included."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from pipeline.run.settings import ROOT
from tests.bench.measurement import Measurement, NotMeasuredError

OUTPUTS = ROOT / "outputs"
TASK = "nmt_ende"
SWEPT = ("uncertainty.temperature=1,2,5,10,20", "decode.beam=1,5,10")
N_POINT = 15


def measure() -> list[Measurement]:
    """Seconds of the sweep, and of the same sweep again, from the members that outputs/ holds.

    outputs/ is copied and not written; its decodes are not taken over. Raises NotMeasuredError
    where its members are not of the demo.
    """
    if _experiment() != "demo":
        raise NotMeasuredError(
            f"outputs/ must hold the demo's members of {TASK}, got {_experiment()}: "
            f"run make repro with experiment: demo in conf/dag.yaml first"
        )
    with TemporaryDirectory() as name:
        root = Path(name)
        for stage in ("prepare", "train"):
            shutil.copytree(OUTPUTS / stage / TASK, root / stage / TASK)
        first, again = _seconds(root), _seconds(root)
        n_made = len(list((root / "sweep" / TASK).glob("point-*")))
        assert n_made == N_POINT, f"{N_POINT} points must be made, got {n_made}"
    return [
        Measurement("5 T x 3 B on the demo's EN-DE, decodes included", first, "s", "<= 300"),
        Measurement("the same sweep again", again, "s"),
    ]


def _experiment() -> str:
    """The name of the experiment whose members are in outputs/, or nothing."""
    settings = OUTPUTS / "config" / TASK / "resolved.yaml"
    if not (settings.is_file() and (OUTPUTS / "train" / TASK / "manifest.json").is_file()):
        return "nothing"
    return str(yaml.safe_load(settings.read_text(encoding="utf-8"))["experiment"]["name"])


def _seconds(root: Path) -> float:
    command = [sys.executable, "-m", "stages.sweep", "-m", *SWEPT]
    command += ["experiment=demo", f"task={TASK}", f"io.root={root}"]
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start
