"""Make the parts of a stage's work by jobs, which are one Hydra multirun of the same stage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from pipeline.errors import PipelineError
from pipeline.run.artifacts import PartFolder
from pipeline.run.settings import PipelineConfig

_SEPARATOR = " + "  # between the parts of one job, in setting `part`


def parts_of_job(part: str) -> list[str]:
    """Return the names of the parts that the value of setting `part` asks for."""
    return part.split(_SEPARATOR)


def run_parts(config: PipelineConfig, folder: PartFolder, parts_per_job: int = 1) -> list[str]:
    """Make the missing parts of {io.root}/{stage}/{task} side by side; return their names.

    Jobs with `parts_per_job` parts each run through the chosen launcher. Raises PipelineError
    naming the parts that failed; finished parts are kept.
    """
    missing = folder.missing()
    if missing:
        starts = range(0, len(missing), parts_per_job)
        _run_jobs(
            config,
            folder,
            [_SEPARATOR.join(missing[start : start + parts_per_job]) for start in starts],
        )
        failed = folder.missing()
        if failed:
            raise PipelineError(
                f"{folder.root}: {len(failed)} of {len(missing)} parts failed "
                f"({', '.join(failed)}). Finished parts are kept; the next run makes only these."
            )
    folder.write_manifest()
    return missing


def run_shards(config: PipelineConfig, folder: PartFolder, shards: Mapping[str, list[str]]) -> None:
    """Make the shards of missing parts side by side; `run_parts` joins them afterwards.

    shards: part -> the values of setting `part` that make its shards; empty for a part without
    shards. Raises PipelineError if a job failed; finished shards are kept.
    """
    jobs = [shard for part in folder.missing() for shard in shards[part]]
    if jobs and _run_jobs(config, folder, jobs):
        raise PipelineError(
            f"{folder.root}: shards of parts failed (see the messages above). "
            "Finished shards are kept; the next run makes only the missing ones."
        )


def _run_jobs(config: PipelineConfig, folder: PartFolder, jobs: list[str]) -> int:
    """Run this stage as one multirun, a job per value of setting `part`; return its exit code."""
    command = [sys.executable, "-m", f"stages.{folder.stage}", "--multirun"]
    command += [
        f"from_config={_quoted(str(config.from_config))}",
        f"io.root={_quoted(config.io.root)}",
        f"part={','.join(map(_quoted, jobs))}",
        *_launcher_overrides(),
    ]
    return _run_in_group(command)


def _launcher_overrides() -> list[str]:
    """Return the overrides that choose the launcher of this run.

    Inside a cluster job this is the local launcher, because jobs that wait for other jobs could
    fill the cluster.
    """
    hydra_config = HydraConfig.get()
    chosen = hydra_config.runtime.choices["hydra/launcher"]
    if hydra_config.mode == RunMode.MULTIRUN and chosen != "local":
        return ["hydra/launcher=local"]
    overrides = hydra_config.overrides.hydra
    settings = [override for override in overrides if "hydra.launcher." in override]
    return [f"hydra/launcher={chosen}", *settings]


def _run_in_group(command: list[str]) -> int:
    """Run a command in a process group of its own, which ends with this process."""
    with subprocess.Popen(command, process_group=0) as process:
        try:
            return process.wait()
        except BaseException:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(process.pid, signal.SIGTERM)
            raise


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
