"""Control tokens, start symbols and limits belong to the model, whatever its ids are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.decoding.beam import length_limit
from pipeline.decoding.model import target_limit
from pipeline.decoding.scoring import teacher_forced
from pipeline.decoding.test_set import Sentence, padded

EOS = 2
SOURCE = [Sentence(0, [3, 4], None)]


def seven_tokens(source: int, prefix: tuple[int, ...]) -> Any:
    """Return distributions of two members that depend on the prefix, each token possible."""
    random = np.random.default_rng([len(prefix), *prefix])
    table = random.dirichlet(np.ones(7), size=2)
    table[:, 1] += 2.0  # the most probable token by far
    return table / table.sum(axis=1, keepdims=True)


def model_with(table_model: Any, **attributes: Any) -> Any:
    model = table_model(seven_tokens)
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


@pytest.fixture
def search(beam_search: Any, sample: Any) -> Callable[..., Any]:
    """Return a function that searches or samples, as decode.regime says."""

    def find(model: Any, batch: Any, combination: str, config: Any) -> Any:
        regime = sample if config.regime == "sample" else beam_search
        return regime(model, batch, combination, config)

    return find


def tokens_found(search: Any, model: Any, config: Any) -> set[int]:
    return {token for found in search(model, SOURCE, "prex", config)[0] for token in found.token_id}


@pytest.mark.parametrize("regime", ["beam", "sample"])
def test_padding_is_never_chosen_unless_it_is_eos(
    table_model: Any, decode_config: Any, regime: str, search: Any
) -> None:
    config = decode_config(regime=regime, min_length=int(regime == "beam"), max_length_offset=4)
    assert 1 not in tokens_found(search, model_with(table_model, pad=1), config)
    assert 1 not in tokens_found(search, model_with(table_model, pad=1, unk=1), config)
    assert 1 in tokens_found(search, model_with(table_model, pad=None, unk=None), config)
    is_eos = model_with(table_model, pad=EOS)
    (hypotheses,) = search(is_eos, SOURCE, "prex", config)
    assert any(hypothesis.finished for hypothesis in hypotheses)


def test_an_unknown_token_that_is_padding_is_never_chosen_with_a_penalty(
    table_model: Any, decode_config: Any, search: Any
) -> None:
    config = decode_config(unk_penalty=0.1, max_length_offset=4)
    assert 1 not in tokens_found(search, model_with(table_model, pad=1, unk=1), config)
    assert tokens_found(search, model_with(table_model, pad=None, unk=None), config)


@pytest.mark.parametrize("regime", ["beam", "sample"])
def test_suppressed_tokens_are_not_chosen_at_their_position_only(
    table_model: Any, decode_config: Any, regime: str, search: Any, score_targets: Any
) -> None:
    config = decode_config(regime=regime, min_length=0, max_length_offset=4)
    model = model_with(table_model, pad=None)
    model.suppressed = lambda n_token: [1] if n_token == 0 else []
    (hypotheses,) = search(model, SOURCE, "prex", config)
    assert all(hypothesis.token_id[0] != 1 for hypothesis in hypotheses)
    assert any(1 in hypothesis.token_id[1:] for hypothesis in hypotheses)
    # Statistics are those of the distributions before any token is suppressed.
    for hypothesis in hypotheses:
        target = Sentence(0, SOURCE[0].source, hypothesis.token_id.tolist())
        ((scored,),) = score_targets(model, [target], "prex", config)
        np.testing.assert_allclose(
            scored.statistics.logprob, hypothesis.statistics.logprob, atol=1e-5
        )


@pytest.mark.parametrize("start", [(), (5,), (4, 5, 6)])
@pytest.mark.parametrize("regime", ["beam", "sample"])
def test_start_symbols_are_no_part_of_a_hypothesis_and_change_no_result(
    table_model: Any, decode_config: Any, start: tuple[int, ...], regime: str, search: Any
) -> None:
    config = decode_config(regime=regime, min_length=int(regime == "beam"), max_length_offset=4)
    (expected,) = search(model_with(table_model), SOURCE, "prex", config)
    (found,) = search(model_with(table_model, start=start), SOURCE, "prex", config)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.token_id.tolist() == theirs.token_id.tolist()
        assert ours.score == theirs.score


@pytest.mark.parametrize("start", [(), (5,), (4, 5, 6)])
def test_teacher_forcing_puts_the_start_symbols_before_each_target(
    table_model: Any, start: tuple[int, ...]
) -> None:
    model = model_with(table_model, start=start)
    for target in ([EOS], [4, 5, EOS]):
        (logits,) = teacher_forced(model, [[3]], [target])
        expected = [seven_tokens(3, tuple(target[:position])) for position in range(len(target))]
        torch.testing.assert_close(logits, torch.tensor(np.array(expected)).float().log())


def test_a_shared_limit_leaves_what_the_source_does_not_use(
    table_model: Any, decode_config: Any, beam_search: Any, score_targets: Any
) -> None:
    model = model_with(table_model, max_shared_tokens=9)
    assert target_limit([3] * 4, model) == 5
    assert length_limit([3] * 4, model, decode_config(max_length_offset=100)) == 4
    (hypotheses,) = beam_search(model, [Sentence(0, [3] * 7, None)], "prex", decode_config())
    assert max(len(hypothesis.token_id) for hypothesis in hypotheses) == 2
    too_long = Sentence(0, [3] * 7, [4, 4, EOS])
    assert score_targets(model, [too_long], "prex", decode_config()) == [[]]


def test_short_sources_of_models_without_padding_are_filled_with_no_token() -> None:
    assert padded([[4, 2], [2]], pad=None).tolist() == [[4, 2], [2, -1]]
    assert padded([[], []], pad=None).shape == (2, 0)
