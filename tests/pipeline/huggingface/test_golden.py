"""Search and teacher forcing against `generate` and the loss of the models themselves."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import MembersInTurn
from pipeline.decoding.scoring import score_targets
from tests.pipeline.huggingface.conftest import (
    BUILDERS,
    EOS,
    STARTS,
    _filled,
    sentences_of,
    trained,
)

pytestmark = pytest.mark.slow

BEAM = 5
LIMIT = 20  # tokens before EOS, as in decode_config
ENDINGS = {"early": True, "heuristic": False, "never": "never"}


def generated(
    name: str, sentences: list[Any], prefix: list[int] | None = None, **settings: Any
) -> list[list[tuple[Any, float]]]:
    """Return the five hypotheses of each sentence, without start symbols, and their scores.

    prefix: start symbols that are given, not generated.
    """
    model = trained(name, 1)
    inputs: dict[str, Any] = {}
    n_start = 0
    if name == "whisper":
        inputs["decoder_input_ids"] = torch.tensor([STARTS[name]]).repeat(len(sentences), 1)
        frames = np.stack([sentence.source for sentence in sentences]).transpose(0, 2, 1)
        inputs["encoder_outputs"] = model.get_encoder()(torch.from_numpy(frames.copy()))
        # Whisper's own generate cuts audio into segments; its beam search is the general one.
        generate = partial(transformers.GenerationMixin.generate, model)
    else:
        rows = [sentence.source for sentence in sentences]
        if name == "gpt2":  # prompts are filled up at the left
            tokens = _filled([row[::-1] for row in rows], -1).flip(1)
        else:
            tokens = _filled(rows, -1)
        inputs |= {"input_ids": tokens.clamp(min=0), "attention_mask": (tokens >= 0).long()}
        if prefix is not None:
            inputs["decoder_input_ids"] = torch.tensor([prefix]).repeat(len(sentences), 1)
        generate = model.generate
        n_start = tokens.shape[1] if name == "gpt2" else 0
    output = generate(
        **inputs, num_beams=BEAM, num_return_sequences=BEAM, max_new_tokens=LIMIT + 1,
        do_sample=False, return_dict_in_generate=True, output_scores=True, **settings,
    )  # fmt: skip
    n_start = n_start or len(STARTS[name])
    found = [
        (_until_eos(row[n_start:].tolist()), float(score))
        for row, score in zip(output.sequences, output.sequences_scores, strict=True)
    ]
    return [found[start : start + BEAM] for start in range(0, len(found), BEAM)]


def _until_eos(tokens: list[int]) -> list[int]:
    return tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", BUILDERS)
def test_all_five_hypotheses_are_those_of_generate(
    name: str, ending: str, member_of: Any, decode_config: Any
) -> None:
    sentences = sentences_of(name)
    # A forced first token counts in the length penalty of generate, and not in ours.
    penalty = 0.0 if name in ("bart", "nllb") else 1.0
    expected = generated(name, sentences, early_stopping=ENDINGS[ending], length_penalty=penalty)
    model = MembersInTurn([member_of(name)])
    found = beam_search(
        model, sentences, "prex", decode_config(ending=ending, length_penalty=penalty)
    )
    compare(found, expected)


def compare(found: list[Any], expected: list[Any]) -> None:
    compared = 0
    for ours, theirs in zip(found, expected, strict=True):
        # At the limit our rule differs: generate cuts hypotheses, which take the place of others.
        ended = [(token_id, score) for token_id, score in theirs if token_id[-1] == EOS]
        shorter = [hypothesis for hypothesis in ours if len(hypothesis.token_id) <= LIMIT]
        for hypothesis, (token_id, score) in zip(shorter, ended, strict=False):
            assert hypothesis.token_id.tolist() == token_id
            assert hypothesis.score == pytest.approx(score, abs=1e-5)
            compared += 1
    assert compared > 0.8 * BEAM * len(found)


def test_a_language_that_is_given_does_not_count_in_the_length_penalty(
    member_of: Any, decode_config: Any
) -> None:
    sentences = sentences_of("nllb")
    prefix = STARTS["nllb"]
    expected = generated(
        "nllb", sentences, prefix, early_stopping=True, length_penalty=1.0, forced_bos_token_id=None
    )
    model = MembersInTurn([member_of("nllb")])
    compare(beam_search(model, sentences, "prex", decode_config(ending="early")), expected)


@pytest.mark.parametrize("name", BUILDERS)
def test_teacher_forced_nll_is_the_loss_of_the_model(
    name: str, member_of: Any, decode_config: Any
) -> None:
    from tests.pipeline.huggingface.conftest import _loss

    model = MembersInTurn([member_of(name)])
    for sentence in sentences_of(name, 6):
        ((scored,),) = score_targets(model, [sentence], "prex", decode_config())
        words = [(sentence.target or [])[-2::-1]]
        loss = float(_loss(trained(name, 1), name, words).detach())
        assert -scored.score == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("name", BUILDERS)
def test_search_agrees_with_rescoring_and_with_decoding_alone(
    name: str, member_of: Any, decode_config: Any
) -> None:
    sentences = sentences_of(name)
    model = MembersInTurn([member_of(name, seed) for seed in (1, 2)])
    config = decode_config(beam=3)
    together = beam_search(model, sentences, "prex", config)
    for sentence, (best, *_) in zip(sentences, together, strict=True):
        ((alone, *_),) = beam_search(model, [sentence], "prex", config)
        target = type(sentence)(sentence.id, sentence.source, best.token_id.tolist())
        ((rescored,),) = score_targets(model, [target], "prex", config)
        assert alone.token_id.tolist() == best.token_id.tolist()
        for other in (alone, rescored):
            assert other.score == pytest.approx(best.score, abs=1e-5)
            np.testing.assert_allclose(other.statistics.logprob, best.statistics.logprob, atol=1e-4)
            np.testing.assert_allclose(
                other.statistics.entropy_prex, best.statistics.entropy_prex, atol=1e-4
            )
