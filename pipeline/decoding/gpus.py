"""The GPUs of this machine: how many there are, and which one a job uses."""

from __future__ import annotations


def gpu_count(device: str) -> int:
    """Number of GPUs that the jobs of `decode.device` share; 0 if it is the CPU."""
    if device == "cpu":
        return 0
    import torch

    return torch.cuda.device_count()


def gpu_of_job(job: int, n_gpu: int) -> int:
    """Index of the GPU of a job, counted from 0. As many jobs as there are GPUs have one each."""
    return job % n_gpu


def use_gpu_of_job(job: int) -> None:
    """Let `cuda` mean the GPU of a job. Without a GPU nothing happens; loading a model fails."""
    import torch

    if n_gpu := torch.cuda.device_count():
        torch.cuda.set_device(gpu_of_job(job, n_gpu))
