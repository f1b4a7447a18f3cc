"""The description of the training of one member, and the processes that share the work."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError, PipelineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.run.files import digest, write_json

_PATHS = ("data", "out", "resume")
# Ports at which the processes of a job on several nodes meet: 20000 to 29999.
_FIRST_PORT, _PORTS = 20_000, 10_000


@dataclass(frozen=True)
class TrainJob:
    """Folders, seed and settings for training one member.

    `model` and `train` are the groups of these names as plain values.

    `family` is task.family. The vocabulary is dict.{target_language}.txt in `data`.
    """

    title: str
    data: Path
    out: Path
    resume: Path
    seed: int
    source_language: str
    target_language: str
    model: Mapping[str, Any]
    train: Mapping[str, Any]
    family: str = "translation"

    def write(self, path: Path) -> None:
        """Write the job as JSON for another process."""
        write_json(path, asdict(self) | {name: str(getattr(self, name)) for name in _PATHS})


def read_job(path: Path) -> TrainJob:
    """Read a job that `TrainJob.write` wrote."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return TrainJob(**content | {name: Path(content[name]) for name in _PATHS})


def world_size() -> int:
    """Number of processes that train this member."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Whether this process writes the results."""
    return int(os.environ.get("RANK", "0")) == 0


def process_settings() -> dict[str, Any]:
    """The section `distributed_training` of fairseq's configuration for this process."""
    if world_size() == 1:
        return {"distributed_world_size": 1}
    on_gpu = import_fairseq("torch").cuda.is_available()
    return {
        "distributed_world_size": world_size(),
        "distributed_rank": int(os.environ["RANK"]),
        "device_id": int(os.environ["LOCAL_RANK"]),
        "distributed_init_method": "env://",
        "distributed_backend": "nccl" if on_gpu else "gloo",
        "ddp_backend": "pytorch_ddp" if on_gpu else "legacy_ddp",
    }


def sum_over_processes(*values: float) -> tuple[float, ...]:
    """Sum each value over all processes that train this member."""
    if world_size() == 1:
        return values
    torch = import_fairseq("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    total = torch.tensor(values, dtype=torch.float64, device=device)
    torch.distributed.all_reduce(total)
    return tuple(total.tolist())


def train_in_processes(job: TrainJob) -> None:
    """Train a member with `train.processes` processes, on all nodes of a Slurm job.

    Raises ConfigError if the processes cannot be spread evenly over the nodes, PipelineError if one
    of them fails.
    """
    job.resume.mkdir(parents=True, exist_ok=True)
    path = job.resume / "job.json"
    job.write(path)
    count = int(job.train["processes"])
    command = [*torchrun(count, job.title, os.environ), "-m", "pipeline.fairseq_bridge.training"]
    command.append(str(path))
    if subprocess.run(command, check=False).returncode != 0:
        raise PipelineError(
            f"{job.title}: one of {count} training processes failed. See its messages above."
        )


def torchrun(count: int, title: str, environment: Mapping[str, str]) -> list[str]:
    """The command that starts and numbers `count` processes; what they run must be appended.

    In a Slurm job of several nodes, srun starts one torchrun per node. They meet on this node, at
    a port and under a name that depend on the Slurm job and `title`, so that several trainings do
    not connect to each other. Raises ConfigError if the processes cannot be spread evenly over the
    nodes.
    """
    nodes = int(environment.get("SLURM_JOB_NUM_NODES", "1"))
    command = [sys.executable, "-m", "torch.distributed.run"]
    if nodes == 1:
        return [*command, "--standalone", f"--nproc-per-node={count}"]
    if count % nodes:
        raise ConfigError(
            f"train.processes: must be a multiple of the job's {nodes} nodes (got {count})."
        )
    meeting = digest(environment["SLURM_JOB_ID"], title)
    port = _FIRST_PORT + int(meeting, 16) % _PORTS
    return [
        *("srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
        *(*command, f"--nnodes={nodes}", f"--nproc-per-node={count // nodes}"),
        *("--rdzv-backend=c10d", f"--rdzv-id={meeting[:16]}"),
        f"--rdzv-endpoint={socket.gethostname()}:{port}",
    ]
