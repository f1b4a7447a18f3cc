"""Cells of calibration: the expected calibration error of in-domain decodes, with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.metrics.calibration import (
    N_BIN,
    Forecasts,
    calibration_statistic,
    forecasts,
    matches,
)
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, measure_table
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import groups_by, shared_cell
from pipeline.metrics.quality import Quality
from pipeline.metrics.statistic import FloatArray
from pipeline.store import open_store

LEVELS = ("token", "sequence")


@dataclass(frozen=True)
class BestTokens:
    """The tokens of the 1-best hypotheses of a decode, side by side.

    `sentence`, `token_id`, `probability` [token]: that of the posterior that decoded, in [0, 1].
    """

    sentence: NDArray[np.int64]
    token_id: NDArray[np.int64]
    probability: FloatArray


def best_tokens(decode: Decode, measures: Path) -> BestTokens:
    """The 1-best tokens of a decode; `measures` is the token.parquet of an ensemble.

    Raises DataError where an ensemble's decode has no measures.
    """
    if decode.cell.hypotheses == "-":
        with open_store(decode.path) as store:
            rows = _first_hypothesis_rows(store.hypothesis_offset, store.token_offset)
            sentence, token = rows
            logprob = store.read("/token/logprob")[token, 0].astype(np.float64)
            identity = store.read("/token/id")[token].astype(np.int64)
        return BestTokens(sentence, identity, np.exp(np.minimum(logprob, 0)))
    score = f"{decode.cell.hypotheses}_score"
    columns = ["sentence_id", "token_id", score]
    table = measure_table(measures, columns, columns=columns, filters=[("hypothesis", "==", 0)])
    nats = table[score].to_numpy().astype(np.float64)
    return BestTokens(
        table["sentence_id"].to_numpy(),
        table["token_id"].to_numpy().astype(np.int64),
        np.exp(-np.maximum(nats, 0)),
    )


def token_forecasts(tokens: BestTokens, reference: Decode) -> Forecasts:
    """Confidence of each token and whether it matches the reference that was teacher-forced.

    Sentences without a reference are left out.
    """
    with open_store(reference.path) as store:
        sentence, row = _first_hypothesis_rows(store.hypothesis_offset, store.token_offset)
        token_id = store.read("/token/id")[row].tolist()
        n_sentence = store.n_sentence
    meant = _bounds(sentence, n_sentence)
    said = _bounds(tokens.sentence, n_sentence)
    identity = tokens.token_id.tolist()
    right = np.zeros(len(identity), dtype=np.float64)
    for place in range(n_sentence):
        first, last = said[place], said[place + 1]
        right[first:last] = matches(identity[first:last], token_id[meant[place] : meant[place + 1]])
    used = np.diff(meant)[tokens.sentence] > 0
    return forecasts(tokens.probability[used], right[used], tokens.sentence[used])


def sentence_forecasts(tokens: BestTokens, decode: Decode, error_percent: FloatArray) -> Forecasts:
    """Geometric mean of a sentence's token probabilities, and its quality in [0, 1].

    `error_percent` [sentence], NaN where a sentence has no error and is left out.
    """
    n_sentence = len(decode.texts)
    length = np.bincount(tokens.sentence, minlength=n_sentence)
    with np.errstate(divide="ignore"):
        logprob = np.log(tokens.probability)
    total = np.bincount(tokens.sentence, logprob, n_sentence)
    used = np.flatnonzero((length > 0) & ~np.isnan(error_percent))
    quality = 1 - np.minimum(error_percent[used], 100) / 100
    return forecasts(np.exp(total[used] / length[used]), quality, used)


def error_percent(decode: Decode, quality: Quality) -> FloatArray:
    """The error of each sentence in percent, NaN where it cannot be scored."""
    places = np.flatnonzero(decode.scorable)
    errors = np.full(len(decode.texts), np.nan)
    errors[places] = quality.sentence_error_percent(
        [str(decode.texts[i]) for i in places], [str(decode.references[i]) for i in places]
    )
    return errors


def calibrated_forecasts(
    part: str, decodes: Mapping[str, Decode], uncertainty: Path, quality: Quality
) -> dict[str, Forecasts | str]:
    """Level -> the forecasts of a decode, or the reason why there are none.

    `uncertainty`: the folder of the measures of all parts.
    """
    decode = decodes[part]
    tokens = best_tokens(decode, uncertainty / part / "token.parquet")
    reference = next(
        (
            one
            for one in decodes.values()
            if one.is_forced and one.cell.test_set == decode.cell.test_set
        ),
        None,
    )
    by_level: dict[str, Forecasts | str] = {
        "token": "no reference was teacher-forced",
        "sequence": sentence_forecasts(tokens, decode, error_percent(decode, quality)),
    }
    if reference is not None:
        by_level["token"] = token_forecasts(tokens, reference)
    for level, found in by_level.items():
        if not isinstance(found, str) and not len(found.confidence):
            by_level[level] = decode.why_not_scorable
    return by_level


def calibration_cells(
    decodes: Mapping[str, Decode], uncertainty: Path, evaluation: Evaluation
) -> Iterator[Cell]:
    """Expected calibration error in percent of the in-domain decodes, of tokens and of sequences.

    Columns `token_confidence` and `sequence_confidence`. Decodes of one key, as those of single
    members, give their mean with the standard deviation over them as spread.
    """
    searched = [part for part, decode in decodes.items() if decode.in_domain and decode.is_search]
    for parts in groups_by(searched, lambda part: decodes[part]):
        found = [
            calibrated_forecasts(part, decodes, uncertainty, evaluation.quality) for part in parts
        ]
        group = [decodes[part] for part in parts]
        for level in LEVELS:
            cell = replace(shared_cell(group), column=f"{level}_confidence", metric="ece")
            yield _cell(cell, [one[level] for one in found], len(group[0].texts), evaluation)


def _cell(
    cell: Cell, found: Sequence[Forecasts | str], n_sentence: int, evaluation: Evaluation
) -> Cell:
    given = [one for one in found if not isinstance(one, str)]
    if len(given) < len(found):
        return replace(cell, reason=next(one for one in found if isinstance(one, str)))
    level = "alignment:levenshtein" if cell.column.startswith("token") else "quality:sentence"
    filled = evaluation.mean_filled(
        cell,
        [calibration_statistic(one, n_sentence) for one in given],
        evaluation.weights(np.ones(n_sentence, dtype=bool)),
        f"ECE|bins:{N_BIN} of equal width|{level}",
    )
    return replace(filled, n=len(np.unique(np.concatenate([one.sentence for one in given]))))


def _first_hypothesis_rows(
    hypothesis_offset: NDArray[np.int64], token_offset: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every token of a first hypothesis: its sentence, and its row in the store."""
    has = np.flatnonzero(np.diff(hypothesis_offset))
    first = hypothesis_offset[:-1][has]
    start, length = token_offset[first], np.diff(token_offset)[first]
    before = np.cumsum(length) - length
    row = np.arange(length.sum()) + np.repeat(start - before, length)
    return np.repeat(has, length), row


def _bounds(sentence: NDArray[np.int64], n_sentence: int) -> NDArray[np.int64]:
    """Where the tokens of each sentence begin, [sentence + 1], from the sentence of each token."""
    counts = np.bincount(sentence, minlength=n_sentence)
    return np.concatenate([[0], np.cumsum(counts)])
