"""A statistics store of the size of the paper: writing, a grid of measures, dump sizes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.run.settings import ROOT
from pipeline.store import Hypothesis, StoreWriter, TopK
from pipeline.uncertainty.token import token_statistics
from tests.bench.measurement import Measurement

N_SENTENCE, N_HYPOTHESIS, N_TOKEN, N_MEMBER, VOCAB_SIZE, K = 15_000, 5, 30, 10, 40_000, 50
GRID = """
import sys, time
from pathlib import Path
from pipeline.store import open_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
start = time.perf_counter()
with open_store(sys.argv[1]) as store:
    write_measures(store, Path(sys.argv[2]), Grid([1, 5], [0.5, 1, 2, 5, 10], [True, False]))
status = Path("/proc/self/status").read_text()
peak_kib = int(status.split("VmHWM:")[1].split()[0])
print(time.perf_counter() - start, peak_kib / 2**20)
"""


def measure() -> list[Measurement]:
    """Measure time and memory for a store of 15,000 sentences, and the sizes of dumps."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        seconds = _write_statistics(folder / "statistics.h5")
        megabytes = (folder / "statistics.h5").stat().st_size / 1e6
        command = [sys.executable, "-c", GRID, str(folder / "statistics.h5"), str(folder)]
        grid = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        grid_seconds, peak_gib = map(float, grid.stdout.split())
        ratio = _write_full(folder / "full.h5", "full") / _write_full(folder / "topk.h5", "topk")
    size = f"{N_SENTENCE} sentences x {N_HYPOTHESIS} x {N_TOKEN} x {N_MEMBER}"
    return [
        Measurement(f"write, {size}", seconds, "s", "<= 15"),
        Measurement("size of this store", megabytes, "MB"),
        Measurement("grid of 2 B x 5 T x 2 length settings", grid_seconds, "s", "<= 10"),
        Measurement("peak memory of the grid", peak_gib, "GiB", "<= 1"),
        Measurement(f"full / top-{K} store, K={VOCAB_SIZE}", ratio, "x", ">= 100"),
    ]


def _write_statistics(path: Path) -> float:
    """Return the seconds for writing precomputed hypotheses."""
    random = np.random.default_rng(0)
    made = [_hypothesis(random, N_TOKEN, 300)[0] for _ in range(500)]
    start = time.perf_counter()
    with StoreWriter(path, **_attributes()) as store:
        for sentence in range(N_SENTENCE):
            chosen = [made[place] for place in random.choice(len(made), N_HYPOTHESIS, False)]
            store.add_sentence(sentence, f"source text {sentence}", "reference text", chosen)
    return time.perf_counter() - start


def _write_full(path: Path, dump: str) -> int:
    """Return the bytes of a store of a few positions with full or top-k distributions."""
    made, logprob = _hypothesis(np.random.default_rng(1), N_TOKEN, VOCAB_SIZE)
    order = np.argsort(-np.exp(logprob).mean(axis=1), axis=1)
    kept = np.take_along_axis(logprob, order[:, np.newaxis, :], axis=2)
    extra: dict[str, Any] = {"full_logprob": logprob}
    if dump == "topk":
        tail = np.log(np.exp(kept[:, :, K:]).sum(axis=2))
        extra = {"topk": TopK(order[:, :K], kept[:, :, :K], tail)}
    hypothesis = Hypothesis(made.token_id, made.text, 0.0, True, made.statistics, **extra)
    with StoreWriter(path, **_attributes()) as store:
        store.add_sentence(0, "source", "reference", [hypothesis])
    return path.stat().st_size


def _hypothesis(
    random: np.random.Generator, n_token: int, vocab_size: int
) -> tuple[Hypothesis, NDArray[np.float32]]:
    logit = 2 * random.normal(size=(n_token, N_MEMBER, vocab_size)).astype(np.float32)
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = random.integers(0, vocab_size, n_token)
    statistics = token_statistics(logprob, token)
    return Hypothesis(token, "a hypothesis of some words", 0.0, True, statistics), logprob


def _attributes() -> dict[str, Any]:
    return {
        "regime": "beam",
        "combination": "prex",
        "n_member": N_MEMBER,
        "vocab_size": VOCAB_SIZE,
    }
