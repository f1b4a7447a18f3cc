"""Cells of token-level error detection: average precision against labels of an alignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.alignment import ALIGNERS, word_of_token, wrong_words
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.group import scorable_in_all, shared_cell
from pipeline.metrics.rules import PrecisionRule, precision_rules
from pipeline.metrics.statistic import FloatArray, Statistic, ratio

_EOS = 2
# fairseq's own symbols come before those of the file.
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_POSITION_COLUMNS = ("sentence_id", "hypothesis", "position", "token_id")


@dataclass(frozen=True)
class TokenRules:
    """How tokens are labelled: one of ALIGNERS, whether EOS takes part, and the text of each id."""

    aligner: str
    with_eos: bool
    pieces: Sequence[str]


@dataclass(frozen=True)
class MeasuredTokens:
    """A decode and the tokens of its best hypotheses: token.parquet's columns, a row a token."""

    decode: Decode
    tokens: pd.DataFrame


@dataclass(frozen=True)
class TokenLabels:
    """Of the scored sentences: which tokens are errors, and the words that are missing.

    `row`, `sentence` and `wrong` [token]: the row in the table of tokens, the place among the
    scored sentences, the label; `deleted` and `reference_words` [sentence].
    """

    row: NDArray[np.int64]
    sentence: NDArray[np.int64]
    wrong: NDArray[np.bool_]
    deleted: FloatArray
    reference_words: FloatArray


def token_rules(dictionary: Path, aligner: str, with_eos: bool) -> TokenRules | None:
    """The rules, with the pieces of a dictionary of fairseq's; None where there is no such file."""
    if not dictionary.is_file():
        return None
    with dictionary.open(encoding="utf-8", newline="\n") as file:
        pieces = [line.rstrip("\n").rpartition(" ")[0] for line in file]
    return TokenRules(aligner, with_eos, [*_SPECIAL, *pieces])


def read_tokens(path: Path) -> pd.DataFrame:
    """The tokens of the best hypotheses of a token.parquet; DataError where there is no file."""
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.uncertainty first")
    frame = pd.read_parquet(path, filters=[("hypothesis", "==", 0)])
    return frame.sort_values(["sentence_id", "position"], ignore_index=True)


def token_labels(
    measured: MeasuredTokens, used: NDArray[np.bool_], rules: TokenRules
) -> TokenLabels:
    """Label the tokens of the sentences in use, [sentence] of the test set.

    Substituted and inserted words are errors, and so is every token of such a word; a missing word
    has no token and is counted apart. EOS, where it takes part, is an error where the reference
    goes on. Raises DataError where tokens are not those of the hypothesis.
    """
    places = np.flatnonzero(used)
    decode = measured.decode
    said = [str(decode.texts[i]).split() for i in places]
    meant = [str(decode.references[i]).split() for i in places]
    paths = ALIGNERS[rules.aligner](meant, said)
    ids = measured.tokens["token_id"].to_numpy()
    bounds = np.searchsorted(measured.tokens["sentence_id"].to_numpy(), [places, places + 1])
    rows: list[int] = []
    sentences: list[int] = []
    labels: list[bool] = []
    for sentence, path in enumerate(paths):
        wrong = wrong_words(path)
        own = range(*bounds[:, sentence])
        finished = bool(own) and ids[own[-1]] == _EOS
        words = word_of_token([rules.pieces[ids[row]] for row in own[: len(own) - finished]])
        if max(words, default=-1) + 1 != len(wrong):
            raise DataError(
                f"{decode.path}: the tokens of sentence {places[sentence]} must spell the "
                f"{len(wrong)} words of its text, got {max(words, default=-1) + 1}"
            )
        label = [wrong[word] for word in words]
        if finished and rules.with_eos:
            label.append(path.endswith("D"))
        rows += own[: len(label)]
        sentences += [sentence] * len(label)
        labels += label
    return TokenLabels(
        np.array(rows, dtype=np.int64),
        np.array(sentences, dtype=np.int64),
        np.array(labels, dtype=bool),
        np.array([path.count("D") for path in paths], dtype=np.float64),
        np.array([len(words) for words in meant], dtype=np.float64),
    )


def token_error_cells(
    group: Sequence[MeasuredTokens], rules: TokenRules | None, evaluation: Evaluation
) -> Iterator[Cell]:
    """Average precision in percent of every token measure, the token error rate and deletions.

    `group` holds the decodes of one key, of which the mean is taken. Source:
    `tab:token-error-detection`; its baseline is the token error rate.
    """
    decodes = [one.decode for one in group]
    used = scorable_in_all(decodes)
    shared = shared_cell(decodes)
    names = [str(name) for name in group[0].tokens if name not in _POSITION_COLUMNS]
    rate = replace(shared, column="token_error_rate_percent", metric="percent")
    deletions = replace(shared, column="deleted_words_percent", metric="percent")
    of_measures = [
        (replace(shared, column=name, metric=rule.metric), rule)
        for rule in precision_rules(evaluation.rules)
        for name in names
    ]
    if rules is None or not used.any():
        why = decodes[0].why_not_scorable if rules else "the dictionary of tokens is missing"
        yield from (
            replace(cell, reason=why)
            for cell in (*(cell for cell, _ in of_measures), rate, deletions)
        )
        return
    labels = [token_labels(one, used, rules) for one in group]
    weights = evaluation.weights(used)
    eos = "include" if rules.with_eos else "exclude"
    signature = f"align:{rules.aligner}|eos:{eos}|case:mixed"
    for cell, rule in of_measures:
        statistics = [
            _on_sentences(rule, one.tokens[cell.column].to_numpy(dtype=np.float64), label)
            for one, label in zip(group, labels, strict=True)
        ]
        signed = f"{evaluation.measures_signature}; {rule.signature}|{signature}"
        filled = evaluation.mean_filled(cell, statistics, weights, signed)
        none = filled.value is None
        yield replace(filled, reason="no token is an error") if none else filled
    filled = evaluation.mean_filled(
        rate, [_error_rate(one) for one in labels], weights, f"TER|{signature}"
    )
    yield replace(filled, reason="no token") if filled.value is None else filled
    filled = evaluation.mean_filled(
        deletions, [_deletion_rate(one) for one in labels], weights, f"deletions|{signature}"
    )
    yield replace(filled, reason="no reference word") if filled.value is None else filled


def _on_sentences(rule: PrecisionRule, uncertainty: FloatArray, labels: TokenLabels) -> Statistic:
    """The score of tokens as a function of the weights of their sentences."""
    of_tokens = rule.statistic(labels.wrong, uncertainty[labels.row])
    return lambda weights: of_tokens(weights[:, labels.sentence])


def _error_rate(labels: TokenLabels) -> Statistic:
    n_sentence = len(labels.deleted)
    wrong = np.bincount(labels.sentence, labels.wrong, minlength=n_sentence)
    tokens = np.bincount(labels.sentence, minlength=n_sentence).astype(np.float64)
    return lambda weights: 100 * ratio(weights @ wrong, weights @ tokens)


def _deletion_rate(labels: TokenLabels) -> Statistic:
    return lambda weights: 100 * ratio(weights @ labels.deleted, weights @ labels.reference_words)
