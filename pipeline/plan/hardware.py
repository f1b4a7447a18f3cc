"""What runs the work: a table of accelerators, each with its source, in the units of a plan."""

from __future__ import annotations

from dataclasses import dataclass

# Share of the peak that training has: of translation by Ott et al. 2018, table 1 (8 V100: 143,000
# target tokens a second in fp16, 54,000 in fp32), of speech by the paper (8 days on 8 V100).
# tests/pipeline/plan/ works them out again. Other accelerators, and decoding, are assumed to have
# the same share.
USABLE_SHARE = {
    ("translation", "fp16"): 0.187,
    ("translation", "fp32"): 0.56,
    ("speech", "fp16"): 0.125,
    ("speech", "fp32"): 0.125,
}
# Host time of one step of a search, in which a GPU waits for its next kernels: an assumption.
GPU_STEP_SECONDS = 0.02


@dataclass(frozen=True)
class Hardware:
    """One device: usable operations a second in training and in decoding, memory, and the rest.

    bytes_a_second: of its memory; step_seconds: least time of one step of a search.
    """

    name: str
    train_flops: float
    decode_flops: float
    memory_bytes: float
    bytes_a_second: float
    step_seconds: float
    source: str


@dataclass(frozen=True)
class _Accelerator:
    peak_flops: dict[str, float]
    memory_bytes: float
    bytes_a_second: float
    source: str


ACCELERATORS = {
    "v100": _Accelerator(
        {"fp16": 125e12, "fp32": 15.7e12}, 16e9, 900e9, "NVIDIA V100 SXM2, data sheet"
    ),
    "a100": _Accelerator(
        {"fp16": 312e12, "fp32": 19.5e12}, 80e9, 2039e9, "NVIDIA A100 80GB SXM, data sheet"
    ),
    "h100": _Accelerator(
        {"fp16": 989e12, "fp32": 67e12}, 80e9, 3350e9, "NVIDIA H100 SXM, data sheet, dense"
    ),
}


def accelerator(name: str, family: str, train_precision: str, decode_dtype: str) -> Hardware:
    """An accelerator of the table, for a family of tasks and the precisions of both stages."""
    found = ACCELERATORS[name]

    def usable(precision: str) -> float:
        return found.peak_flops[precision] * USABLE_SHARE[family, precision]

    return Hardware(
        name,
        usable("fp32" if train_precision == "fp32" else "fp16"),
        usable("fp32" if decode_dtype == "float32" else "fp16"),
        found.memory_bytes,
        found.bytes_a_second,
        GPU_STEP_SECONDS,
        found.source,
    )
