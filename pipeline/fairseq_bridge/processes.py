"""One member trained by several processes, which torchrun starts and numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.errors import PipelineError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.job import TrainJob


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
    """Train a member by `train.processes` processes on this machine.

    Raises PipelineError where one of them fails.
    """
    job.resume.mkdir(parents=True, exist_ok=True)
    path = job.resume / "job.json"
    job.write(path)
    count = int(job.train["processes"])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={count}", "-m", "pipeline.fairseq_bridge.worker", str(path)]
    if subprocess.run(command, check=False).returncode != 0:
        raise PipelineError(f"{job.title}: one of {count} training processes failed, see above")


def untold(items: Iterable[None], **_: object) -> Iterator[None]:
    """The items alone: what the processes that show no progress iterate over."""
    return iter(items)
