from __future__ import annotations

import copy
import itertools
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.decoding.ensemble import MembersInTurn, as_ensemble
from pipeline.decoding.model import EnsembleModel
from pipeline.decoding.test_set import Sentence, padded
from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.fairseq_bridge.members.stacked import StackedTransformers
from pipeline.statistics.kernel import fused_statistics
from pipeline.store import Hypothesis, TokenStatistics

EOS = 2


def ensemble(models: list[Any]) -> EnsembleModel:
    return as_ensemble([FairseqMember(model) for model in models])


def fairseq_generator(models: list[Any], dictionary: Any, **settings: Any) -> Any:
    module = import_fairseq("fairseq.sequence_generator")
    # The generator changes the attention modules of its models.
    return module.SequenceGenerator(copy.deepcopy(models), dictionary, **settings)


def fairseq_hypotheses(generator: Any, batch: list[Sentence], pad: int) -> list[list[Any]]:
    source = padded([sentence.source for sentence in batch], pad)
    net_input = {"src_tokens": source, "src_lengths": source.ne(pad).sum(dim=1)}
    hypotheses: list[list[Any]] = generator.generate([], {"net_input": net_input})
    return hypotheses


def assert_same_as_fairseq(hypotheses: list[Any], expected: list[Any]) -> None:
    for ours, theirs in zip(hypotheses, expected, strict=True):
        assert [hypothesis.token_id.tolist() for hypothesis in ours] == [
            hypothesis["tokens"].tolist() for hypothesis in theirs
        ]
        scores = [float(hypothesis["score"]) for hypothesis in theirs]
        np.testing.assert_allclose([hypothesis.score for hypothesis in ours], scores, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 5, 20])
@pytest.mark.parametrize("length_penalty", [0.6, 1.0, 2.0])
def test_hypotheses_and_scores_are_those_of_fairseq(
    beam: int,
    length_penalty: float,
    random_models: Any,
    decode_config: Any,
    dictionary: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    models = random_models(3)
    generator = fairseq_generator(
        models, dictionary, beam_size=beam, len_penalty=length_penalty, max_len_b=12
    )
    hypotheses = beam_search(
        ensemble(models), sentences, "prex", decode_config(beam=beam, length_penalty=length_penalty)
    )
    assert_same_as_fairseq(hypotheses, fairseq_hypotheses(generator, sentences, dictionary.pad()))
    lengths = {len(hypothesis.token_id) for best in hypotheses for hypothesis in best}
    assert beam == 1 or {2, 13} <= lengths  # some end early, others at the limit


def test_the_length_limit_is_that_of_fairseq_for_a_sentence_alone(
    random_models: Any,
    decode_config: Any,
    dictionary: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    models = random_models(1, normalize_before=False)
    generator = fairseq_generator(models, dictionary, beam_size=4, max_len_a=1.2, max_len_b=1)
    config = decode_config(beam=4, max_length_ratio=1.2, max_length_offset=1)
    hypotheses = beam_search(ensemble(models), sentences, "prex", config)
    expected = [
        fairseq_hypotheses(generator, [sentence], dictionary.pad())[0] for sentence in sentences
    ]
    assert_same_as_fairseq(hypotheses, expected)


def test_unk_penalty_and_min_length_are_those_of_fairseq(
    random_models: Any,
    decode_config: Any,
    dictionary: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    models = random_models(2)
    for model in models:
        with torch.no_grad():  # likely unless there is a penalty
            model.decoder.output_projection.weight[dictionary.unk()] *= 2
    settings = {"unk_penalty": 1.5, "beam": 4}
    generator = fairseq_generator(
        models, dictionary, beam_size=4, max_len_b=12, min_len=6, unk_penalty=1.5
    )
    hypotheses = beam_search(
        ensemble(models), sentences, "prex", decode_config(min_length=6, **settings)
    )
    assert_same_as_fairseq(hypotheses, fairseq_hypotheses(generator, sentences, dictionary.pad()))
    assert min(len(hypothesis.token_id) for best in hypotheses for hypothesis in best) >= 7


def test_n_best_keeps_the_best_of_the_beam(
    random_models: Any, decode_config: Any, sentences: list[Sentence], beam_search: Any
) -> None:
    model = ensemble(random_models(2))
    n_best = beam_search(model, sentences, "prex", decode_config())
    some = beam_search(model, sentences, "prex", decode_config(n_best=2))
    for all_five, two in zip(n_best, some, strict=True):
        assert [hypothesis.token_id.tolist() for hypothesis in two] == [
            hypothesis.token_id.tolist() for hypothesis in all_five[:2]
        ]


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_5_a_sentence_has_the_same_result_alone_and_in_a_batch(
    combination: str,
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    model = ensemble(random_models(2))
    together = beam_search(model, sentences, combination, decode_config())
    for sentence, batched in zip(sentences, together, strict=True):
        alone = beam_search(model, [sentence], combination, decode_config())[0]
        for first, second in zip(alone, batched, strict=True):
            assert_same(first, second)


def assert_same(first: Hypothesis, second: Hypothesis) -> None:
    assert first.token_id.tolist() == second.token_id.tolist()
    assert first.score == pytest.approx(second.score, abs=1e-4)
    for field in fields(TokenStatistics):
        np.testing.assert_allclose(
            getattr(first.statistics, field.name),
            getattr(second.statistics, field.name),
            atol=1e-4,
        )


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_members_in_turn_and_stacked_find_the_same(
    combination: str,
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    members = [FairseqMember(model) for model in random_models(3)]
    assert isinstance(as_ensemble(members), StackedTransformers)
    stacked, in_turn = (
        beam_search(model, sentences, combination, decode_config())
        for model in (as_ensemble(members), MembersInTurn(members))
    )
    for first_best, second_best in zip(stacked, in_turn, strict=True):
        for first, second in zip(first_best, second_best, strict=True):
            assert_same(first, second)


@pytest.mark.parametrize("stacked", [True, False])
def test_half_precision_gives_nearly_the_same_scores(
    stacked: bool,
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    single = beam_search(ensemble(random_models(2)), sentences, "expr", decode_config())
    members = [FairseqMember(model.half()) for model in random_models(2)]
    model = as_ensemble(members) if stacked else MembersInTurn(members)
    half = beam_search(model, sentences, "expr", decode_config())
    for first_best, half_best in zip(single, half, strict=True):
        assert first_best[0].score == pytest.approx(half_best[0].score, abs=1e-2)
        assert half_best[0].statistics.entropy_expr.dtype == np.float32


def random_table(n_member: int, vocab: int) -> Any:
    """Return random distributions per prefix and member; padding and <s> have probability too."""

    def distribution(source: int, prefix: tuple[int, ...]) -> Any:
        random = np.random.default_rng([source, len(prefix), *prefix])
        return random.dirichlet(np.full(vocab, 0.7), n_member)

    return distribution


@pytest.mark.parametrize("combination", ["prex", "expr"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_a_wide_beam_finds_the_best_of_all_sequences(
    combination: str, length_penalty: float, table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    table, limit = random_table(3, 6), 3
    config = decode_config(beam=64, length_penalty=length_penalty, max_length_offset=limit)
    batch = [Sentence(0, [3, EOS], None), Sentence(1, [4, EOS], None)]
    hypotheses = beam_search(table_model(table), batch, combination, config)
    for sentence, best in zip(batch, hypotheses, strict=True):
        scores = {}
        for length in range(1, limit + 1):
            for words in itertools.product([0, 3, 4, 5], repeat=length):
                target = [*words, EOS]
                steps = np.array(
                    [table(sentence.source[0], words[:position]) for position in range(length + 1)]
                )
                logprob = np.log(steps[np.arange(length + 1), :, target])  # [token, member]
                total = (
                    np.log(np.exp(logprob.sum(axis=0)).mean())
                    if combination == "expr"
                    else np.log(np.exp(logprob).mean(axis=1)).sum()
                )
                scores[tuple(target)] = total / (length + 1) ** length_penalty
        most_probable = sorted(scores, key=lambda sequence: -scores[sequence])[:10]
        assert [tuple(hypothesis.token_id.tolist()) for hypothesis in best[:10]] == most_probable
        for hypothesis in best:
            assert hypothesis.score == pytest.approx(
                scores[tuple(hypothesis.token_id.tolist())], abs=1e-5
            )


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_statistics_are_computed_before_any_score_mask(
    combination: str, table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    table = random_table(3, 6)
    batch = [Sentence(0, [3, EOS], None)]
    for hypothesis in beam_search(table_model(table), batch, combination, decode_config())[0]:
        token = hypothesis.token_id
        steps = np.array([table(3, tuple(token[:position])) for position in range(len(token))])
        logprob = np.log(steps)
        chosen = logprob[np.arange(len(token)), :, token]
        np.testing.assert_allclose(hypothesis.statistics.logprob, chosen, atol=1e-5)
        prefix = np.vstack([np.zeros(3), chosen.cumsum(axis=0)[:-1]])
        for name, expected in fused_statistics(logprob, prefix).items():
            np.testing.assert_allclose(getattr(hypothesis.statistics, name), expected, atol=1e-4)


@pytest.mark.parametrize("combination", ["prex", "expr"])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_case_6_token_logprobs_add_up_whatever_the_length_penalty(
    combination: str,
    length_penalty: float,
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
    beam_search: Any,
) -> None:
    config = decode_config(length_penalty=length_penalty)
    for best in beam_search(ensemble(random_models(3)), sentences, combination, config):
        for hypothesis in best:
            member = hypothesis.statistics.logprob.astype(np.float64)
            if combination == "expr":
                raw = np.log(np.exp(member.sum(axis=0)).mean())
            else:
                raw = np.log(np.exp(member).mean(axis=1)).sum()
            assert hypothesis.score * len(hypothesis.token_id) ** length_penalty == pytest.approx(
                raw, abs=1e-4
            )


def certain(probabilities: dict[int, list[float]], vocab: int = 5) -> Any:
    """Return the same distribution for every prefix: token -> its probability in each member."""

    def distribution(source: int, prefix: tuple[int, ...]) -> Any:
        rows = np.zeros((len(next(iter(probabilities.values()))), vocab))
        for token, each in probabilities.items():
            rows[:, token] = each
        return rows

    return distribution


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_4_if_nothing_can_finish_the_best_prefixes_are_kept(
    combination: str, table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    model = table_model(certain({3: [0.75, 0.25], 4: [0.25, 0.75]}))
    config = decode_config(beam=2, max_length_offset=3)
    hypotheses = beam_search(model, [Sentence(0, [3, EOS], None)], combination, config)[0]
    assert len(hypotheses) == 2
    for hypothesis in hypotheses:
        assert not hypothesis.finished
        assert len(hypothesis.token_id) == 3
        assert EOS not in hypothesis.token_id
        assert np.isfinite(hypothesis.score)


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_4_eos_of_probability_0_under_a_member_gives_no_nan(
    combination: str, table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    model = table_model(certain({3: [0.5, 1.0], EOS: [0.5, 0.0]}))
    config = decode_config(beam=3, max_length_offset=4)
    hypotheses = beam_search(model, [Sentence(0, [3, EOS], None)], combination, config)[0]
    assert hypotheses
    for hypothesis in hypotheses:
        assert hypothesis.finished
        assert np.isfinite(hypothesis.score)
        for field in fields(TokenStatistics):
            assert not np.isnan(getattr(hypothesis.statistics, field.name)).any()
        assert hypothesis.statistics.logprob[-1, 1] == -np.inf


def test_a_sentence_may_have_fewer_hypotheses_than_the_beam_or_none(
    table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    one_word = table_model(lambda source, prefix: np.eye(5)[[2 if prefix else 3]])
    batch = [Sentence(0, [3, EOS], None)]
    hypotheses = beam_search(one_word, batch, "prex", decode_config())[0]
    assert [hypothesis.token_id.tolist() for hypothesis in hypotheses] == [[3, EOS]]
    only_empty = table_model(lambda source, prefix: np.eye(5)[[EOS]])
    assert beam_search(only_empty, batch, "prex", decode_config()) == [[]]


def test_nan_is_rejected_with_member_and_sentence(
    table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    table = certain({3: [0.5, np.nan], EOS: [0.5, 0.5]})
    with pytest.raises(DataError, match=r"sentence 7: member 1 returned a NaN log-prob"):
        beam_search(table_model(table), [Sentence(7, [3, EOS], None)], "prex", decode_config())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regime": "sample"}, r"decode\._target_: beam_search .*\(got decode\.regime=sample"),
        ({"combination": "member"}, r"decode\.combination=member\)"),
        ({"regime": "greedy", "beam": 5}, r"decode\.beam: must be 1 .*\(got 5\)"),
    ],
)
def test_settings_of_another_search_are_rejected(
    settings: dict[str, Any], message: str, table_model: Any, decode_config: Any, beam_search: Any
) -> None:
    config = decode_config(**settings)
    model = table_model(certain({3: [0.5], EOS: [0.5]}))
    with pytest.raises(ConfigError, match=message):
        beam_search(model, [Sentence(0, [3, EOS], None)], config.combination, config)
