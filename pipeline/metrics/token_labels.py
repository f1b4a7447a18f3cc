"""Labels of tokens: which of them are errors, and before which of them a word is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.metrics.decodes import Decode
from pipeline.metrics.measure_files import read_measure_table
from pipeline.quality.alignment import ALIGNERS, missing_before, word_of_token, wrong_words
from pipeline.quality.transcripts import AS_DECODED, compared
from pipeline.quality.weighted_metric import FloatArray
from pipeline.run.files import read_json

# Special symbols of fairseq. Their ids come before the ids of the entries of a dictionary file.
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")
_EOS = SPECIAL_TOKENS.index("</s>")


def read_vocabulary(path: Path) -> list[str]:
    """The subword of every token id, [vocab], from a fairseq dictionary dict.{language}.txt."""
    with path.open(encoding="utf-8", newline="\n") as file:
        # A subword has no space; its count, and possibly a flag, follow.
        return [*SPECIAL_TOKENS, *(line.split(" ")[0] for line in file)]


@dataclass(frozen=True)
class OwnVocabulary:
    """The vocabulary of an ensemble with a tokenizer of its own.

    pieces: the text of every token id, [vocab], with ▁ for spaces. eos: the id of EOS. control: ids
    that are no part of a text.
    """

    pieces: Sequence[str]
    eos: int
    control: Sequence[int]


def own_vocabulary(decode: Path, ensemble: str) -> OwnVocabulary | None:
    """The vocabulary of an ensemble in vocabulary.json of a folder of decodes, None without one."""
    path = decode / "vocabulary.json"
    content: dict[str, Any] = read_json(path, "decode") if path.is_file() else {}
    return OwnVocabulary(**content[ensemble]) if ensemble in content else None


@dataclass(frozen=True)
class TokenRules:
    """The rules of labelling tokens: a name of ALIGNERS, whether EOS counts, and the subwords.

    eos: the id of EOS. is_own: whether a tokenizer of the ensemble's own has made the texts.
    transcripts: what of the texts is aligned, as in metrics.transcripts.
    """

    aligner: str
    with_eos: bool
    subwords: Sequence[str]
    eos: int = _EOS
    is_own: bool = False
    transcripts: str = AS_DECODED


class UnspelledTextError(DataError):
    """The tokens of a hypothesis spell another number of words than its text has."""


@dataclass(frozen=True)
class MeasuredTokens:
    """A decode and the tokens of its best hypotheses, with the columns of token.parquet."""

    decode: Decode
    tokens: pd.DataFrame


@dataclass(frozen=True)
class LabelledTokens:
    """Labels of tokens, or of words, each [token].

    `row` is the row in the table of tokens (of a word, its first token), `sentence` the index among
    the scored sentences, and `wrong` the label.
    """

    row: NDArray[np.int64]
    sentence: NDArray[np.int64]
    wrong: NDArray[np.bool_]

    def at(self, indices: NDArray[np.int64]) -> LabelledTokens:
        """The labels at some indices."""
        return LabelledTokens(self.row[indices], self.sentence[indices], self.wrong[indices])


@dataclass(frozen=True)
class TokenLabels:
    """Labels of the scored sentences.

    `tokens` are labelled as errors. `word` [token] numbers their words over all sentences, with EOS
    as a word of its own. `deletion_sites` are the first token of each word and every EOS, labelled
    as wrong if a reference word is missing right before. `deleted` and `reference_words` are word
    counts [sentence].
    """

    tokens: LabelledTokens
    word: NDArray[np.int64]
    deletion_sites: LabelledTokens
    deleted: FloatArray
    reference_words: FloatArray


def token_rules(
    dictionary: Path, aligner: str, with_eos: bool, transcripts: str = AS_DECODED
) -> Callable[[Decode], TokenRules | None]:
    """The rules for a decode: with its own vocabulary, or with that of a fairseq dictionary.

    They are None for a decode without its own vocabulary if there is no such file.
    """

    @cache
    def rules_of(decodes: Path, ensemble: str) -> TokenRules | None:
        own = own_vocabulary(decodes, ensemble)
        if own is not None:
            pieces = list(own.pieces)
            for token in own.control:
                pieces[token] = ""
            return TokenRules(aligner, with_eos, pieces, own.eos, True, transcripts)
        if not dictionary.is_file():
            return None
        return TokenRules(aligner, with_eos, read_vocabulary(dictionary), transcripts=transcripts)

    return lambda decode: rules_of(decode.path.parent.parent, decode.cell.ensemble)


def read_tokens(path: Path) -> pd.DataFrame:
    """The tokens of the best hypotheses in a token.parquet; DataError if it is incomplete."""
    order = ["sentence_id", "position"]
    frame = read_measure_table(path, [*order, "token_id"], filters=[("hypothesis", "==", 0)])
    return frame.sort_values(order, ignore_index=True)


def token_labels(
    measured: MeasuredTokens, used: NDArray[np.bool_], rules: TokenRules
) -> TokenLabels:
    """Label the tokens of the sentences in use, [sentence] of the test set.

    Substituted and inserted words are errors, and so is every token of such a word. A missing word
    has no token and is counted separately. EOS, if it takes part, is an error where the reference
    continues. A word missing at the end of a hypothesis without EOS has no deletion site. If
    transcripts are compared by their words, "half-time" is two of them and "-" none: the former is
    an error if any of its words is, and the tokens of the latter are left out. Raises
    UnspelledTextError if the tokens do not spell the hypothesis.
    """
    sentences = np.flatnonzero(used)
    decode = measured.decode
    texts, references = decode.scored_texts(used)
    reference_words = [text.split() for text in compared(references, rules.transcripts)]
    # [sentence][word of the hypothesis] -> the words that it is compared as
    hypothesis_words = [
        [words.split() for words in compared(text.split(), rules.transcripts)] for text in texts
    ]
    aligned = [[*chain.from_iterable(words)] for words in hypothesis_words]
    paths = ALIGNERS[rules.aligner](reference_words, aligned)
    ids = measured.tokens["token_id"].to_numpy()
    bounds = np.searchsorted(measured.tokens["sentence_id"].to_numpy(), [sentences, sentences + 1])
    tokens: list[tuple[int, int, bool]] = []
    deletion_sites: list[tuple[int, int, bool]] = []
    word_of_label: list[int] = []
    for sentence, path in enumerate(paths):
        labels = _word_labels(path, [len(words) for words in hypothesis_words[sentence]])
        rows = range(*bounds[:, sentence])
        finished = bool(rows) and bool(ids[rows[-1]] == rules.eos)
        words = word_of_token([rules.subwords[ids[row]] for row in rows[: len(rows) - finished]])
        n_word = max(words, default=-1) + 1
        if n_word != len(labels) - 1:
            raise UnspelledTextError(
                f"{decode.path}: the tokens of sentence {sentences[sentence]} spell {n_word} words "
                f"and its text has {len(labels) - 1}. Run python -m stages.decode and "
                "stages.uncertainty again."
            )
        words += [n_word] * finished
        # Tokens that are only white space belong to no word and are ignored.
        spelling = [
            (row, word, label)
            for row, word in zip(rows, words, strict=True)
            if word >= 0 and (label := labels[word])
        ]
        first = {word: (row, label) for row, word, label in reversed(spelling)}
        deletion_sites += [
            (row, sentence, missing) for _, (row, (_, missing)) in sorted(first.items())
        ]
        scored = spelling if rules.with_eos else spelling[: len(spelling) - finished]
        tokens += [(row, sentence, wrong) for row, _, (wrong, _) in scored]
        n_before = word_of_label[-1] + 1 if word_of_label else 0
        word_of_label += [n_before + word for _, word, _ in scored]
    return TokenLabels(
        _labelled(tokens),
        np.array(word_of_label, dtype=np.int64),
        _labelled(deletion_sites),
        np.array([path.count("D") for path in paths], dtype=np.float64),
        np.array([len(words) for words in reference_words], dtype=np.float64),
    )


def _word_labels(path: str, lengths: Sequence[int]) -> list[tuple[bool, bool] | None]:
    """Whether each word is an error and whether a reference word is missing before it; then EOS.

    lengths [word]: how many aligned words it is compared as; None stands for a word of none. EOS
    counts as the word after the last one.
    """
    wrong, missing = [*wrong_words(path), path.endswith("D")], missing_before(path)
    bounds = accumulate((*lengths, 1), initial=0)
    return [
        (any(wrong[start:end]), any(missing[start:end])) if start < end else None
        for start, end in pairwise(bounds)
    ]


def _labelled(labels: Sequence[tuple[int, int, bool]]) -> LabelledTokens:
    rows, sentences, wrong = zip(*labels, strict=True) if labels else ((), (), ())
    return LabelledTokens(
        np.array(rows, dtype=np.int64),
        np.array(sentences, dtype=np.int64),
        np.array(wrong, dtype=bool),
    )
