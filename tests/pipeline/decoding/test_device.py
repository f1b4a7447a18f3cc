"""What runs on an accelerator, on a pretended one: the same results, and no hidden copies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.decoding.beam import beam_search
from pipeline.decoding.compiled import CompiledDistributions
from pipeline.decoding.device import DeviceDistributions, distribution_columns, distributions_of
from pipeline.decoding.diversity import diversity
from pipeline.decoding.ensemble import MembersInTurn, as_ensemble
from pipeline.decoding.plan import sent_bytes
from pipeline.decoding.posterior import Distributions, member_log_weight
from pipeline.decoding.sample import sample
from pipeline.decoding.scoring import score_targets, with_distributions
from pipeline.decoding.test_set import Sentence
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import DumpConfig
from pipeline.statistics.kernel import fused_statistics
from pipeline.store import TokenStatistics
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, columns, n_columns
from tests.pretended_cuda import CUDA, PretendedCuda

N_MEMBER, BEAM = 2, 3
SEARCHES: dict[str, tuple[Any, dict[str, Any]]] = {
    "beam": (beam_search, {"beam": BEAM}),
    "heuristic": (beam_search, {"beam": BEAM, "ending": "heuristic", "unk_penalty": 1.0}),
    "greedy": (beam_search, {"regime": "greedy", "beam": 1, "length_penalty": 0.6}),
    "sample": (sample, {"regime": "sample", "min_length": 0}),
    "tempered": (sample, {"regime": "sample", "min_length": 0, "sampling_temperature": 1.7}),
    "truncated": (
        sample,
        {"regime": "sample", "min_length": 0, "sampling_top_k": 9, "sampling_top_p": 0.8},
    ),
    "scoring": (score_targets, {}),
}


def in_turn(models: list[Any]) -> Any:
    return MembersInTurn([FairseqMember(model) for model in models])


def stacked(models: list[Any]) -> Any:
    return as_ensemble([FairseqMember(model) for model in models])


def assert_same(found: Any, expected: Any, atol: float = 1e-5) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        for first, second in zip(ours, theirs, strict=True):
            assert first.token_id.tolist() == second.token_id.tolist()
            assert (first.finished, first.member) == (second.finished, second.member)
            assert first.score == pytest.approx(second.score, abs=atol)
            for field in fields(TokenStatistics):
                pair = (getattr(each.statistics, field.name) for each in (first, second))
                np.testing.assert_allclose(*pair, atol=atol, err_msg=field.name)


@pytest.mark.parametrize("ensemble", [in_turn, stacked])
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.slow
def test_results_are_those_of_the_cpu(
    name: str,
    ensemble: Callable[[list[Any]], Any],
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
) -> None:
    search, settings = SEARCHES[name]
    models, config = random_models(N_MEMBER), decode_config(max_length_offset=6, **settings)
    for combination in ("prex", "expr", "member") if search is sample else ("prex", "expr"):
        expected = search(ensemble(models), sentences, combination, config)
        copies = copy.deepcopy(models)  # not on the pretended device, where it takes long
        with PretendedCuda() as cuda:
            model = ensemble([cuda.moved(model) for model in copies])
            found = search(model, sentences, combination, config)
        assert_same(found, expected)


@pytest.mark.parametrize("kind", ["full", "topk"])
def test_dumps_are_those_of_the_cpu_and_topk_is_chosen_on_the_device(
    kind: str, random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    models, config = random_models(N_MEMBER), decode_config()
    dump = DumpConfig(kind, kind, "float32", 4)
    hypotheses = beam_search(stacked(models), sentences, "prex", config)
    expected = list(with_distributions(stacked(models), sentences, hypotheses, dump, config))
    with PretendedCuda() as cuda:
        model = stacked([cuda.moved(model) for model in models])
        found = list(with_distributions(model, sentences, hypotheses, dump, config))
    for first, second in zip(found, expected, strict=True):
        for ours, theirs in zip(first, second, strict=True):
            if kind == "full":
                np.testing.assert_allclose(ours.full_logprob, theirs.full_logprob, atol=1e-5)
                continue
            assert ours.topk is not None
            assert theirs.topk is not None
            np.testing.assert_array_equal(ours.topk.token_id, theirs.topk.token_id)
            np.testing.assert_allclose(ours.topk.logprob, theirs.topk.logprob, atol=1e-5)
    n_token = sum(len(hypothesis.token_id) for best in hypotheses for hypothesis in best)
    kept = N_MEMBER * model.vocab_size * 4 if kind == "full" else 4 * 8 + N_MEMBER * (4 + 1) * 4
    assert sum(size for size in cuda.to_host if size > 1) == n_token * kept


class _StepBytes:
    """A model that notes the rows of each step, and how much has left the device before it."""

    def __init__(self, model: Any, cuda: PretendedCuda) -> None:
        self._model, self._cuda = model, cuda
        self.rows: list[int] = []
        self.before: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def step(self, state: Any, prefix: Any) -> Any:
        self.rows.append(len(prefix))
        self.before.append(sum(self._cuda.to_host))
        return self._model.step(state, prefix)

    def bytes_of_steps(self) -> list[int]:
        return np.diff([*self.before, sum(self._cuda.to_host)]).tolist()


def counted(
    search: Any, models: list[Any], batch: list[Sentence], config: Any
) -> tuple[_StepBytes, Any]:
    with PretendedCuda() as cuda:
        model = _StepBytes(stacked([cuda.moved(model) for model in models]), cuda)
        return model, search(model, batch, "prex", config)


COLUMN_BYTES = 4 * (2 * N_MEMBER + 5)
NAN_CHECK = 1


def test_a_step_of_sampling_sends_its_columns_and_tokens(
    random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    config = decode_config(regime="sample", min_length=0, beam=BEAM)
    model, hypotheses = counted(sample, random_models(N_MEMBER), sentences, config)
    running = [BEAM * len(sentences), *model.rows[1:]]  # one row per sentence at first
    per_row = COLUMN_BYTES + 8  # and the token
    assert sent_bytes(N_MEMBER, "sample") == per_row
    assert model.bytes_of_steps() == [n_row * per_row + NAN_CHECK for n_row in running]
    assert sum(running) == sum(len(each.token_id) for best in hypotheses for each in best)


def test_a_step_of_beam_search_sends_columns_and_twice_the_beam_of_candidates(
    random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    model, _ = counted(beam_search, random_models(N_MEMBER), sentences, decode_config(beam=BEAM))
    candidate = 4 + 8 + 8  # score, position, token
    assert sent_bytes(N_MEMBER, "beam") == COLUMN_BYTES + 2 * candidate
    for step, (n_row, n_byte) in enumerate(zip(model.rows, model.bytes_of_steps(), strict=True)):
        n_sentence = n_row if step == 0 else n_row // BEAM
        # Statistics are those of prefixes, log-probs those of kept and of finished extensions.
        most = n_row * (N_MEMBER + 5) + 2 * BEAM * n_sentence * N_MEMBER
        assert n_byte <= 4 * most + 2 * BEAM * n_sentence * candidate + NAN_CHECK
        assert n_byte < n_row * N_MEMBER * model.vocab_size * 4
    assert len(model.rows) > 5


def test_scoring_sends_the_columns_of_each_token(
    random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    with PretendedCuda() as cuda:
        model = in_turn([cuda.moved(model) for model in random_models(N_MEMBER)])
        score_targets(model, sentences, "prex", decode_config())
    n_token = sum(len(sentence.target or ()) for sentence in sentences)
    assert sent_bytes(N_MEMBER, "teacher_forcing") == COLUMN_BYTES
    assert sum(size for size in cuda.to_host if size > NAN_CHECK) == n_token * COLUMN_BYTES


def test_diversity_is_that_of_the_cpu(random_models: Any, sentences: list[Sentence]) -> None:
    models = random_models(N_MEMBER)
    expected = diversity(in_turn(models), {"a": "a", "b": "b"}, sentences, 4)
    with PretendedCuda() as cuda:
        model = in_turn([cuda.moved(model) for model in models])
        found = diversity(model, {"a": "a", "b": "b"}, sentences, 4)
    assert found["kl_nats"] == pytest.approx(expected["kl_nats"], abs=1e-5)
    assert found["disagreement_percent"] == expected["disagreement_percent"]


def test_a_copy_to_the_host_is_counted_and_mixed_devices_are_refused(decode_config: Any) -> None:
    assert type(distributions_of(torch.zeros(1, 3, 4), decode_config())) is CompiledDistributions
    with PretendedCuda() as cuda:
        there = torch.zeros(3, 4).to(CUDA)
        assert type(distributions_of(there[None], decode_config())) is DeviceDistributions
        there.cpu()
        assert cuda.to_host == [3 * 4 * 4]
        bool(there.any())
        assert cuda.to_host[1:] == [1]
        with pytest.raises(RuntimeError, match="tensors on cuda and on the CPU"):
            there + torch.zeros(3, 4)
        with pytest.raises(TypeError, match="on cuda"):
            there.numpy()


def hard_logits(n_row: int, n_member: int, n_vocab: int) -> torch.Tensor:
    """Return logits with excluded and very improbable tokens, and ties."""
    random = np.random.default_rng(n_member)
    logits = random.normal(size=(n_row, n_member, n_vocab)).astype(np.float32) * 3
    logits[0, :, 3] = -np.inf  # excluded by all
    logits[1, 0, 5] = -np.inf  # excluded by one
    logits[2] -= 150 * (np.arange(n_vocab) > 1)  # improbable but for two tokens
    logits[3] = np.round(logits[3])  # ties
    logits[4] = 0.0  # nothing but ties
    logits[5, :, 4] = 300.0  # nearly certain
    return torch.from_numpy(logits)


def both(logits: torch.Tensor) -> list[Distributions]:
    return [CompiledDistributions(logits), DeviceDistributions(logits, memory_bytes=1)]


@pytest.mark.parametrize("n_member", [1, 2, 5])
@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_posterior_top_tokens_and_statistics_agree_in_hard_cases(
    n_member: int, combination: str
) -> None:
    logits = hard_logits(7, n_member, 40)
    prefix = torch.from_numpy(np.random.default_rng(1).normal(size=(7, n_member))).float()
    prefix[6] = -torch.inf if combination == "prex" else 0.0
    weight = member_log_weight(prefix, combination)
    mask = torch.zeros(40)
    mask[[0, 7]], mask[9] = -torch.inf, -1.0
    row, token = torch.tensor([6, 0, 2]), torch.tensor([1, 3, 30])
    results = []
    for distributions in both(logits):
        score, best = distributions.top(weight, mask, 6)
        results.append(
            {
                "score": score,
                "token": best,
                "statistics": torch.from_numpy(distributions.statistics(torch.arange(7), prefix)),
                "realised": distributions.token_logprob(row, token),
                "one token": distributions.token_score(2, weight),
                "log-probs": torch.cat(list(distributions.blocks())),
            }
        )
    compiled, device = results
    for name, expected in compiled.items():
        torch.testing.assert_close(device[name], expected, atol=1e-5, rtol=1e-6, msg=name)
    assert device["token"][4].tolist() == [1, 2, 3, 4, 5, 6]  # the lower id wins
    assert compiled["statistics"].isinf().any() == (n_member > 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_are_accumulated_in_float32(dtype: torch.dtype) -> None:
    logits = (torch.from_numpy(np.random.default_rng(0).normal(size=(4, 3, 5000))) * 4).to(dtype)
    prefix = torch.zeros(4, 3)
    distributions = DeviceDistributions(logits, memory_bytes=2**20)
    exact = logits.double().log_softmax(dim=2)
    expected = columns(fused_statistics(exact.numpy(), prefix.numpy()), DISTRIBUTION_STATISTICS)
    found = distributions.statistics(torch.arange(4), prefix)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    realised = distributions.token_logprob(torch.arange(4), torch.arange(4))
    expected_realised = exact[torch.arange(4), :, torch.arange(4)].float()
    torch.testing.assert_close(realised, expected_realised, atol=1e-5, rtol=0)


def test_fewer_tokens_than_candidates_leave_impossible_ones() -> None:
    for distributions in both(torch.zeros(1, 2, 3)):
        score, token = distributions.top(torch.full((1, 2), -np.log(2)), torch.zeros(3), 5)
        assert token[0, :3].tolist() == [0, 1, 2]
        assert score.shape == token.shape == (1, 5)
        assert score[0, 3:].isneginf().all()


@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (5, 1.0), (0, 0.7), (12, 0.7)])
def test_the_same_random_numbers_draw_the_same_tokens(
    top_k: int, top_p: float, temperature: float, decode_config: Any
) -> None:
    logits = hard_logits(500, 2, 40)
    uniform = np.random.default_rng(3).random(500)
    uniform[:3] = [0.0, 1 - 2**-53, 0.999999]
    decode = decode_config(
        sampling_top_k=top_k, sampling_top_p=top_p, sampling_temperature=temperature
    )
    weight = member_log_weight(torch.zeros(500, 2), "prex")
    compiled, device = (
        distributions.draw(weight, [2, 39], uniform, decode).tolist()
        for distributions in both(logits)
    )
    assert device == compiled
    assert not {2, 39} & set(device)


def test_columns_of_one_member_are_its_entropy() -> None:
    logprob = hard_logits(6, 1, 40).log_softmax(dim=2)
    table = distribution_columns(logprob, torch.zeros(6, 1))
    assert table.shape == (6, n_columns(1, DISTRIBUTION_STATISTICS))
    assert (table == table[:, :1]).all()


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_logit_that_is_not_a_number_names_its_member(value: float) -> None:
    logits = torch.zeros(3, 2, 4)
    logits[1, 1, 2] = value
    distributions = DeviceDistributions(logits, memory_bytes=2**10)
    with pytest.raises(Exception, match="sentence 17: member 1 returned a NaN log-prob"):
        distributions.reject_nan(lambda row: 16 + row)


def test_a_target_is_scored_alike_in_any_block(
    random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    model, config = stacked(random_models(N_MEMBER)), decode_config()
    target = [replace(sentences[0], target=[5, 6, 7, 8, 9, 2])]
    results = [
        score_targets(
            model,
            target,
            "prex",
            config,
            distributions=lambda logits, _, size=size: DeviceDistributions(logits, size),
        )
        for size in (1, 2**14, 2**30)
    ]
    for other in results[1:]:
        assert_same(other, results[0])
