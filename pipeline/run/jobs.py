"""Make the parts of a stage's work by jobs, which are one Hydra multirun of the same stage."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from hydra.core.hydra_config import HydraConfig

from pipeline.errors import PipelineError
from pipeline.run.artifacts import PartFolder
from pipeline.run.points import is_multirun, label_of_job
from pipeline.run.settings import PipelineConfig

_SECONDS_TO_CLEAN_UP = 30  # of interrupted jobs
_SEPARATOR = " + "  # between the parts of one job, in setting `part`
# Parts are no points: their jobs need a folder for Hydra's own files only.
_FOLDERS = (
    "hydra.sweep.dir=${hydra.callbacks.sweep_parent.folder}",
    "hydra.sweep.subdir=${hydra.job.num}",
)


def parts_of_job(part: str) -> list[str]:
    """Return the names of the parts that the value of setting `part` asks for."""
    return part.split(_SEPARATOR)


def job_number() -> int:
    """The number of this job in its multirun, from 0; 0 outside of a multirun."""
    return int(HydraConfig.get().job.num) if is_multirun() else 0


def run_parts(
    config: PipelineConfig, folder: PartFolder, parts_per_job: int = 1, n_gpu: int = 0
) -> list[str]:
    """Make the missing parts of {io.root}/{stage}/{task} side by side; return their names.

    Jobs with `parts_per_job` parts each run through the chosen launcher. n_gpu: number of GPUs of
    this machine that jobs use; local jobs are then as many as GPUs, whatever `parts_per_job` is.
    Raises PipelineError naming the parts that failed; finished parts are kept.
    """
    missing = folder.missing()
    if missing:
        starts = range(0, len(missing), parts_per_job)
        jobs = [missing[start : start + parts_per_job] for start in starts]
        _run_jobs(config, folder, jobs, n_gpu)
        failed = folder.missing()
        if failed:
            raise PipelineError(
                f"{folder.root}: {len(failed)} of {len(missing)} parts failed "
                f"({', '.join(failed)}). Finished parts are kept; the next run makes only these."
            )
    folder.write_manifest()
    return missing


def run_shards(
    config: PipelineConfig, folder: PartFolder, shards: Mapping[str, list[str]], n_gpu: int = 0
) -> None:
    """Make the shards of missing parts side by side; `run_parts` joins them afterwards.

    shards: part -> the values of setting `part` that make its shards; empty for a part without
    shards. n_gpu: as of `run_parts`. Raises PipelineError if a job failed; finished shards are
    kept.
    """
    jobs = [[shard] for part in folder.missing() for shard in shards[part]]
    if jobs and _run_jobs(config, folder, jobs, n_gpu):
        raise PipelineError(
            f"{folder.root}: shards of parts failed (see the messages above). "
            "Finished shards are kept; the next run makes only the missing ones."
        )


def jobs_of_gpus(parts: Sequence[str], n_gpu: int) -> list[list[str]]:
    """Divide parts among jobs, at most one per GPU: each GPU in turn gets the next part."""
    return [list(parts[first::n_gpu]) for first in range(min(n_gpu, len(parts)))]


def _run_jobs(config: PipelineConfig, folder: PartFolder, jobs: list[list[str]], n_gpu: int) -> int:
    """Run this stage as one multirun with these parts per job; return its exit code."""
    launcher = _launcher_overrides()
    if n_gpu and launcher[0] == "hydra/launcher=local":
        # Two processes on one GPU would share its memory.
        jobs = jobs_of_gpus([part for parts in jobs for part in parts], n_gpu)
        launcher.insert(1, f"hydra.launcher.n_jobs={len(jobs)}")
    command = [sys.executable, "-m", f"stages.{folder.stage}", "--multirun"]
    command += [
        f"from_config={_quoted(str(config.from_config))}",
        f"io.root={_quoted(config.io.root)}",
        f"hydra.callbacks.sweep_parent.label={_quoted(label_of_job())}",
        f"part={','.join(_quoted(_SEPARATOR.join(parts)) for parts in jobs)}",
        *_FOLDERS,
        *launcher,
    ]
    return _run_in_group(command)


def _launcher_overrides() -> list[str]:
    """Return the overrides that choose the launcher of this run.

    Inside a cluster job this is the local launcher, because jobs that wait for other jobs could
    fill the cluster.
    """
    hydra_config = HydraConfig.get()
    chosen = hydra_config.runtime.choices["hydra/launcher"]
    if is_multirun() and chosen != "local":
        return ["hydra/launcher=local"]
    overrides = hydra_config.overrides.hydra
    settings = [override for override in overrides if "hydra.launcher." in override]
    return [f"hydra/launcher={chosen}", *settings]


def _run_in_group(command: list[str]) -> int:
    """Run a command in a process group of its own, which ends with this process.

    setpriv, a part of util-linux, ends it even if this process is killed, as the launcher does with
    the jobs of an interrupted multirun.
    """
    if shutil.which("setpriv"):
        command = ["setpriv", "--pdeathsig", "TERM", *command]
    process = subprocess.Popen(command, process_group=0)
    try:
        return process.wait()
    except BaseException:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):  # it is killed when this process ends
            process.wait(_SECONDS_TO_CLEAN_UP)
        raise


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
