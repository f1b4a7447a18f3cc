"""Alignment of hypothesis words with reference words, and which of them it makes errors.

A path is a text of steps, one a character: `C` a correct word, `S` a substitution, `I` an insertion
(a hypothesis word too many), `D` a deletion (a reference word that is missing).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from pipeline.errors import MachineError

_PATH = re.compile(r'<PATH id="\(s_(\d+)\)"[^>]*>\n(.*?)</PATH>', re.DOTALL)


def sclite_paths(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> list[str]:
    """The path of each sentence (see pipeline.quality.alignment) as sclite aligns it.

    Words are handed over as numbers, so that none can be read as a sign of its file format. Raises
    MachineError where the tool is missing or fails.
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
        command = [*_program(), "-s", *files, "-i", "spu_id", "-o", "sgml", "stdout"]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    steps = {int(number): body for number, body in _PATH.findall(result.stdout)}
    if result.returncode or len(steps) != len(references):
        reason = " ".join((result.stderr or result.stdout).split())[:200]
        raise MachineError(
            f"metrics.aligner: sclite must align {len(references)} sentences, "
            f"got {len(steps)}: {reason}"
        )
    return [
        "".join(step[0] for step in steps[sentence].strip().split(":") if step)
        for sentence in range(len(references))
    ]


def _program() -> list[str]:
    """The command, as Debian's package wraps it or by its own name."""
    if shutil.which("sctk"):
        return ["sctk", "sclite"]
    if shutil.which("sclite"):
        return ["sclite"]
    raise MachineError(
        "metrics.aligner=sclite needs the program sctk, got none: install the Debian package sctk, "
        "or use metrics.aligner=nist, which aligns alike"
    )


Words = Sequence[str]
# (references, hypotheses), each [sentence] of words -> paths [sentence]
Aligner = Callable[[Sequence[Words], Sequence[Words]], list[str]]

# The weights of NIST's scoring tool: one substitution is cheaper than a deletion and an insertion.
_SUBSTITUTION, _INSERTION, _DELETION = 4, 3, 3


def nist_path(reference: Words, hypothesis: Words) -> str:
    """The cheapest path at weights 4, 3, 3 for substitution, insertion, deletion.

    Of equally cheap ones it is that of sclite: going back from the end, a pair of words is taken
    before an insertion, and that before a deletion.
    """
    cost = _costs(reference, hypothesis)
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
    """`nist_path` of each sentence."""
    return [nist_path(*pair) for pair in zip(references, hypotheses, strict=True)]


def levenshtein_paths(references: Sequence[Words], hypotheses: Sequence[Words]) -> list[str]:
    """A path of fewest edits of each sentence, as rapidfuzz finds it."""
    from rapidfuzz.distance import Levenshtein

    letters = {"equal": "C", "replace": "S", "insert": "I", "delete": "D"}
    paths = []
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        path = ""
        for block in Levenshtein.opcodes(reference, hypothesis):
            length = max(block.src_end - block.src_start, block.dest_end - block.dest_start)
            path += letters[block.tag] * length
        paths.append(path)
    return paths


ALIGNERS: dict[str, Aligner] = {
    "sclite": sclite_paths,
    "nist": nist_paths,
    "levenshtein": levenshtein_paths,
}


def wrong_words(path: str) -> list[bool]:
    """Of each hypothesis word, whether it is a substitution or an insertion."""
    return [step != "C" for step in path if step != "D"]


def missing_before(path: str) -> list[bool]:
    """Of each hypothesis word, and of the end, whether a reference word is missing right before."""
    steps = f" {path}"
    after = [before == "D" for before, step in pairwise(steps) if step != "D"]
    return [*after, steps[-1] == "D"]


def word_of_token(pieces: Sequence[str]) -> list[int]:
    """The word that each sub-word piece stands in, counted from 0.

    `▁` is white space. A piece that reaches into several words belongs to the first of them, one of
    white space alone to the word that follows it, or to the last where none does; where there is
    no word at all, it has the number -1.
    """
    n_word, in_word = 0, False
    words = []
    for piece in pieces:
        first = None
        for character in piece.replace("▁", " "):
            if character.isspace():
                in_word = False
                continue
            n_word += not in_word
            in_word = True
            first = n_word - 1 if first is None else first
        words.append(n_word if first is None else first)
    return [min(word, n_word - 1) for word in words]


def _costs(reference: Words, hypothesis: Words) -> list[list[int]]:
    """Of the cheapest path between the beginnings of two texts, [reference + 1][hypothesis + 1]."""
    rows = [[_INSERTION * column for column in range(len(hypothesis) + 1)]]
    number = {word: place for place, word in enumerate(dict.fromkeys([*reference, *hypothesis]))}
    said = np.array([number[word] for word in hypothesis], dtype=np.int64)
    for word in reference:
        above = rows[-1]
        pairs = np.where(said == number[word], 0, _SUBSTITUTION).tolist()
        row = [above[0] + _DELETION]
        for column, pair in enumerate(pairs):
            row.append(
                min(above[column] + pair, row[column] + _INSERTION, above[column + 1] + _DELETION)
            )
        rows.append(row)
    return rows
