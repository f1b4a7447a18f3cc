"""Decoding on a GPU compared with fairseq on the same GPU: speed, statistics, memory."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import torch

from pipeline.decoding.beam import beam_search
from pipeline.decoding.device import DeviceDistributions
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.test_set import Sentence, padded
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, n_columns
from tests.bench.decode import BATCH, BEAM, config, random_models, sentences, trained_models
from tests.bench.measurement import Measurement, NotMeasuredError, alternating_seconds

LIMIT = 40


def measure() -> list[Measurement]:
    """Measure the speed relative to fairseq, the cost of the statistics, and peak memory."""
    if not torch.cuda.is_available():
        raise NotMeasuredError("this machine has no CUDA device; run it on one that has")
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        dictionary, models = trained_models(Path(name), 10)
    measurements = []
    for n_member in (5, 10):
        there = [model.cuda() for model in models[:n_member]]
        measurements += _compared_with_fairseq(there, dictionary, sentences(BATCH))
    wide, wide_models = random_models(40_000, 10)
    there = [model.cuda() for model in wide_models]
    return [*measurements, *_at_paper_scale(there, sentences(BATCH, len(wide)))]


def _compared_with_fairseq(
    models: Sequence[Any], dictionary: Any, batch: list[Sentence]
) -> list[Measurement]:
    generator = import_fairseq("fairseq.sequence_generator").SequenceGenerator(
        copy.deepcopy(list(models)), dictionary, beam_size=BEAM, max_len_a=0, max_len_b=LIMIT
    )
    source = padded([sentence.source for sentence in batch], dictionary.pad()).cuda()
    length = source.ne(dictionary.pad()).sum(dim=1)
    sample = {"net_input": {"src_tokens": source, "src_lengths": length}}

    def theirs() -> list[list[int]]:
        return [best[0]["tokens"].tolist() for best in generator.generate([], sample)]

    model, settings = _ensemble(models), config(beam=BEAM, max_length_offset=LIMIT)

    def ours() -> list[list[int]]:
        return [best[0].token_id.tolist() for best in beam_search(model, batch, "prex", settings)]

    assert ours() == theirs(), "both must find the same hypotheses"
    # Lists of tokens are on the host: all work of the GPU is done when a call returns.
    theirs_seconds, ours_seconds = alternating_seconds(theirs, ours, clock=time.perf_counter)
    shape = f"M={len(models)} beam {BEAM} batch {BATCH} K={len(dictionary)}"
    return [
        Measurement(f"ratio to fairseq, {shape}", theirs_seconds / ours_seconds, "x", ">= 1"),
    ]


def _at_paper_scale(models: Sequence[Any], batch: list[Sentence]) -> list[Measurement]:
    """Random models, whose hypotheses all reach the length limit."""
    model, settings = _ensemble(models), config(beam=BEAM, max_length_offset=LIMIT)
    n_column = n_columns(len(models), DISTRIBUTION_STATISTICS)

    def whole() -> object:
        return beam_search(model, batch, "prex", settings)

    def without() -> object:
        def nothing(_self: object, row: torch.Tensor, _prefix: object) -> object:
            return np.zeros((len(row), n_column), np.float32)

        with mock.patch.object(DeviceDistributions, "statistics", nothing):
            return whole()

    whole()
    torch.cuda.reset_peak_memory_stats()
    weights = torch.cuda.memory_allocated()
    bare, full = alternating_seconds(without, whole, clock=time.perf_counter)
    peak = (torch.cuda.max_memory_allocated() - weights) / 2**20
    shape = f"M={len(models)} beam {BEAM} batch {BATCH} K={model.vocab_size}"
    return [
        Measurement(f"seconds per step with statistics, {shape}", full / (LIMIT + 1), "s"),
        Measurement(f"time with statistics / without, {shape}", full / bare, "x", "<= 2"),
        Measurement(f"peak memory besides weights, {shape}", peak, "MiB"),
    ]


def _ensemble(models: Sequence[Any]) -> Any:
    return as_ensemble([FairseqMember(model) for model in models])
