"""The route of a notebook: models in memory, a few lines, no files of the pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.sample import sample
from pipeline.errors import ConfigError
from pipeline.run.settings import decode_settings
from tests.pipeline.huggingface.conftest import sentences_of


def test_models_in_memory_are_searched_in_five_lines(member_of: Any) -> None:
    model = as_ensemble([member_of("marian", seed) for seed in (1, 2)])
    for best, *rest in beam_search(model, sentences_of("marian", 3)):
        assert len(rest) == 4
        assert best.statistics.logprob.shape == (len(best.token_id), 2)


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
