"""The steps of a decode on fake tensors of a GPU: devices never mix, also at the paper's size."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorDeviceMismatchError

from pipeline.decoding.device import DeviceDistributions, distribution_columns
from pipeline.decoding.ensemble import MembersInTurn, as_ensemble
from pipeline.fairseq_bridge.members.member import FairseqMember
from tests.fake_cuda import CUDA, PeakMemory, fake_cuda, on_fake_cuda, steps_of

DRAWS: Any = SimpleNamespace(sampling_temperature=0.9, sampling_top_k=50, sampling_top_p=0.9)


@pytest.mark.parametrize("together", [MembersInTurn, as_ensemble])
def test_members_and_distributions_stay_on_the_device(
    together: Callable[[list[Any]], Any], random_models: Any
) -> None:
    models = random_models(2)
    with fake_cuda():
        model = together([FairseqMember(on_fake_cuda(model)) for model in models])
        logits = steps_of(model, torch.ones(3, 6, dtype=torch.long))
        assert (logits.device, logits.shape) == (CUDA, (4, 2, model.vocab_size))
        use_all(DeviceDistributions(logits, 2**12), *logits.shape)


def use_all(distributions: DeviceDistributions, n_row: int, n_member: int, n_vocab: int) -> None:
    """Call everything that a search or a sample calls."""
    weight, row = torch.zeros(n_row, n_member), torch.arange(n_row)
    score, token = distributions.top(weight, torch.zeros(n_vocab), 10)
    assert score.device == token.device == CUDA
    assert distributions.token_score(2, weight).device == CUDA
    # These are what goes to the host.
    assert distributions.token_logprob(row, row).device.type == "cpu"
    assert distributions.draw(weight, [1], np.zeros(n_row), DRAWS).device.type == "cpu"
    for block in distributions.blocks():
        columns = distribution_columns(block, torch.zeros(len(block), n_member, device=CUDA))
        assert columns.device == CUDA
        assert columns.shape[1] == n_member + 5


def test_weights_on_another_device_are_noticed(random_models: Any) -> None:
    (model,) = random_models(1)
    with fake_cuda():
        member = FairseqMember(on_fake_cuda(model))
        weights = model.decoder.output_projection._parameters
        weights["weight"] = weights["weight"].cpu()
        with pytest.raises(FakeTensorDeviceMismatchError):
            steps_of(member, torch.ones(3, 6, dtype=torch.long))


@pytest.mark.parametrize("n_member", [1, 2, 10])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_working_memory_is_bounded_at_the_size_of_the_paper(
    n_member: int, dtype: torch.dtype
) -> None:
    n_row, n_vocab, memory_bytes = 320, 40_000, 2**29
    with fake_cuda():
        logits = torch.empty(n_row, n_member, n_vocab, dtype=dtype, device=CUDA)
        with PeakMemory() as memory:
            use_all(DeviceDistributions(logits, memory_bytes), n_row, n_member, n_vocab)
    assert 0.3 * memory_bytes < memory.peak_bytes <= memory_bytes
