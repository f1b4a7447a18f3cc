"""On a real GPU: the results of the CPU and of fairseq's generator, in bounded memory."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from pipeline.decoding.beam import beam_search
from pipeline.decoding.device import DeviceDistributions, distributions_of
from pipeline.decoding.posterior import member_log_weight
from pipeline.decoding.test_set import Sentence, padded
from pipeline.fairseq_bridge import import_fairseq
from tests.pipeline.decoding.test_beam import assert_same_as_fairseq
from tests.pipeline.decoding.test_device import N_MEMBER, SEARCHES, assert_same, in_turn, stacked

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device"),
]


@pytest.mark.parametrize("ensemble", [in_turn, stacked])
@pytest.mark.parametrize("name", SEARCHES)
def test_results_are_those_of_the_cpu(
    name: str, ensemble: Any, random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    search, settings = SEARCHES[name]
    models, config = random_models(N_MEMBER), decode_config(**settings)
    expected = search(ensemble(models), sentences, "prex", config)
    there = [copy.deepcopy(model).cuda() for model in models]
    assert_same(search(ensemble(there), sentences, "prex", config), expected, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 5, 20])
def test_hypotheses_are_those_of_fairseq_on_the_same_device(
    beam: int, random_models: Any, decode_config: Any, dictionary: Any, sentences: list[Sentence]
) -> None:
    models = [model.cuda() for model in random_models(3)]
    generator = import_fairseq("fairseq.sequence_generator").SequenceGenerator(
        copy.deepcopy(models), dictionary, beam_size=beam, max_len_b=12
    )
    source = padded([sentence.source for sentence in sentences], dictionary.pad()).cuda()
    net_input = {"src_tokens": source, "src_lengths": source.ne(dictionary.pad()).sum(dim=1)}
    expected = generator.generate([], {"net_input": net_input})
    found = beam_search(stacked(models), sentences, "prex", decode_config(beam=beam))
    for best in expected:
        for hypothesis in best:
            hypothesis["tokens"] = hypothesis["tokens"].cpu()
    assert_same_as_fairseq(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("n_member", [1, 10])
def test_working_memory_is_bounded_at_the_size_of_the_paper(
    n_member: int, dtype: torch.dtype, decode_config: Any
) -> None:
    n_row, n_vocab, memory_mib = 320, 40_000, 512
    logits = torch.randn(n_row, n_member, n_vocab, device="cuda").to(dtype)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    next_token = distributions_of(logits, decode_config(device_memory_mib=memory_mib))
    assert isinstance(next_token, DeviceDistributions)
    prefix = torch.zeros(n_row, n_member)
    weight = member_log_weight(prefix, "prex")
    next_token.top(weight, torch.zeros(n_vocab), 10)
    next_token.statistics(torch.arange(n_row), prefix)
    used = torch.cuda.max_memory_allocated() - before
    assert used <= 1.1 * memory_mib * 2**20
