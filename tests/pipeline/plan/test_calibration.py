"""Timings of this machine are plausible for the models of both families of tasks."""

from __future__ import annotations

import os

import pytest
import torch

from pipeline.plan.costs import model_costs
from pipeline.plan.hardware import Lengths, this_machine
from pipeline.run.settings import plain
from tests.composed_settings import composed_settings

pytestmark = pytest.mark.slow  # trains and decodes for the timings

VOCAB_SIZE = 120


@pytest.mark.parametrize(("task", "lengths"), [("nmt_ende", (12, 14, None)), ("asr", (90, 8, 40))])
def test_this_machine_is_timed(task: str, lengths: tuple[int, int, int | None]) -> None:
    threads = torch.get_num_threads()
    few = [
        "train.batch_tokens=100",
        "decode.beam=2",
        "decode.batch_sentences=2",
        "ensemble.seeds=[1]",
    ]
    config = composed_settings(f"task={task}", *few)
    settings = plain(config.model.settings)
    costs = model_costs(config.model.architecture, settings, VOCAB_SIZE, *lengths)
    hardware = this_machine(config, costs, Lengths(*lengths), VOCAB_SIZE)
    torch.set_num_threads(threads)
    for flops in (hardware.train_flops, hardware.decode_flops):
        assert 1e5 < flops < 1e13  # any core, from a slow one to the fastest
    assert hardware.memory_bytes == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
