"""The sentences of one decode as the page embeds them: texts, scores, measures and tokens."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.measure_files import (
    SentenceMeasures,
    read_measure_table,
    read_measures,
)
from pipeline.quality.registry import Quality
from pipeline.store import Flag, Store
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

# Column of token.parquet, behind the posterior's name -> its name on the page.
_SHOWN_MEASURES = {"entropy": "total", "mi": "mutual_information", "rmi": "reverse_information"}
_TOKEN_DECIMALS = 3
_LOGPROB_DECIMALS = 2
_SCORE_DECIMALS = 3
_ERROR_DECIMALS = 1
_MEASURE_DIGITS = 4


def sentence_data(
    store: Store,
    measures_folder: Path,
    quality: Quality,
    most_sentences: int,
    pieces: Sequence[str] | None,
) -> dict[str, Any]:
    """The first `most_sentences` of a store as plain values for JSON, numbers rounded.

    `measures_folder` holds what stages.uncertainty made of the store; `pieces` [vocab] are the
    units behind its token ids. One list item a sentence, a hypothesis (with `hypothesis_offset`)
    or a token of the best hypothesis (with `token_offset`); `member_logprob` is [token * member],
    nats. null: no value; "Infinity", "-Infinity": JSON has no numbers for them. Raises DataError
    for measures of another store.
    """
    n_sentence = min(store.n_sentence, most_sentences)
    hypothesis_offset = store.hypothesis_offset[: n_sentence + 1]
    n_hypothesis = int(hypothesis_offset[-1])
    texts = [str(one) for one in store.read("/hypothesis/text", 0, n_hypothesis)]
    references = store.references()[:n_sentence]
    measures = _shown_measures(
        read_measures(measures_folder / "sequence.parquet", store.n_sentence)
    )
    return {
        "setting": {
            "beam": measures.beam,
            "temperature": measures.temperature,
            "length_norm": measures.length_norm,
        },
        "members": store.members,
        "source": [str(one) for one in store.read("/sentence/source", 0, n_sentence)],
        "reference": references,
        "flags": [_flag_names(int(one)) for one in store.flag[:n_sentence]],
        "hypothesis_offset": hypothesis_offset.tolist(),
        "hypothesis": texts,
        "score": _rounded(store.read("/hypothesis/score", 0, n_hypothesis), _SCORE_DECIMALS),
        "error_percent": _errors(texts, references, hypothesis_offset, quality),
        "measures": {
            name: _significant(values[:n_sentence]) for name, values in measures.values.items()
        },
        **_tokens(store, measures_folder / "token.parquet", hypothesis_offset, pieces),
    }


def _shown_measures(grid: list[SentenceMeasures]) -> SentenceMeasures:
    """Those of the largest beam, with length normalisation where the grid has it."""
    return max(grid, key=lambda one: (one.length_norm, one.beam))


def _flag_names(flag: int) -> list[str]:
    return [str(one.name).lower().replace("_", " ") for one in Flag if flag & one]


def _errors(
    texts: list[str],
    references: list[str | None],
    hypothesis_offset: NDArray[np.int64],
    quality: Quality,
) -> list[Any]:
    """The error of each sentence in percent, null without hypothesis or reference: [sentence]."""
    first, after = hypothesis_offset[:-1], hypothesis_offset[1:]
    errors = np.full(len(references), np.nan)
    scorable = [
        (place, texts[first[place]], reference)
        for place, reference in enumerate(references)
        if reference is not None and first[place] < after[place]
    ]
    if scorable:
        places, said, meant = zip(*scorable, strict=True)
        errors[list(places)] = quality.sentence_error_percent(said, meant)
    return _rounded(errors, _ERROR_DECIMALS)


def _tokens(
    store: Store,
    parquet: Path,
    hypothesis_offset: NDArray[np.int64],
    pieces: Sequence[str] | None,
) -> dict[str, Any]:
    """The tokens of the best hypotheses: units, measures, ln P of each member."""
    token_offset = store.token_offset[: hypothesis_offset[-1] + 1]
    has_one = hypothesis_offset[:-1] < hypothesis_offset[1:]
    best = hypothesis_offset[:-1][has_one]
    starts, ends = token_offset[best], token_offset[best + 1]
    rows = _ranges(starts, ends)
    n_token = int(token_offset[-1])
    identity = store.read("/token/id", 0, n_token)[rows]
    length = np.zeros(len(has_one), dtype=np.int64)
    length[has_one] = ends - starts
    used, unit = np.unique(identity, return_inverse=True)
    logprob = store.read("/token/logprob", 0, n_token)[rows]
    frame = _token_frame(parquet, store, len(has_one))
    if not np.array_equal(frame["token_id"].to_numpy(), identity):
        raise DataError(
            f"{parquet} must hold the tokens of {store.path}, got others: "
            "run python -m stages.uncertainty again"
        )
    return {
        "token_offset": [0, *np.cumsum(length).tolist()],
        "unit": unit.tolist(),
        "units": [f"#{one}" if pieces is None else pieces[one] for one in used],
        "member_logprob": _rounded(logprob.ravel(), _LOGPROB_DECIMALS),
        **{
            shown: _rounded(frame[column].to_numpy(dtype=np.float64), _TOKEN_DECIMALS)
            for column, shown in _token_columns(store).items()
        },
    }


def _token_frame(parquet: Path, store: Store, n_sentence: int) -> pd.DataFrame:
    """Token measures of the best hypotheses of the first sentences, in the order of the store."""
    columns = ["sentence_id", "hypothesis", "token_id", *_token_columns(store)]
    best = [("hypothesis", "==", 0), ("sentence_id", "<", n_sentence)]
    return read_measure_table(parquet, columns, columns=columns, filters=best)


def _token_columns(store: Store) -> dict[str, str]:
    posterior = store.combination if store.combination in POSTERIORS else "prex"
    return {f"{posterior}_{name}": shown for name, shown in _SHOWN_MEASURES.items()}


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows start..end-1 of every pair, one after the other."""
    return np.concatenate(
        [np.arange(0), *(np.arange(a, b) for a, b in zip(starts, ends, strict=True))]
    )


def _rounded(values: NDArray[Any], decimals: int) -> list[Any]:
    # 0.0 is added because a rounded -0.001 would be shown as -0.
    return _plain((np.round(values.astype(np.float64), decimals) + 0.0).tolist())


def _significant(values: NDArray[np.float64]) -> list[Any]:
    """Rounded to a few digits of each number: measures differ by orders of magnitude."""
    return _plain([float(f"{one:.{_MEASURE_DIGITS}g}") for one in values])


def _plain(values: list[float]) -> list[Any]:
    """Numbers as JSON can hold them: NaN as null, infinities as text."""
    return [one if isfinite(one) else _special(one) for one in values]


def _special(value: float) -> str | None:
    if isnan(value):
        return None
    return "Infinity" if value > 0 else "-Infinity"
