"""Calibration: whether tokens decoded with probability p are correct in a fraction p of cases.

For a token, the confidence is the probability that the decoding posterior gave it. It is correct if
a Levenshtein alignment of the hypothesis with the reference, both as subwords with EOS, keeps it.
In translation a correct token may be at another position; it counts as wrong, as in any comparison
with a single reference.

For a sentence, the confidence is the geometric mean of these probabilities, and it is compared with
a quality in [0, 1]: sentence BLEU, or 1 - WER (0 if WER exceeds 1). Quality is not a probability of
being correct, so that the size of this gap means less than its difference between systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, by_key, common_cell, runs_of_each
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import read_measure_table
from pipeline.metrics.ranking import scores
from pipeline.quality.alignment import levenshtein_paths
from pipeline.quality.registry import Quality
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, point_estimate, ratio
from pipeline.store import open_store

N_BIN = 10
LEVELS = ("token", "sequence")


@dataclass(frozen=True)
class Forecasts:
    """Confidence and correctness of items, which are tokens or sentences.

    `confidence` and `right` [item] are in [0, 1]; `sentence` [item] is the index of its sentence.
    """

    confidence: FloatArray
    right: FloatArray
    sentence: NDArray[np.integer]

    @property
    def bin(self) -> NDArray[np.intp]:
        """Index of the bin of each confidence, of `N_BIN` bins of equal width, [item].

        A confidence of 1 is in the last bin.
        """
        return np.minimum((self.confidence * N_BIN).astype(np.intp), N_BIN - 1)


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike) -> float:
    """Mean gap in percent between confidence and accuracy, over ten bins of equal width.

    Both arguments are [item], in [0, 1]; bins are weighted by their number of items. NaN without
    items. Raises DataError for unequal lengths, NaN and values outside [0, 1].
    """
    n_item = np.size(np.asarray(confidence))
    forecasts = checked_forecasts(confidence, right, np.arange(n_item))
    return point_estimate(weighted_calibration_error(forecasts, n_item), n_item)


def checked_forecasts(
    confidence: ArrayLike, right: ArrayLike, sentence: NDArray[np.integer]
) -> Forecasts:
    """Forecasts of checked values.

    Raises DataError for unequal lengths, NaN and values outside [0, 1].
    """
    checked = {"confidence": scores("confidence", confidence), "right": scores("right", right)}
    lengths = [len(values) for values in (*checked.values(), sentence)]
    if len(set(lengths)) > 1:
        raise DataError(
            "confidence, right and sentence: lengths differ "
            f"({', '.join(map(str, lengths))}). Pass one value per item in each."
        )
    for name, values in checked.items():
        if len(values) and not 0 <= values.min() <= values.max() <= 1:
            raise DataError(
                f"{name}: must be in [0, 1] (got {values.min():.6g} to {values.max():.6g}). "
                "Pass probabilities."
            )
    return Forecasts(checked["confidence"], checked["right"], np.asarray(sentence))


def weighted_calibration_error(forecasts: Forecasts, n_sentence: int) -> WeightedMetric:
    """Expected calibration error in percent as a function of weights [resample, sentence]."""
    sentence_bin = forecasts.sentence * N_BIN + forecasts.bin
    gap = np.bincount(sentence_bin, forecasts.right - forecasts.confidence, n_sentence * N_BIN)
    by_bin = gap.reshape(n_sentence, N_BIN)
    items = np.bincount(forecasts.sentence, minlength=n_sentence).astype(np.float64)

    def error(weights: FloatArray) -> FloatArray:
        return 100 * ratio(np.abs(weights @ by_bin).sum(axis=1), weights @ items)

    return error


@dataclass(frozen=True)
class ReliabilityBin:
    """Items with a confidence in [low, high): number, mean confidence and mean correctness."""

    low: float
    high: float
    n: int
    confidence: float
    right: float


def reliability(forecasts: Forecasts) -> list[ReliabilityBin]:
    """The bins of a reliability diagram that hold items, from the lowest to the highest."""
    n = np.bincount(forecasts.bin, minlength=N_BIN)
    confidence = np.bincount(forecasts.bin, forecasts.confidence, N_BIN)
    right = np.bincount(forecasts.bin, forecasts.right, N_BIN)
    return [
        ReliabilityBin(
            index / N_BIN,
            (index + 1) / N_BIN,
            int(n[index]),
            float(confidence[index] / n[index]),
            float(right[index] / n[index]),
        )
        for index in np.flatnonzero(n)
    ]


@dataclass(frozen=True)
class BestTokens:
    """The tokens of the 1-best hypotheses of a decode, concatenated.

    `sentence`, `token_id` and `probability` are [token]; the probability is under the posterior
    that decoded, in [0, 1].
    """

    sentence: NDArray[np.int64]
    token_id: NDArray[np.int64]
    probability: FloatArray


def best_tokens(decode: Decode, measures: Path) -> BestTokens:
    """The 1-best tokens of a decode; `measures` is the token.parquet of an ensemble.

    Raises DataError if an ensemble's decode has no measures.
    """
    if decode.cell.hypotheses == "-":
        with open_store(decode.path) as store:
            sentence, row = _first_hypothesis_rows(store.hypothesis_offset, store.token_offset)
            logprob = store.read("/token/logprob")[row, 0].astype(np.float64)
            token_id = store.read("/token/id")[row].astype(np.int64)
        return BestTokens(sentence, token_id, np.exp(np.minimum(logprob, 0)))
    score = f"{decode.cell.hypotheses}_score"
    columns = ["sentence_id", "token_id", score]
    best = [("hypothesis", "==", 0)]
    table = read_measure_table(measures, columns, columns=columns, filters=best)
    nats = table[score].to_numpy().astype(np.float64)
    return BestTokens(
        table["sentence_id"].to_numpy(),
        table["token_id"].to_numpy().astype(np.int64),
        np.exp(-np.maximum(nats, 0)),
    )


def matching_tokens(
    hypotheses: Sequence[Sequence[int]], references: Sequence[Sequence[int]]
) -> list[list[bool]]:
    """Mark the tokens of each hypothesis that a shortest edit into its reference keeps."""
    words = ([[str(token) for token in ids] for ids in side] for side in (hypotheses, references))
    # The path leads from the hypothesis to the reference: insertions are reference tokens.
    paths = levenshtein_paths(*words)
    return [[step == "C" for step in path if step != "I"] for path in paths]


def token_forecasts(tokens: BestTokens, reference: Decode) -> Forecasts:
    """Confidence of each token, and whether it matches the reference that was teacher-forced.

    Sentences without a reference are left out.
    """
    with open_store(reference.path) as store:
        sentence, row = _first_hypothesis_rows(store.hypothesis_offset, store.token_offset)
        reference_ids = store.read("/token/id")[row].tolist()
        n_sentence = store.n_sentence
    reference_offset = _token_offset(sentence, n_sentence)
    offset = _token_offset(tokens.sentence, n_sentence)
    matching = matching_tokens(
        _by_sentence(tokens.token_id.tolist(), offset),
        _by_sentence(reference_ids, reference_offset),
    )
    right = np.fromiter(chain.from_iterable(matching), dtype=np.float64)
    used = np.diff(reference_offset)[tokens.sentence] > 0
    return checked_forecasts(tokens.probability[used], right[used], tokens.sentence[used])


def sentence_forecasts(tokens: BestTokens, errors_percent: FloatArray) -> Forecasts:
    """Geometric mean of a sentence's token probabilities, and its quality in [0, 1].

    `errors_percent` [sentence] is NaN for sentences that are to be left out.
    """
    n_sentence = len(errors_percent)
    length = np.bincount(tokens.sentence, minlength=n_sentence)
    with np.errstate(divide="ignore"):
        logprob = np.log(tokens.probability)
    total = np.bincount(tokens.sentence, logprob, n_sentence)
    used = np.flatnonzero((length > 0) & ~np.isnan(errors_percent))
    quality = 1 - np.minimum(errors_percent[used], 100) / 100
    return checked_forecasts(np.exp(total[used] / length[used]), quality, used)


def calibrated_forecasts(
    part: str, decodes: Mapping[str, Decode], uncertainty: Path, quality: Quality
) -> dict[str, Forecasts | str]:
    """Level -> the forecasts of a decode, or the reason why it has none.

    `uncertainty` is the folder with the measures of all parts.
    """
    decode = decodes[part]
    tokens = best_tokens(decode, uncertainty / part / "token.parquet")
    errors = decode.errors_percent(quality.sentence_error_percent)
    by_level: dict[str, Forecasts | str] = {
        "token": "no reference was teacher-forced",
        "sequence": sentence_forecasts(tokens, errors),
    }
    for reference in decodes.values():
        if reference.is_forced and reference.cell.test_set == decode.cell.test_set:
            by_level["token"] = token_forecasts(tokens, reference)
            break
    for level, forecasts in by_level.items():
        if not isinstance(forecasts, str) and not len(forecasts.confidence):
            by_level[level] = decode.why_not_scorable
    return by_level


def calibration_cells(
    decodes: Mapping[str, Decode], uncertainty: Path, evaluation: Evaluation
) -> Iterator[Cell]:
    """Expected calibration error in percent of the in-domain decodes, for tokens and sequences.

    The columns are `token_confidence` and `sequence_confidence`. Replicates, such as single
    members, give their mean, with their standard deviation as spread.
    """
    searched = [part for part, decode in decodes.items() if decode.in_domain and decode.is_search]
    for parts in by_key(searched, lambda part: decodes[part]):
        forecasts = [
            calibrated_forecasts(part, decodes, uncertainty, evaluation.quality) for part in parts
        ]
        replicates = [decodes[part] for part in parts]
        for level in LEVELS:
            cell = replace(common_cell(replicates), column=f"{level}_confidence", metric="ece")
            of_level = [by_level[level] for by_level in forecasts]
            yield _calibration_cell(cell, of_level, replicates, evaluation)


def _calibration_cell(
    cell: Cell,
    forecasts: Sequence[Forecasts | str],
    replicates: Sequence[Decode],
    evaluation: Evaluation,
) -> Cell:
    n_sentence = len(replicates[0].texts)
    available = []
    for item in forecasts:
        if isinstance(item, str):
            return replace(cell, reason=item)
        available.append(item)
    level = (
        "alignment:levenshtein"
        if cell.column.startswith("token")
        else f"quality:{evaluation.quality.sentence_signature}"
    )
    filled = evaluation.mean_filled(
        cell,
        [weighted_calibration_error(item, n_sentence) for item in available],
        runs_of_each(replicates),
        evaluation.resampled(replicates[0], np.ones(n_sentence, dtype=bool)),
        f"ECE|bins:{N_BIN} of equal width|{level}",
    )
    return replace(filled, n=len(np.unique(np.concatenate([item.sentence for item in available]))))


def _first_hypothesis_rows(
    hypothesis_offset: NDArray[np.int64], token_offset: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every token of a first hypothesis: its sentence, and its row in the store."""
    sentence = np.flatnonzero(np.diff(hypothesis_offset))
    first = hypothesis_offset[:-1][sentence]
    start, length = token_offset[first], np.diff(token_offset)[first]
    before = np.cumsum(length) - length
    row = np.arange(length.sum()) + np.repeat(start - before, length)
    return np.repeat(sentence, length), row


def _token_offset(sentence: NDArray[np.int64], n_sentence: int) -> NDArray[np.int64]:
    """First token of each sentence, [sentence + 1], from the sentence of each token."""
    counts = np.bincount(sentence, minlength=n_sentence)
    return np.concatenate([[0], np.cumsum(counts)])


def _by_sentence(token_ids: Sequence[int], offset: NDArray[np.int64]) -> list[Sequence[int]]:
    return [token_ids[first:last] for first, last in pairwise(offset.tolist())]
