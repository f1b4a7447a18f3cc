"""Growth of size and time with sentences, vocabulary, members and beam, projected to the paper."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf

from pipeline.decoding.beam import beam_search
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.test_set import Sentence
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import CONF, DecodeConfig
from pipeline.store import Hypothesis, StoreWriter, open_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from pipeline.uncertainty.token import token_statistics
from tests.bench.decode import random_models
from tests.bench.measurement import Measurement


@dataclass(frozen=True)
class _Size:
    """Numbers of sentences (n), tokens of the vocabulary (k), members (m) and hypotheses (b)."""

    n: int
    k: int
    m: int
    b: int


_GROWTH = (1, 2, 4)
_STORED = _Size(200, 64, 4, 3)
_DECODED = _Size(16, 1000, 2, 3)
_PAPER = _Size(3003, 40_000, 10, 5)  # newstest14
_HYPOTHESIS_TOKENS = 28
_DECODED_TOKENS = 6
_FLOAT_BYTES = 4


def measure() -> list[Measurement]:
    """Fit the exponent of each axis, and project to newstest14 and to full distributions.

    Decoding uses the tiny models of these tests. stages.plan estimates the real ones.
    """
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        folder = Path(name)
        megabytes = _grown(_STORED, lambda size: _stored(folder, size) / 1e6)
        seconds = _grown(_STORED, lambda size: _measured(folder, size))
    decoding = _grown(_DECODED, _decoded)
    full = _PAPER.n * _PAPER.b * _HYPOTHESIS_TOKENS * _PAPER.m * _PAPER.k * _FLOAT_BYTES / 1e9
    projected = _projected(_STORED, megabytes)
    return [
        *_exponents("store size", megabytes),
        *_exponents("measures, time", seconds),
        *_exponents("decode, time", decoding),
        Measurement("newstest14 at the size of the paper: statistics", projected, "MB"),
        Measurement("newstest14 at the size of the paper: full distributions", full, "GB"),
        Measurement("newstest14: full / statistics", full * 1e3 / projected, "x", ">= 1000"),
        Measurement(
            "newstest14 at the size of the paper: measures",
            _projected(_STORED, seconds),
            "s",
            "<= 60",
        ),
    ]


def _grown(base: _Size, value: Callable[[_Size], float]) -> dict[str, list[float]]:
    """Return the values when only one axis grows, minus the cost of one sentence, by axis."""
    value(base)  # compiles
    fixed = value(replace(base, n=1))
    return {
        axis: [value(replace(base, **{axis: count * growth})) - fixed for growth in _GROWTH]
        for axis, count in asdict(base).items()
    }


def _exponent(values: list[float]) -> float:
    """Return the slope of log value over log growth by least squares."""
    return float(np.polyfit(np.log(_GROWTH), np.log(values), 1)[0])


def _exponents(what: str, grown: Mapping[str, list[float]]) -> list[Measurement]:
    return [
        Measurement(f"{what}: exponent of {axis.upper()}", _exponent(values), "")
        for axis, values in grown.items()
    ]


def _projected(base: _Size, grown: Mapping[str, list[float]]) -> float:
    """Extrapolate from the base size to the size of the paper with the exponent of each axis."""
    value = math.exp(np.mean([math.log(values[0]) for values in grown.values()]))
    for axis, values in grown.items():
        value *= (asdict(_PAPER)[axis] / asdict(base)[axis]) ** _exponent(values)
    return value


def _stored(folder: Path, size: _Size) -> int:
    """Return the bytes of a statistics store."""
    random = np.random.default_rng(0)
    attributes: dict[str, Any] = {"n_member": size.m, "vocab_size": size.k}
    path = folder / "store.h5"
    with StoreWriter(path, regime="beam", combination="prex", **attributes) as store:
        for sentence in range(size.n):
            best = [_hypothesis(random, size) for _ in range(size.b)]
            store.add_sentence(sentence, f"source {sentence}", "reference text", best)
    return path.stat().st_size


def _hypothesis(random: np.random.Generator, size: _Size) -> Hypothesis:
    logit = 2 * random.normal(size=(_HYPOTHESIS_TOKENS, size.m, size.k)).astype(np.float32)
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = random.integers(0, size.k, _HYPOTHESIS_TOKENS)
    statistics = token_statistics(logprob, token)
    return Hypothesis(token, "a hypothesis of some words", 0.0, True, statistics)


def _measured(folder: Path, size: _Size) -> float:
    """Return the CPU seconds for all measures of a store, the minimum of three runs."""
    _stored(folder, size)
    (folder / "measures").mkdir(exist_ok=True)

    def work() -> None:
        with open_store(folder / "store.h5") as store:
            write_measures(store, folder / "measures", Grid([size.b], [10], [True]))

    return _seconds(work)


def _decoded(size: _Size) -> float:
    """Return the CPU seconds of a search, the minimum of three runs."""
    _, models = random_models(size.k, size.m)
    ensemble = as_ensemble([FairseqMember(model) for model in models])
    settings = {
        "beam": size.b,
        "min_length": _DECODED_TOKENS,
        "max_length_ratio": 0.0,
        "max_length_offset": _DECODED_TOKENS,
    }
    decode: Any = OmegaConf.merge(
        OmegaConf.structured(DecodeConfig), OmegaConf.load(CONF / "decode" / "beam.yaml"), settings
    )
    sources = np.random.default_rng(0).integers(4, size.k, (size.n, _DECODED_TOKENS))
    batch = [Sentence(place, [*source.tolist(), 2], None) for place, source in enumerate(sources)]
    return _seconds(lambda: beam_search(ensemble, batch, "prex", decode))


def _seconds(work: Callable[[], object]) -> float:
    found = []
    for _ in range(3):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)
