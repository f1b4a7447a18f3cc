"""One member trained by several processes, which torchrun starts and numbers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.errors import ConfigError, PipelineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.run.files import digest

# Where the processes of a job on several nodes meet: 20000 to 29999, by the number of the job.
_FIRST_PORT, _PORTS = 20_000, 10_000


def world_size() -> int:
    """How many processes train this member."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_first_process() -> bool:
    """Whether this process is the one that writes."""
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
    """The sums of numbers of which every process has its own."""
    if world_size() == 1:
        return values
    torch = import_fairseq("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    total = torch.tensor(values, dtype=torch.float64, device=device)
    torch.distributed.all_reduce(total)
    return tuple(total.tolist())


def train_in_processes(job: TrainJob) -> None:
    """Train a member by `train.processes` processes: here, or on all nodes of this Slurm job.

    Raises ConfigError where the nodes cannot have equal shares, PipelineError where one fails.
    """
    job.resume.mkdir(parents=True, exist_ok=True)
    path = job.resume / "job.json"
    job.write(path)
    count = int(job.train["processes"])
    command = [
        *torchrun(count, job.title, os.environ),
        "-m",
        "pipeline.fairseq_bridge.training.worker",
        str(path),
    ]
    if subprocess.run(command, check=False).returncode != 0:
        raise PipelineError(f"{job.title}: one of {count} training processes failed, see above")


def torchrun(count: int, title: str, environment: Mapping[str, str]) -> list[str]:
    """The command that starts and numbers `count` processes, before what they run.

    title: what is trained. In a Slurm job of several nodes srun starts one torchrun a node, and
    they meet on this one, at a port and under a name that are this training's own. Raises
    ConfigError where the nodes cannot have equal shares.
    """
    nodes = int(environment.get("SLURM_JOB_NUM_NODES", "1"))
    command = [sys.executable, "-m", "torch.distributed.run"]
    if nodes == 1:
        return [*command, "--standalone", f"--nproc-per-node={count}"]
    if count % nodes:
        raise ConfigError(
            f"train.processes must be a multiple of the {nodes} nodes of the job, got {count}"
        )
    meeting = digest(environment["SLURM_JOB_ID"], title)
    port = _FIRST_PORT + int(meeting, 16) % _PORTS
    return [
        *("srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
        *(*command, f"--nnodes={nodes}", f"--nproc-per-node={count // nodes}"),
        *("--rdzv-backend=c10d", f"--rdzv-id={meeting[:16]}"),
        f"--rdzv-endpoint={socket.gethostname()}:{port}",
    ]


def untold(items: Iterable[None], **_: object) -> Iterator[None]:
    """The items alone: what the processes that show no progress iterate over."""
    return iter(items)
