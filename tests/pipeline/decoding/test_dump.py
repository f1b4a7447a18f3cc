from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from pipeline.decoding.beam import beam_search
from pipeline.decoding.dump import with_distributions
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.test_set import Sentence
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import DumpConfig
from pipeline.statistics.kernel import fused_statistics
from pipeline.store import Hypothesis


@pytest.fixture
def found(random_models: Any, decode_config: Any, sentences: list[Sentence]) -> Any:
    model = as_ensemble([FairseqMember(one) for one in random_models(2)])
    best = beam_search(model, sentences, "prex", decode_config())
    best[2] = []  # a sentence may have none
    return model, sentences, best


def dumped(found: Any, most: int = 3, **settings: Any) -> list[Hypothesis]:
    defaults = {"name": "any", "kind": "full", "dtype": "float32", "k": 3}
    each = list(with_distributions(*found, DumpConfig(**defaults | settings), most))
    assert list(map(len, each)) == list(map(len, found[2]))
    return [one for best in each for one in best]


def test_statistics_of_whole_distributions_are_those_of_the_search(found: Any) -> None:
    for one in dumped(found):
        assert one.full_logprob is not None
        assert one.full_logprob.dtype == np.float32
        prefix = np.cumsum(one.statistics.logprob, axis=0) - one.statistics.logprob
        for name, values in fused_statistics(one.full_logprob, prefix).items():
            np.testing.assert_allclose(getattr(one.statistics, name), values, atol=1e-4)


def test_half_precision_is_what_is_asked_for(found: Any) -> None:
    assert {one.full_logprob.dtype for one in dumped(found, dtype="float16")} == {np.dtype("f2")}


def test_the_likeliest_tokens_and_the_rest_add_up_to_1(found: Any) -> None:
    for one, full in zip(dumped(found, kind="topk"), dumped(found), strict=True):
        assert one.topk is not None
        assert full.full_logprob is not None
        probability = np.exp(full.full_logprob)
        best = np.argsort(-probability.mean(axis=1), axis=1)[:, :3]
        np.testing.assert_array_equal(one.topk.token_id, best)
        total = np.exp(one.topk.logprob).sum(axis=2) + np.exp(one.topk.tail_logprob)
        np.testing.assert_allclose(total, 1.0, atol=1e-5)


def test_more_tokens_than_there_are_is_all_of_them_with_nothing_left(found: Any) -> None:
    for one in dumped(found, kind="topk", k=1000):
        assert one.topk is not None
        assert one.topk.logprob.shape[2] == 34
        assert np.isneginf(one.topk.tail_logprob).all()


def test_without_a_dump_hypotheses_stay_as_they_are(found: Any) -> None:
    assert dumped(found, kind="statistics") == [one for best in found[2] for one in best]


def test_members_that_do_not_fit_together_are_loaded_once_a_chunk(
    found: Any, random_models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [FairseqMember(one) for one in random_models(2)]
    loaded = [0, 0]

    def load(place: int) -> FairseqMember:
        loaded[place] += 1
        return members[place]

    model = MembersOneAtATime([partial(load, place) for place in range(2)])
    expected = dumped(found)
    for chunk_values, most, n_load in ((2**28, 7, 1), (2**28, 3, 3), (1, 7, 6)):
        monkeypatch.setattr("pipeline.decoding.model._CHUNK_VALUES", chunk_values)
        loaded[:] = [0, 0]
        for one, other in zip(dumped((model, *found[1:]), most), expected, strict=True):
            assert one.full_logprob is not None
            np.testing.assert_allclose(one.full_logprob, other.full_logprob, atol=1e-5)
        assert loaded == [n_load, n_load]
