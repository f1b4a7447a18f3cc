"""Preparing text: speed and memory of the filters, and the whole stage for both pairs."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.data.debian_packages import TESTED_VERSIONS, find_packages
from pipeline.data.text.cleaning import (
    CleaningRules,
    NearDuplicates,
    SeenTexts,
    clean,
    learn_profile,
)
from pipeline.data.text.corpus import AlignedSentence, align
from pipeline.data.text.user_files import read_user_files
from pipeline.run.settings import ROOT
from tests.bench.measurement import Measurement, alternating_seconds

N_LINE, N_HELD_OUT, N_SEEN, N_WORD = 50_000, 4_000, 1_000_000, 20_000
TASKS = ("nmt_ende", "nmt_enfr")
_NO_DIGITS = str.maketrans("0123456789", "ghijklmnop")
PEAK = """
import resource, sys
from tests.bench.prepare import filtered, learnt
n_pair = sum(1 for _ in filtered(sys.argv[1], *learnt(sys.argv[1])))
print(n_pair, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure() -> list[Measurement]:
    """Measure the speed and memory of the filters on one core, and prepare for both pairs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        prefix = str(_write(folder / "text", N_LINE))
        rules, indices = learnt(prefix)
        reading, filtering = alternating_seconds(
            lambda: sum(1 for _ in _read(prefix)),
            lambda: sum(1 for _ in filtered(prefix, rules, indices)),
        )
        peaks = [_peak_bytes(str(_write(folder / f"{n}", n))) for n in (N_LINE, 4 * N_LINE)]
    pairs = f"pairs of {N_LINE}, near-duplicates of {N_HELD_OUT}"
    return [
        Measurement(f"filters, {pairs}", N_LINE / filtering, "pairs/s"),
        Measurement("filters, lines of text", 2 * N_LINE / filtering, "lines/s", ">= 50000"),
        Measurement("reading only", 2 * N_LINE / reading, "lines/s"),
        Measurement(
            "memory of the filters per pair", (peaks[1] - peaks[0]) / (3 * N_LINE), "bytes"
        ),
        Measurement("memory per text in the duplicate filter", _bytes_per_text(), "bytes", "<= 32"),
        Measurement("prepare of both pairs after the download", _prepare_seconds(), "s", "<= 90"),
    ]


def learnt(prefix: str) -> tuple[CleaningRules, dict[str, NearDuplicates]]:
    """Return the state of the filters before the first line: languages and held-out sentences."""
    corpus = read_user_files("bench", prefix, ["en", "de"], [])
    rules = CleaningRules("en", 3, 40, 0.6, 2.2, 3, learn_profile(corpus))
    return rules, {side: NearDuplicates(_held_out(prefix, side), 0.8) for side in ("en", "de")}


def filtered(
    prefix: str, rules: CleaningRules, indices: dict[str, NearDuplicates]
) -> Iterator[AlignedSentence]:
    """Apply every filter to the pairs at a prefix, as for the training text of a task."""
    for sentence in clean(_read(prefix), rules, Counter()):
        if not any(index.has_near(sentence.text[side]) for side, index in indices.items()):
            yield sentence


def _read(prefix: str) -> Iterator[AlignedSentence]:
    corpus = read_user_files("bench", prefix, ["en", "de"], [])
    return align(corpus.paragraphs(), ["de", "en"], Counter())


def _write(prefix: Path, n_line: int) -> Path:
    """Write invented sentences with Zipf-distributed words; every tenth sentence is a duplicate."""
    chance = random.Random(0)
    for language in ("en", "de"):
        words = [f"{language}{number:x}".translate(_NO_DIGITS) for number in range(N_WORD)]
        with Path(f"{prefix}.{language}").open("w", encoding="utf-8", newline="\n") as file:
            line = ""
            for number in range(n_line):
                if number % 10:
                    line = " ".join(
                        words[int(N_WORD ** chance.random()) - 1]
                        for _ in range(chance.randint(14, 20))
                    )
                file.write(f"{line.capitalize()}.\n")
    return prefix


def _held_out(prefix: str, side: str) -> list[str]:
    corpus = read_user_files("bench", prefix, [side], [])
    every = N_LINE // N_HELD_OUT
    lines = (paragraph.sentences[side][0] for paragraph in corpus.paragraphs())
    return [line for number, line in enumerate(lines) if number % every == 0][:N_HELD_OUT]


def _peak_bytes(prefix: str) -> float:
    command = [sys.executable, "-c", PEAK, prefix]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return float(run.stdout.split()[-1]) * 1024


def _bytes_per_text() -> float:
    tracemalloc.start()
    seen = SeenTexts()
    for number in range(N_SEEN):
        seen.add(str(number))
    held_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held_bytes / len(seen)


def _prepare_seconds() -> float:
    """Return the seconds of prepare for both pairs, including parsing, from local packages."""
    packages = ROOT / "outputs" / "downloads"
    find_packages(list(TESTED_VERSIONS), packages, None, pin=False)
    with TemporaryDirectory() as root:
        start = time.perf_counter()
        for task in TASKS:
            settings = [f"task={task}", "experiment=demo", f"io.root={root}"]
            command = [sys.executable, "-m", "stages.prepare", *settings]
            command += [f"data.packages={packages}", "tracking=off"]
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        return time.perf_counter() - start
