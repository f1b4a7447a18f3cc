from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.scoring import with_distributions
from pipeline.decoding.test_set import Sentence
from pipeline.errors import DataError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import DumpConfig
from pipeline.statistics.kernel import fused_statistics
from pipeline.store import Hypothesis, TokenStatistics


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_7_rescoring_gives_the_statistics_of_the_search(
    combination: str,
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
    beam_search: Any,
    score_targets: Any,
) -> None:
    model = as_ensemble([FairseqMember(model) for model in random_models(3)])
    config = decode_config(length_penalty=0.6)
    hypotheses = [best[0] for best in beam_search(model, sentences, combination, config)]
    targets = [
        replace(sentence, target=best.token_id.tolist())
        for sentence, best in zip(sentences, hypotheses, strict=True)
    ]
    rescored = score_targets(model, targets, combination, config)
    for first, (second,) in zip(hypotheses, rescored, strict=True):
        assert second.finished
        assert first.token_id.tolist() == second.token_id.tolist()
        assert first.score == pytest.approx(second.score, abs=1e-4)
        for field in fields(TokenStatistics):
            np.testing.assert_allclose(
                getattr(first.statistics, field.name),
                getattr(second.statistics, field.name),
                atol=1e-4,
            )


def test_sentences_without_a_target_or_with_a_long_one_have_no_hypothesis(
    table_model: Any, decode_config: Any, score_targets: Any
) -> None:
    model = table_model(lambda source, prefix: np.full((2, 5), 0.2))
    batch = [
        Sentence(0, [3, 2], None),
        Sentence(1, [3, 2], [4, 2]),
        Sentence(2, [3, 2], [4] * 200),
    ]
    hypotheses = score_targets(model, batch, "prex", decode_config())
    assert [len(hypothesis) for hypothesis in hypotheses] == [0, 1, 0]
    assert hypotheses[1][0].score == pytest.approx(np.log(0.2))
    assert score_targets(model, batch[:1], "prex", decode_config()) == [[]]


def test_nan_is_rejected_with_member_and_sentence(
    table_model: Any, decode_config: Any, score_targets: Any
) -> None:
    model = table_model(lambda source, prefix: np.array([[0.2] * 5, [np.nan] * 5]))
    with pytest.raises(DataError, match=r"sentence 4: member 1 returned a NaN log-prob"):
        score_targets(model, [Sentence(4, [3, 2], [4, 2])], "prex", decode_config())


@pytest.fixture
def hypotheses(
    random_models: Any, decode_config: Any, sentences: list[Sentence], beam_search: Any
) -> Any:
    model = as_ensemble([FairseqMember(model) for model in random_models(2)])
    best = beam_search(model, sentences, "prex", decode_config())
    best[2] = []  # a sentence without hypotheses
    return model, sentences, best


@pytest.fixture
def dumped(decode_config: Any, distributions: Any) -> Callable[..., list[Hypothesis]]:
    """Return a function that adds what a dump stores to the hypotheses of all sentences."""

    def with_dump(hypotheses: Any, most: int = 3, **settings: Any) -> list[Hypothesis]:
        defaults = {"name": "any", "kind": "full", "dtype": "float32", "k": 3}
        dump, decode = DumpConfig(**defaults | settings), decode_config(batch_sentences=most)
        each = list(with_distributions(*hypotheses, dump, decode, distributions=distributions))
        assert list(map(len, each)) == list(map(len, hypotheses[2]))
        return [hypothesis for best in each for hypothesis in best]

    return with_dump


def test_full_distributions_have_the_statistics_of_the_search(hypotheses: Any, dumped: Any) -> None:
    for hypothesis in dumped(hypotheses):
        assert hypothesis.full_logprob is not None
        assert hypothesis.full_logprob.dtype == np.float32
        prefix = np.cumsum(hypothesis.statistics.logprob, axis=0) - hypothesis.statistics.logprob
        for name, values in fused_statistics(hypothesis.full_logprob, prefix).items():
            np.testing.assert_allclose(getattr(hypothesis.statistics, name), values, atol=1e-4)


def test_full_distributions_have_the_requested_precision(hypotheses: Any, dumped: Any) -> None:
    assert {
        hypothesis.full_logprob.dtype for hypothesis in dumped(hypotheses, dtype="float16")
    } == {np.dtype("f2")}


def test_top_tokens_and_the_tail_add_up_to_1(hypotheses: Any, dumped: Any) -> None:
    for hypothesis, full in zip(dumped(hypotheses, kind="topk"), dumped(hypotheses), strict=True):
        assert hypothesis.topk is not None
        assert full.full_logprob is not None
        probability = np.exp(full.full_logprob)
        best = np.argsort(-probability.mean(axis=1), axis=1)[:, :3]
        np.testing.assert_array_equal(hypothesis.topk.token_id, best)
        total = np.exp(hypothesis.topk.logprob).sum(axis=2) + np.exp(hypothesis.topk.tail_logprob)
        np.testing.assert_allclose(total, 1.0, atol=1e-5)


def test_a_topk_larger_than_the_vocabulary_has_an_empty_tail(hypotheses: Any, dumped: Any) -> None:
    for hypothesis in dumped(hypotheses, kind="topk", k=1000):
        assert hypothesis.topk is not None
        assert hypothesis.topk.logprob.shape[2] == 34
        assert np.isneginf(hypothesis.topk.tail_logprob).all()


def test_without_a_dump_hypotheses_are_unchanged(hypotheses: Any, dumped: Any) -> None:
    assert dumped(hypotheses, kind="statistics") == [
        hypothesis for best in hypotheses[2] for hypothesis in best
    ]


def test_members_in_turn_are_loaded_once_per_chunk(
    hypotheses: Any, random_models: Any, monkeypatch: pytest.MonkeyPatch, dumped: Any
) -> None:
    members = [FairseqMember(model) for model in random_models(2)]
    loaded = [0, 0]

    def load(index: int) -> FairseqMember:
        loaded[index] += 1
        return members[index]

    model = MembersOneAtATime([partial(load, index) for index in range(2)])
    expected = dumped(hypotheses)
    for chunk_values, most, n_load in ((2**28, 7, 1), (2**28, 3, 3), (1, 7, 6)):
        monkeypatch.setattr("pipeline.decoding.scoring._MAX_VALUES", chunk_values)
        loaded[:] = [0, 0]
        for hypothesis, reference in zip(
            dumped((model, *hypotheses[1:]), most), expected, strict=True
        ):
            assert hypothesis.full_logprob is not None
            np.testing.assert_allclose(hypothesis.full_logprob, reference.full_logprob, atol=1e-5)
        assert loaded == [n_load, n_load]
