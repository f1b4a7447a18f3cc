from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.scoring import score_targets
from pipeline.decoding.test_set import Sentence
from pipeline.errors import DataError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.store import TokenStatistics


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_7_rescoring_what_was_found_gives_every_statistic_again(
    combination: str, random_models: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    model = as_ensemble([FairseqMember(one) for one in random_models(3)])
    config = decode_config(length_penalty=0.6)
    found = [best[0] for best in beam_search(model, sentences, combination, config)]
    targets = [
        replace(one, target=best.token_id.tolist())
        for one, best in zip(sentences, found, strict=True)
    ]
    rescored = score_targets(model, targets, combination, config)
    for first, (second,) in zip(found, rescored, strict=True):
        assert second.finished
        assert first.token_id.tolist() == second.token_id.tolist()
        assert first.score == pytest.approx(second.score, abs=1e-4)
        for field in fields(TokenStatistics):
            np.testing.assert_allclose(
                getattr(first.statistics, field.name),
                getattr(second.statistics, field.name),
                atol=1e-4,
            )


def test_a_sentence_without_a_target_or_with_one_too_long_has_no_hypothesis(
    table_model: Any, decode_config: Any
) -> None:
    model = table_model(lambda source, prefix: np.full((2, 5), 0.2))
    batch = [
        Sentence(0, [3, 2], None),
        Sentence(1, [3, 2], [4, 2]),
        Sentence(2, [3, 2], [4] * 200),
    ]
    found = score_targets(model, batch, "prex", decode_config())
    assert [len(one) for one in found] == [0, 1, 0]
    assert found[1][0].score == pytest.approx(np.log(0.2))
    assert score_targets(model, batch[:1], "prex", decode_config()) == [[]]


def test_nan_is_refused_with_member_and_sentence(table_model: Any, decode_config: Any) -> None:
    model = table_model(lambda source, prefix: np.array([[0.2] * 5, [np.nan] * 5]))
    with pytest.raises(DataError, match=r"member 1 .* got NaN for sentence 4"):
        score_targets(model, [Sentence(4, [3, 2], [4, 2])], "prex", decode_config())
