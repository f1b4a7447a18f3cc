"""The sentences of one decode as plain values for JSON: texts, scores, measures and tokens."""

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
from pipeline.report.ensemble_names import member_name
from pipeline.store import Flag, Store
from pipeline.uncertainty.measures_of_tokens import POSTERIORS

# Token measure, without the name of the posterior -> its name in the JSON data.
_SHOWN_TOKEN_MEASURES = {
    "entropy": "total",
    "mi": "mutual_information",
    "rmi": "reverse_information",
}
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
    subwords: Sequence[str] | None,
) -> dict[str, Any]:
    """The first `most_sentences` of a store as plain values for JSON, with rounded numbers.

    `measures_folder` holds the measures that stages.uncertainty computed from the store.
    `subwords` [vocab] are the texts of the token ids; without them the ids are shown. Lists have
    one item per sentence, per hypothesis (delimited by `hypothesis_offset`), or per token of the
    best hypothesis (delimited by `token_offset`). `member_logprob` is [token * member], in nats.
    Absent values are null. Infinities are text, because JSON cannot represent them. Raises
    DataError if the measures belong to another store.
    """
    n_sentence = min(store.n_sentence, most_sentences)
    hypothesis_offset = store.hypothesis_offset[: n_sentence + 1]
    n_hypothesis = int(hypothesis_offset[-1])
    texts = [str(text) for text in store.read("/hypothesis/text", 0, n_hypothesis)]
    references = store.references()[:n_sentence]
    measures = _shown_measures(
        read_measures(measures_folder / "sequence.parquet", store.n_sentence)
    )
    return {
        "setting": {
            "beam": measures.beam_used,
            "temperature": measures.temperature,
            "length_norm": measures.length_norm,
        },
        "members": [member_name(name) for name in store.members],
        "source": [str(text) for text in store.read("/sentence/source", 0, n_sentence)],
        "reference": references,
        "flags": [_flag_names(int(flags)) for flags in store.flag[:n_sentence]],
        "hypothesis_offset": hypothesis_offset.tolist(),
        "hypothesis": texts,
        "score": _rounded(store.read("/hypothesis/score", 0, n_hypothesis), _SCORE_DECIMALS),
        "error_percent": _errors(
            texts,
            # Teacher forcing scores the references themselves, which have no error.
            [None] * n_sentence if store.regime == "teacher_forcing" else references,
            hypothesis_offset,
            quality,
        ),
        "measures": {
            name: _significant(values[:n_sentence]) for name, values in measures.values.items()
        },
        **_tokens(store, measures_folder / "token.parquet", hypothesis_offset, subwords),
    }


def _shown_measures(grid: list[SentenceMeasures]) -> SentenceMeasures:
    """The measures of the largest beam, with length normalisation if the grid has it."""
    return max(grid, key=lambda measures: (measures.length_norm, measures.beam))


def _flag_names(flags: int) -> list[str]:
    return [str(flag.name).lower().replace("_", " ") for flag in Flag if flags & flag]


def _errors(
    texts: list[str],
    references: list[str | None],
    hypothesis_offset: NDArray[np.int64],
    quality: Quality,
) -> list[Any]:
    """The error per sentence in percent, null without hypothesis or reference: [sentence]."""
    first, after = hypothesis_offset[:-1], hypothesis_offset[1:]
    errors = np.full(len(references), np.nan)
    scorable = [
        (sentence, texts[first[sentence]], reference)
        for sentence, reference in enumerate(references)
        if reference is not None and first[sentence] < after[sentence]
    ]
    if scorable:
        sentences, hypotheses, scorable_references = zip(*scorable, strict=True)
        errors[list(sentences)] = quality.sentence_error_percent(hypotheses, scorable_references)
    return _rounded(errors, _ERROR_DECIMALS)


def _tokens(
    store: Store,
    parquet: Path,
    hypothesis_offset: NDArray[np.int64],
    subwords: Sequence[str] | None,
) -> dict[str, Any]:
    """The tokens of the best hypotheses: subwords, measures, and ln P of each member."""
    token_offset = store.token_offset[: hypothesis_offset[-1] + 1]
    has_hypothesis = hypothesis_offset[:-1] < hypothesis_offset[1:]
    best = hypothesis_offset[:-1][has_hypothesis]
    starts, ends = token_offset[best], token_offset[best + 1]
    rows = _ranges(starts, ends)
    n_token = int(token_offset[-1])
    token_id = store.read("/token/id", 0, n_token)[rows]
    length = np.zeros(len(has_hypothesis), dtype=np.int64)
    length[has_hypothesis] = ends - starts
    used_id, subword = np.unique(token_id, return_inverse=True)
    logprob = store.read("/token/logprob", 0, n_token)[rows]
    frame = _token_frame(parquet, store, len(has_hypothesis))
    if not np.array_equal(frame["token_id"].to_numpy(), token_id):
        raise DataError(
            f"{parquet}: does not hold the tokens of {store.path}. "
            "Run python -m stages.uncertainty again."
        )
    return {
        "token_offset": [0, *np.cumsum(length).tolist()],
        "subword": subword.tolist(),
        "subwords": [f"#{used}" if subwords is None else subwords[used] for used in used_id],
        "member_logprob": _rounded(logprob.ravel(), _LOGPROB_DECIMALS),
        **{
            shown: _rounded(frame[column].to_numpy(dtype=np.float64), _TOKEN_DECIMALS)
            for column, shown in _token_columns(store).items()
        },
    }


def _token_frame(parquet: Path, store: Store, n_sentence: int) -> pd.DataFrame:
    """The token measures of the best hypotheses of the first sentences, in store order."""
    columns = ["sentence_id", "hypothesis", "token_id", *_token_columns(store)]
    best = [("hypothesis", "==", 0), ("sentence_id", "<", n_sentence)]
    return read_measure_table(parquet, columns, columns=columns, filters=best)


def _token_columns(store: Store) -> dict[str, str]:
    posterior = store.combination if store.combination in POSTERIORS else "prex"
    return {f"{posterior}_{name}": shown for name, shown in _SHOWN_TOKEN_MEASURES.items()}


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The concatenated rows start..end-1 of all pairs."""
    return np.concatenate(
        [np.arange(0), *(np.arange(start, end) for start, end in zip(starts, ends, strict=True))]
    )


def _rounded(values: NDArray[Any], decimals: int) -> list[Any]:
    # Adding 0.0 turns -0.0, such as a rounded -0.001, into 0.0.
    return plain_numbers((np.round(values.astype(np.float64), decimals) + 0.0).tolist())


def _significant(values: NDArray[np.float64]) -> list[Any]:
    """Round to significant digits, because measures differ by orders of magnitude."""
    return plain_numbers([float(f"{value:.{_MEASURE_DIGITS}g}") for value in values])


def plain_numbers(values: list[float]) -> list[Any]:
    """Numbers as JSON can hold them: NaN as null, infinities as text."""
    return [value if isfinite(value) else _special_number(value) for value in values]


def _special_number(value: float) -> str | None:
    if isnan(value):
        return None
    return "Infinity" if value > 0 else "-Infinity"
