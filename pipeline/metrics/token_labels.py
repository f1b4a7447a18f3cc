"""Which tokens of hypotheses are errors, and before which of them a word is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.decodes import Decode, measure_table
from pipeline.quality.alignment import ALIGNERS, missing_before, word_of_token, wrong_words
from pipeline.quality.statistic import FloatArray

# fairseq's own symbols, whose ids come before those of the file.
SPECIAL_UNITS = ("<s>", "<pad>", "</s>", "<unk>")


def read_units(path: Path) -> list[str]:
    """The unit of every token id: [vocab]; `path` is a dict.{language}.txt."""
    with path.open(encoding="utf-8", newline="\n") as file:
        # A unit holds no space; its count, and perhaps a flag, follow it.
        return [*SPECIAL_UNITS, *(line.split(" ")[0] for line in file)]


_EOS = 2


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
class Marked:
    """Tokens, or words, to be told apart by a label, each [token].

    `row` is that in the table of tokens (the first one of a word), `sentence` the place among the
    scored sentences, `wrong` the label.
    """

    row: NDArray[np.int64]
    sentence: NDArray[np.int64]
    wrong: NDArray[np.bool_]

    def at(self, places: NDArray[np.int64]) -> Marked:
        """Those at some places."""
        return Marked(self.row[places], self.sentence[places], self.wrong[places])


@dataclass(frozen=True)
class TokenLabels:
    """Of the scored sentences: which tokens are errors, and where words are missing.

    `tokens` are marked as errors; `word` [token] numbers their words over all sentences, EOS being
    one of its own. `openings` are the tokens that begin a word, and every EOS, marked where a
    reference word is missing right before. `deleted` and `reference_words` [sentence].
    """

    tokens: Marked
    word: NDArray[np.int64]
    openings: Marked
    deleted: FloatArray
    reference_words: FloatArray


def token_rules(dictionary: Path, aligner: str, with_eos: bool) -> TokenRules | None:
    """The rules, with the pieces of a dictionary of fairseq's; None where there is no such file."""
    if not dictionary.is_file():
        return None
    return TokenRules(aligner, with_eos, read_units(dictionary))


def read_tokens(path: Path) -> pd.DataFrame:
    """The tokens of the best hypotheses of a token.parquet; DataError where it is not whole."""
    order = ["sentence_id", "position"]
    frame = measure_table(path, [*order, "token_id"], filters=[("hypothesis", "==", 0)])
    return frame.sort_values(order, ignore_index=True)


def token_labels(
    measured: MeasuredTokens, used: NDArray[np.bool_], rules: TokenRules
) -> TokenLabels:
    """Label the tokens of the sentences in use, [sentence] of the test set.

    Substituted and inserted words are errors, and so is every token of such a word; a missing word
    has no token and is counted apart. EOS, where it takes part, is an error where the reference
    goes on; a word missing at the end of a hypothesis without EOS is before no token. Raises
    DataError where tokens are not those of the hypothesis.
    """
    places = np.flatnonzero(used)
    decode = measured.decode
    said = [str(decode.texts[i]).split() for i in places]
    meant = [str(decode.references[i]).split() for i in places]
    paths = ALIGNERS[rules.aligner](meant, said)
    ids = measured.tokens["token_id"].to_numpy()
    bounds = np.searchsorted(measured.tokens["sentence_id"].to_numpy(), [places, places + 1])
    tokens: list[tuple[int, int, bool]] = []
    openings: list[tuple[int, int, bool]] = []
    word: list[int] = []
    for sentence, path in enumerate(paths):
        # EOS is the word behind the last one.
        wrong, missing = [*wrong_words(path), path.endswith("D")], missing_before(path)
        own = range(*bounds[:, sentence])
        finished = bool(own) and bool(ids[own[-1]] == _EOS)
        words = word_of_token([rules.pieces[ids[row]] for row in own[: len(own) - finished]])
        n_word = max(words, default=-1) + 1
        if n_word != len(wrong) - 1:
            raise DataError(
                f"{decode.path}: the tokens of sentence {places[sentence]} must spell the "
                f"{len(wrong) - 1} words of its text, got {n_word}"
            )
        words += [n_word] * finished
        # White space alone is no word and takes no part.
        spelling = [(row, one) for row, one in zip(own, words, strict=True) if one >= 0]
        first = {one: row for row, one in reversed(spelling)}
        openings += [(first[one], sentence, missing[one]) for one in sorted(first)]
        scored = spelling if rules.with_eos else spelling[: len(spelling) - finished]
        tokens += [(row, sentence, wrong[one]) for row, one in scored]
        so_far = word[-1] + 1 if word else 0
        word += [so_far + one for _, one in scored]
    return TokenLabels(
        _marked(tokens),
        np.array(word, dtype=np.int64),
        _marked(openings),
        np.array([path.count("D") for path in paths], dtype=np.float64),
        np.array([len(words) for words in meant], dtype=np.float64),
    )


def _marked(marks: Sequence[tuple[int, int, bool]]) -> Marked:
    rows, sentences, wrong = zip(*marks, strict=True) if marks else ((), (), ())
    return Marked(
        np.array(rows, dtype=np.int64),
        np.array(sentences, dtype=np.int64),
        np.array(wrong, dtype=bool),
    )
