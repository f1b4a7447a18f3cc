from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import MeasuredDecode, SentenceMeasures
from pipeline.metrics.token_labels import MeasuredTokens, TokenRules
from pipeline.quality.registry import QUALITIES

MakeMeasured = Callable[..., MeasuredDecode]
_PIECES = ("<s>", "<pad>", "</s>", "<unk>", "▁turn", "▁on", "▁the", "▁la", "mp", "▁off")
# The third sentence has no EOS and the last one no hypothesis.
_IDS = ([4, 5, 6, 7, 8, 2], [4, 9, 2], [4, 3], [])


@pytest.fixture
def evaluation() -> Evaluation:
    return Evaluation(QUALITIES["bleu"], resamples=30, seed=0, measures_signature="measures")


@pytest.fixture
def measured() -> MakeMeasured:
    """Return a function that makes a decode of texts with one measure `u` at B = 1."""

    def make(
        values: Sequence[float],
        texts: Sequence[str | None] = ("a", "b", "c"),
        references: Sequence[str | None] = ("a", "x", "y z"),
        why_null: str = "",
        sources: Sequence[str] | None = None,
    ) -> MeasuredDecode:
        cell = Cell("nmt_ende", "newstest14", "random_init", "prex", "beam", signature="sig")
        source_texts = list(sources or ["a source"] * len(texts))
        members = ("seed_1", "seed_2")
        decode = Decode(
            Path("store.h5"), cell, True, members, source_texts, list(texts), list(references)
        )
        reasons = {"u": why_null} if why_null else {}
        return MeasuredDecode(
            decode, [SentenceMeasures(1, 10.0, True, {"u": np.array(values)}, reasons, 1)]
        )

    return make


@pytest.fixture
def rules() -> TokenRules:
    return TokenRules("nist", with_eos=False, subwords=list(_PIECES))


@pytest.fixture
def tokens(measured: MakeMeasured) -> MeasuredTokens:
    """Return a decode of four sentences, two with missing words, and a measure of its tokens."""
    texts = ["turn on the lamp", "turn off", "turn<unk>", None]
    references = ["turn off the lamp", "turn off the lamp", "turn it", "turn"]
    decode = measured([0.0] * 4, texts, references).decode
    frame = pd.DataFrame(
        {
            "sentence_id": np.repeat(np.arange(4), [len(ids) for ids in _IDS]),
            "hypothesis": 0,
            "position": [position for ids in _IDS for position in range(len(ids))],
            "token_id": [token_id for ids in _IDS for token_id in ids],
            "prex_score": np.linspace(1, 0, 11) ** 2,
        }
    )
    return MeasuredTokens(decode, frame)
