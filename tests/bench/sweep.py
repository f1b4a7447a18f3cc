"""The sweep of README.md: five temperatures and three beam sizes on the demo's EN-DE."""

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
    """Measure the sweep and its repetition, starting from the members in outputs/.

    outputs/ is copied and not modified, and its decodes are not reused. Raises NotMeasuredError
    if its members are not those of the demo.
    """
    if _experiment() != "demo":
        raise NotMeasuredError(
            f"outputs/: no demo members of {TASK} (found {_experiment()}). "
            f"Run make repro with experiment: demo in conf/dag.yaml first."
        )
    with TemporaryDirectory() as name:
        root = Path(name)
        for stage in ("prepare", "train"):
            shutil.copytree(OUTPUTS / stage / TASK, root / stage / TASK)
        first, again = _seconds(root), _seconds(root)
        n_made = len(list((root / "sweep" / TASK).glob("point-*")))
        assert n_made == N_POINT, f"expected {N_POINT} points, found {n_made}"
    return [
        Measurement("5 T x 3 B on the demo's EN-DE, including decodes", first, "s", "<= 300"),
        Measurement("the same sweep again", again, "s"),
    ]


def _experiment() -> str:
    """Return the name of the experiment whose members are in outputs/, or `nothing`."""
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
