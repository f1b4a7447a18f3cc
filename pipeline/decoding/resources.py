"""What a decode job will take, before it starts."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from pipeline.errors import MachineError
from pipeline.run.settings import DecodeConfig, DumpConfig
from pipeline.store import SEARCHES

_FLOAT_BYTES = 4


class EnsembleSize(Protocol):
    """What of an ensemble decides how much a job takes."""

    @property
    def n_member(self) -> int:
        """Members that score."""

    @property
    def vocab_size(self) -> int:
        """Tokens that each knows."""


@dataclass(frozen=True)
class Estimate:
    """Sizes of one job; memory is that of the largest arrays of a batch, beside the weights."""

    sentences: int
    tokens: int
    disk_bytes: int
    memory_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.sentences} sentences, about {self.tokens} tokens, at most "
            f"{self.disk_bytes / 2**20:.0f} MiB of disk and {self.memory_bytes / 2**20:.0f} MiB "
            f"of memory beside the weights"
        )


def estimate(
    expected_tokens: Iterable[int],
    model: EnsembleSize,
    regime: str,
    combination: str,
    decode: DecodeConfig,
    dump: DumpConfig,
) -> Estimate:
    """Hypotheses are taken to have expected_tokens [sentence]; disk is before compression.

    Twice the disk of a store: the blocks are there until they are joined.
    """
    n_hypothesis = 1
    rows = decode.beam
    if regime == "sample":
        rows *= model.n_member if combination == "member" else 1
        n_hypothesis = rows
    elif regime in SEARCHES:
        n_hypothesis = decode.n_best or decode.beam
    n_sentence = n_token = 0
    for count in expected_tokens:
        n_sentence += 1
        n_token += count
    tokens = n_token * n_hypothesis
    memory = decode.batch_sentences * rows * model.n_member * model.vocab_size * _FLOAT_BYTES
    return Estimate(n_sentence, tokens, 2 * tokens * _token_bytes(model, dump), memory)


def refuse_what_does_not_fit(expected: Estimate, folder: Path, name: str) -> None:
    """Raise MachineError with both numbers where the disk of a folder cannot hold a job's files."""
    free_bytes = shutil.disk_usage(folder).free
    if expected.disk_bytes > free_bytes:
        raise MachineError(
            f"{folder} must have room for {name} ({expected}), got {free_bytes / 2**20:.0f} MiB "
            f"free: choose dump=statistics, dump=topk or fewer sentences"
        )


def _token_bytes(model: EnsembleSize, dump: DumpConfig) -> int:
    statistics = (2 * model.n_member + 6) * _FLOAT_BYTES
    if dump.kind == "full":
        return statistics + model.n_member * model.vocab_size * np.dtype(dump.dtype).itemsize
    if dump.kind == "topk":
        return statistics + ((1 + model.n_member) * dump.k + model.n_member) * _FLOAT_BYTES
    return statistics
