"""What runs the work: a table of accelerators, each with its source, in the units of a plan."""

from __future__ import annotations

from dataclasses import dataclass

# Share of the peak that training has: of translation by Ott et al. 2018, table 1 (8 V100: 143,000
# target tokens a second in fp16, 54,000 in fp32: as recalled, not checked against the paper), of
# speech by the paper (8 days on 8 V100). tests/pipeline/plan/ works them out again. Other
# accelerators, and decoding, are assumed to have the same share.
USABLE_SHARE = {
    ("translation", "fp16"): 0.187,
    ("translation", "fp32"): 0.56,
    ("speech", "fp16"): 0.125,
    ("speech", "fp32"): 0.125,
}
SHARE_SOURCES = {
    "translation": "by tokens a second of Ott et al. 2018 on V100, as recalled and not checked",
    "speech": "by the paper's 8 days on 8 V100 a member",
}
# Host time of one step of a search, in which a GPU waits for its next kernels: an assumption.
GPU_STEP_SECONDS = 0.02


@dataclass(frozen=True)
class Hardware:
    """One device: usable operations a second in training and in decoding, memory, and the rest.

    bytes_a_second: of its memory; step_seconds: least time of one step of a search. usable_share:
    of its peak in training, and share_source: where that is from, unless it was timed.
    """

    name: str
    train_flops: float
    decode_flops: float
    memory_bytes: float
    bytes_a_second: float
    step_seconds: float
    source: str
    usable_share: float | None = None
    share_source: str = ""


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


def accelerator(
    name: str, family: str, train_precision: str, decode_dtype: str, share: float | None = None
) -> Hardware:
    """An accelerator of the table, for a family of tasks and the precisions of both stages.

    share: of its peak that both stages have; None: as published for the family.
    """
    found = ACCELERATORS[name]
    train = "fp32" if train_precision == "fp32" else "fp16"
    decode = "fp32" if decode_dtype == "float32" else "fp16"
    shares = {one: share or USABLE_SHARE[family, one] for one in (train, decode)}
    return Hardware(
        name,
        found.peak_flops[train] * shares[train],
        found.peak_flops[decode] * shares[decode],
        found.memory_bytes,
        found.bytes_a_second,
        GPU_STEP_SECONDS,
        found.source,
        shares[train],
        "as set" if share else SHARE_SOURCES[family],
    )
