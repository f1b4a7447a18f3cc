"""A tiny pipeline run that tests can start stage by stage, interrupt and compare."""

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
# Stage -> its output folders, in the order in which the stages run.
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
    "debian-reference",
    "fish-fillets",
    "librispeech-test-other",
    "french-source",
    "typos",
    "truncated",
    "german-english",
    "german-german",
    "english-english",
    "french-english",
)
_FIGURES_LEFT_OUT = (
    "rejection_example",
    "error_histograms",
    "confidence_histograms",
    "reliability",
    "sensitivity_to_beam",
    "sensitivity_to_temperature",
    "baselines",
    "ablation",
)
# Overrides in addition to experiment=fault.
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
    """A run with results below `root`, prepared from the Debian packages in `packages`."""

    root: Path
    packages: Path

    def copy_before(self, stage: str, root: Path) -> SmallRun:
        """Copy the results of all stages before `stage` to another root; return that run."""
        for earlier in STAGES[: STAGES.index(stage)]:
            for out in OUTS[earlier]:
                shutil.copytree(self.root / out, root / out)
        root.mkdir(parents=True, exist_ok=True)
        return SmallRun(root, self.packages)

    def command(self, stage: str, *overrides: str) -> list[str]:
        folders = [f"data.packages='{self.packages}'", f"io.root='{self.root}'"]
        program = [sys.executable, "-m", f"stages.{stage}", "experiment=fault"]
        return [*program, *SETTINGS, *folders, *overrides]

    @contextmanager
    def started(
        self,
        stage: str,
        *overrides: str,
        path: Path = HELD,
        held_before: int | None = None,
        preexec_fn: Callable[[], object] | None = None,
    ) -> Iterator[subprocess.Popen[str]]:
        """Start a stage in its own session, which is killed at the end of the `with` block.

        Python searches the folder `path` for modules first. The run pauses for minutes before it
        moves file number `held_before` into place.
        """
        self._move_counter.unlink(missing_ok=True)
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

    def digests(self, stage: str) -> Mapping[str, str]:
        """Return path -> sha256 of every file of the stage, including hidden files and folders."""
        outs = [path for out in OUTS[stage] for path in (out, *self.root.glob(f".{out}.*"))]
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for out in outs
            for path in sorted((self.root / out).rglob("*"))
            if path.is_file()
        }

    def visible_digests(self, stage: str) -> Mapping[str, str]:
        """Return `digests` without hidden files and folders, which may be incomplete by design."""
        return {
            path: digest for path, digest in self.digests(stage).items() if "/." not in f"/{path}"
        }

    @property
    def _move_counter(self) -> Path:
        return self.root.with_name(f"{self.root.name}.moved")

    def files_moved(self) -> int:
        """Return how many files the last run has moved into place or is about to move."""
        return self._move_counter.stat().st_size if self._move_counter.exists() else 0


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until `process` fulfils the condition; fail if it ends earlier."""
    for _ in range(12000):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("waited two minutes")


def kill(process: subprocess.Popen[str]) -> None:
    """Send SIGKILL to a process and all its descendants, whatever process group they are in."""
    while members := [pid for pid in psutil.pids() if _session_of(pid) == process.pid]:
        for pid in members:
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
