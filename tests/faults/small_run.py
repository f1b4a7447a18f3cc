"""The pipeline at its smallest, stage by stage in one folder, to be disturbed."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipeline.run.settings import ROOT

HELD = Path(__file__).with_name("held")
# Stage -> the folders of its results, in the order in which the stages run.
OUTS = {
    "prepare": ["prepare"],
    "train": ["train"],
    "decode": ["decode"],
    "uncertainty": ["uncertainty"],
    "metrics": ["metrics"],
    "tables": ["tables", "report"],
}
STAGES = tuple(OUTS)
_SETS_LEFT_OUT = (
    "MED",
    "LTC",
    "LTO",
    "L-FR",
    "TYPO",
    "CUT",
    "L-DEEN",
    "L-DEDE",
    "L-ENEN",
    "L-FREN",
)
_FIGURES_LEFT_OUT = (
    "error_histograms",
    "confidence_histograms",
    "reliability",
    "sensitivity_to_beam",
    "sensitivity_to_temperature",
    "ablation",
)
# Beside experiment=fault.
SETTINGS = [
    "data.train_sentences=null",
    "data.vocabulary_size=100",
    "data.near_duplicate_jaccard=1",
    "data.dev_sentences=6",
    "decode.also=[members,teacher_forcing]",
    "tracking=off",
    *(f"~task.test_sets.{name}" for name in _SETS_LEFT_OUT),
    *(f"~report.figures.{name}" for name in _FIGURES_LEFT_OUT),
]


@dataclass(frozen=True)
class SmallRun:
    """root: the folder of results; packages: the Debian packages that it is made from."""

    root: Path
    packages: Path

    def before(self, stage: str, root: Path) -> SmallRun:
        """A run in another folder that has the results of all stages before `stage`."""
        for earlier in STAGES[: STAGES.index(stage)]:
            for out in OUTS[earlier]:
                shutil.copytree(self.root / out, root / out)
        root.mkdir(parents=True, exist_ok=True)
        return SmallRun(root, self.packages)

    def command(self, stage: str, *overrides: str) -> list[str]:
        own = [f"data.packages='{self.packages}'", f"io.root='{self.root}'"]
        program = [sys.executable, "-m", f"stages.{stage}", "experiment=fault"]
        return [*program, *SETTINGS, *own, *overrides]

    @contextmanager
    def started(
        self,
        stage: str,
        *overrides: str,
        path: Path = HELD,
        held_before: int | None = None,
        preexec_fn: Callable[[], object] | None = None,
    ) -> Iterator[subprocess.Popen[str]]:
        """A stage that runs in a session of its own, which is killed at the end of the block.

        path: where Python looks for modules first. held_before: the run waits, for minutes, before
        it puts the file of this number in place.
        """
        self._placed.unlink(missing_ok=True)
        held = {} if held_before is None else {"HELD_BEFORE": str(held_before)}
        process = subprocess.Popen(
            self.command(stage, *overrides),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{path}:{ROOT}", "HELD": str(self.root), **held},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=preexec_fn,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                kill(process)

    def finish(self, stage: str) -> None:
        with self.started(stage) as process:
            out, err = process.communicate(timeout=300)
        assert process.returncode == 0, out[-2000:] + err[-4000:]

    def made(self, stage: str) -> Mapping[str, str]:
        """Path -> sha256 of every file that the stage made, hidden and beside its outs too."""
        outs = [path for out in OUTS[stage] for path in (out, *self.root.glob(f".{out}.*"))]
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for out in outs
            for path in sorted((self.root / out).rglob("*"))
            if path.is_file()
        }

    def shows(self, stage: str) -> Mapping[str, str]:
        """The files of `made` that a reader could take for results.

        What is hidden, or in a hidden folder, is half made by design, until the next run.
        """
        return {path: one for path, one in self.made(stage).items() if "/." not in f"/{path}"}

    @property
    def _placed(self) -> Path:
        return self.root.with_name(f"{self.root.name}.placed")

    def placed(self) -> int:
        """How many files the last run that was started has put in place, or waits to."""
        return self._placed.stat().st_size if self._placed.exists() else 0


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for something that `process` does; an error where it ends before."""
    for _ in range(12000):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("waited two minutes")


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 for a process and all that it started, whatever groups they are in."""
    while own := [pid for pid in psutil.pids() if _session_of(pid) == process.pid]:
        for pid in own:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.poll()
    process.communicate()


def _session_of(pid: int) -> int | None:
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return None
        return os.getsid(pid)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None
