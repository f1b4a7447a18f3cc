"""The route of a notebook: models in memory, a few lines, no files of the pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import transformers

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.from_python import huggingface_ensemble
from pipeline.decoding.from_python import sentences_of as texts_as_sentences
from pipeline.decoding.sample import sample
from pipeline.decoding.scoring import score_targets
from pipeline.errors import ConfigError, DataError
from pipeline.run.settings import decode_settings
from tests.pipeline.huggingface.conftest import sentences_of
from tests.pipeline.huggingface.folders import save_t5

pytestmark = pytest.mark.slow


def test_models_in_memory_are_searched_in_five_lines(member_of: Any) -> None:
    model = as_ensemble([member_of("marian", seed) for seed in (1, 2)])
    for best, *rest in beam_search(model, sentences_of("marian", 3)):
        assert len(rest) == 4
        assert best.statistics.logprob.shape == (len(best.token_id), 2)


def test_folders_are_an_ensemble_with_a_tokenizer(tmp_path: Path) -> None:
    folders = [save_t5(tmp_path / str(seed), seed) for seed in (1, 2)]
    model, tokenizer = huggingface_ensemble(folders, prompt="words: {source}")
    own = transformers.AutoTokenizer.from_pretrained(folders[0])
    (sentence,) = texts_as_sentences(["source 3"], tokenizer, ["w3 and"])
    assert sentence.source == own("words: source 3")["input_ids"]
    assert sentence.target == own("w3 and")["input_ids"]
    assert (model.n_member, model.vocab_size) == (2, tokenizer.vocab_size)
    ((scored,),) = score_targets(model, [sentence], "prex", decode_settings())
    assert tokenizer.text(scored.token_id) == "w3 and"
    with pytest.raises(DataError, match=r"text 1: is blank"):
        texts_as_sentences(["source 3", " "], tokenizer)
    with pytest.raises(
        ConfigError, match=r"settings\.promt: no such setting\. Did you mean prompt"
    ):
        huggingface_ensemble(folders, promt="")
    with pytest.raises(DataError, match="are the same model"):
        huggingface_ensemble(folders[:1] * 2)


def test_settings_have_the_defaults_of_conf(member_of: Any) -> None:
    assert decode_settings().beam == 5
    assert decode_settings("greedy").beam == 1
    settings = decode_settings("sample", beam=3, seed=7)
    assert (settings.regime, settings.seed) == ("sample", 7)
    model = as_ensemble([member_of("t5")])
    assert [len(drawn) for drawn in sample(model, sentences_of("t5", 2), "prex", settings)] == [
        3,
        3,
    ]


@pytest.mark.parametrize(
    ("arguments", "settings", "match"),
    [
        ((), {"beem": 3}, r"beem.*beam"),
        ((), {"beam": 0}, r"decode\.beam: must be at least 1 \(got 0\)"),
        (("bean",), {}, r"bean.*beam"),
    ],
)
def test_wrong_settings_are_named(arguments: Any, settings: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        decode_settings(*arguments, **settings)
