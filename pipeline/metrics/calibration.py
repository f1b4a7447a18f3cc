"""Calibration: whether what is decoded with probability p is right in the fraction p of cases.

Of a token: the probability that the posterior which decoded gave it, against whether the token
stands at a matching place in a Levenshtein alignment of the hypothesis to the reference, both as
sub-word units with EOS. In translation a right token may stand elsewhere: such tokens count as
wrong, as in any comparison with one reference.
Of a sentence: the geometric mean of those probabilities, against its graded quality in [0, 1]:
sentence BLEU, or 1 - WER and 0 where WER exceeds 1. Quality is no probability of being right, so
the level of this gap tells less than how it differs between systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode, groups_by, measure_table, shared_cell
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.ranking import scores
from pipeline.quality.kinds import Quality
from pipeline.quality.statistic import FloatArray, Statistic, point, ratio
from pipeline.store import open_store

N_BIN = 10


@dataclass(frozen=True)
class Forecasts:
    """What a system said and how it turned out, a row an item (a token, or a sentence).

    `confidence` and `right` [item] in [0, 1]; `sentence` [item]: the place of its sentence.
    """

    confidence: FloatArray
    right: FloatArray
    sentence: NDArray[np.integer]

    @property
    def bin(self) -> NDArray[np.intp]:
        """Which of `N_BIN` bins of equal width the confidence falls in; 1 is in the last."""
        return np.minimum((self.confidence * N_BIN).astype(np.intp), N_BIN - 1)


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike) -> float:
    """Mean gap in percent between confidence and accuracy, over ten bins of equal width.

    Both [item] in [0, 1]; a bin counts by its items. NaN for no item. Raises DataError for unequal
    lengths, NaN and values outside [0, 1].
    """
    one = forecasts(confidence, right, np.arange(np.size(np.asarray(confidence))))
    return point(calibration_statistic(one, len(one.confidence)), len(one.confidence))


def forecasts(confidence: ArrayLike, right: ArrayLike, sentence: NDArray[np.integer]) -> Forecasts:
    """Checked forecasts; DataError for unequal lengths, NaN and values outside [0, 1]."""
    said, turned_out = scores("confidence", confidence), scores("right", right)
    if not len(said) == len(turned_out) == len(sentence):
        raise DataError(
            "confidence, right and sentence must have one value for the same items, "
            f"got {len(said)}, {len(turned_out)} and {len(sentence)}"
        )
    for name, values in (("confidence", said), ("right", turned_out)):
        if len(values) and not 0 <= values.min() <= values.max() <= 1:
            raise DataError(
                f"{name} must lie in [0, 1], got {values.min():.6g} to {values.max():.6g}"
            )
    return Forecasts(said, turned_out, np.asarray(sentence))


def calibration_statistic(given: Forecasts, n_sentence: int) -> Statistic:
    """Expected calibration error in percent as a function of weights [resample, sentence]."""
    place = given.sentence * N_BIN + given.bin
    gap = np.bincount(place, given.right - given.confidence, n_sentence * N_BIN)
    by_bin = gap.reshape(n_sentence, N_BIN)
    items = np.bincount(given.sentence, minlength=n_sentence).astype(np.float64)

    def error(weights: FloatArray) -> FloatArray:
        return 100 * ratio(np.abs(weights @ by_bin).sum(axis=1), weights @ items)

    return error


@dataclass(frozen=True)
class ReliabilityBin:
    """The items whose confidence lies in [low, high): how many, how sure, how right (means)."""

    low: float
    high: float
    n: int
    confidence: float
    right: float


def reliability(given: Forecasts) -> list[ReliabilityBin]:
    """The bins of a reliability diagram that hold an item, from the lowest to the highest."""
    n = np.bincount(given.bin, minlength=N_BIN)
    confidence = np.bincount(given.bin, given.confidence, N_BIN)
    right = np.bincount(given.bin, given.right, N_BIN)
    return [
        ReliabilityBin(
            place / N_BIN,
            (place + 1) / N_BIN,
            int(n[place]),
            float(confidence[place] / n[place]),
            float(right[place] / n[place]),
        )
        for place in np.flatnonzero(n)
    ]


def matches(hypothesis: Sequence[int], reference: Sequence[int]) -> NDArray[np.bool_]:
    """Which tokens of a hypothesis a shortest edit to the reference keeps: [token]."""
    from rapidfuzz.distance import Levenshtein

    kept = np.zeros(len(hypothesis), dtype=bool)
    for tag, first, last, _, _ in Levenshtein.opcodes(hypothesis, reference):
        if tag == "equal":
            kept[first:last] = True
    return kept


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
