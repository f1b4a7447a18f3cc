"""NIST's scoring tool sclite, as an aligner of words."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import MachineError

_PATH = re.compile(r'<PATH id="\(s_(\d+)\)"[^>]*>\n(.*?)</PATH>', re.DOTALL)


def sclite_paths(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]
) -> list[str]:
    """The path of each sentence (see pipeline.metrics.alignment) as sclite aligns it.

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
