"""Alignment of hypothesis words with reference words, and the errors that it marks.

An alignment path is a string with one letter per step: `C` for a correct word, `S` for a
substitution, `I` for an insertion (an extra hypothesis word), `D` for a deletion (a missing
reference word).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.errors import MachineError

Words = Sequence[str]
# (references, hypotheses), each [sentence] of words -> paths [sentence]
Aligner = Callable[[Sequence[Words], Sequence[Words]], list[str]]

# Costs in NIST's scoring tool: a substitution costs less than a deletion plus an insertion.
_SUBSTITUTION, _INSERTION, _DELETION = 4, 3, 3
_LETTERS = {"equal": "C", "substitute": "S", "insert": "I", "delete": "D"}
_SCLITE_PATH = re.compile(r'<PATH id="\(s_(\d+)\)"[^>]*>\n(.*?)</PATH>', re.DOTALL)


def levenshtein_paths(references: Sequence[Words], hypotheses: Sequence[Words]) -> list[str]:
    """Paths with the fewest edits, as jiwer aligns words; words contain no spaces."""
    import jiwer

    reference_texts, hypothesis_texts = (
        [" ".join(words) for words in side] for side in (references, hypotheses)
    )
    split = jiwer.ReduceToListOfListOfWords()
    return _jiwer_paths(reference_texts, hypothesis_texts, jiwer.process_words, split)


def character_paths(references: Sequence[str], hypotheses: Sequence[str]) -> list[str]:
    """Paths with the fewest edits of characters, as jiwer aligns them; spaces count."""
    import jiwer

    process, split = jiwer.process_characters, jiwer.ReduceToListOfListOfChars()
    return _jiwer_paths(list(references), list(hypotheses), process, split)


def _jiwer_paths(
    references: list[str], hypotheses: list[str], process: Callable[..., Any], split: Any
) -> list[str]:
    if not references:  # jiwer takes no sentences for one empty sentence
        return []
    return [
        "".join(
            _LETTERS[chunk.type]
            * max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)
            for chunk in chunks
        )
        for chunks in process(references, hypotheses, split, split).alignments
    ]


def nist_path(reference: Words, hypothesis: Words) -> str:
    """The cheapest path with costs 4, 3 and 3 for substitution, insertion and deletion.

    Among paths of equal cost it chooses the same one as sclite: traced back from the end, a pair of
    words is preferred to an insertion, and an insertion to a deletion.
    """
    cost = _path_costs(reference, hypothesis)
    row, column = len(reference), len(hypothesis)
    steps = []
    while row or column:
        here = cost[row][column]
        same = row > 0 and column > 0 and reference[row - 1] == hypothesis[column - 1]
        pair = 0 if same else _SUBSTITUTION
        if row and column and here == cost[row - 1][column - 1] + pair:
            steps.append("C" if same else "S")
            row, column = row - 1, column - 1
        elif column and here == cost[row][column - 1] + _INSERTION:
            steps.append("I")
            column -= 1
        else:
            steps.append("D")
            row -= 1
    return "".join(reversed(steps))


def nist_paths(references: Sequence[Words], hypotheses: Sequence[Words]) -> list[str]:
    """Compute `nist_path` of each sentence."""
    return [nist_path(*pair) for pair in zip(references, hypotheses, strict=True)]


def _path_costs(reference: Words, hypothesis: Words) -> list[list[int]]:
    """Cost of the cheapest path between all prefixes, [reference + 1][hypothesis + 1]."""
    rows = [[_INSERTION * column for column in range(len(hypothesis) + 1)]]
    number = {word: index for index, word in enumerate(dict.fromkeys([*reference, *hypothesis]))}
    hypothesis_numbers = np.array([number[word] for word in hypothesis], dtype=np.int64)
    for word in reference:
        above = rows[-1]
        pairs = np.where(hypothesis_numbers == number[word], 0, _SUBSTITUTION).tolist()
        row = [above[0] + _DELETION]
        for column, pair in enumerate(pairs):
            row.append(
                min(above[column] + pair, row[column] + _INSERTION, above[column + 1] + _DELETION)
            )
        rows.append(row)
    return rows


def sclite_paths(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> list[str]:
    """Paths of the alignments by the program sclite.

    Words are passed to it as numbers, so that no word is read as markup of its file format. Raises
    MachineError if the program is missing or fails.
    """
    if not references:
        return []
    numbers: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, texts in (("reference", references), ("hypothesis", hypotheses)):
            lines = []
            for sentence, words in enumerate(texts):
                coded = (f"w{numbers.setdefault(word, len(numbers))}" for word in words)
                lines.append(f"{' '.join(coded)} (s_{sentence})\n")
            (Path(folder) / name).write_text("".join(lines), encoding="ascii", newline="\n")
        files = ["-r", "reference", "trn", "-h", "hypothesis", "trn"]
        command = [*_sclite_command(), "-s", *files, "-i", "spu_id", "-o", "sgml", "stdout"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    steps = {int(number): body for number, body in _SCLITE_PATH.findall(result.stdout)}
    if result.returncode or len(steps) != len(references):
        reason = " ".join((result.stderr or result.stdout).split())[:200]
        raise MachineError(
            f"metrics.aligner=sclite: sclite aligned {len(steps)} of {len(references)} sentences "
            f"({reason}). Use metrics.aligner=nist, which gives the same alignments."
        )
    return [
        "".join(step[0] for step in steps[sentence].strip().split(":") if step)
        for sentence in range(len(references))
    ]


def _sclite_command() -> list[str]:
    """The command under the name of Debian's wrapper, or under its own name."""
    if shutil.which("sctk"):
        return ["sctk", "sclite"]
    if shutil.which("sclite"):
        return ["sclite"]
    raise MachineError(
        "metrics.aligner=sclite: neither sctk nor sclite is installed. Install the Debian package "
        "sctk, or use metrics.aligner=nist, which gives the same alignments."
    )


ALIGNERS: dict[str, Aligner] = {
    "sclite": sclite_paths,
    "nist": nist_paths,
    "levenshtein": levenshtein_paths,
}


def wrong_words(path: str) -> list[bool]:
    """Whether each hypothesis word is a substitution or an insertion."""
    return [step != "C" for step in path if step != "D"]


def missing_before(path: str) -> list[bool]:
    """Whether a reference word is missing right before each hypothesis word, and before the end."""
    steps = f" {path}"
    after = [before == "D" for before, step in pairwise(steps) if step != "D"]
    return [*after, steps[-1] == "D"]


def word_of_token(subwords: Sequence[str]) -> list[int]:
    """Index of the word that each subword belongs to, counted from 0.

    `▁` is white space. A subword that spans several words belongs to the first of them. A subword
    that is only white space belongs to the next word, or to the last word if no word follows; its
    index is -1 if there is no word at all.
    """
    n_word, in_word = 0, False
    words = []
    for subword in subwords:
        first = None
        for character in subword.replace("▁", " "):
            if character.isspace():
                in_word = False
                continue
            n_word += not in_word
            in_word = True
            first = n_word - 1 if first is None else first
        words.append(n_word if first is None else first)
    return [min(word, n_word - 1) for word in words]
