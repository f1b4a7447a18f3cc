"""Token-level measures at the paper's size: against the literal form, and against one bare exp."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.uncertainty.token import token_measures
from tests.bench.measurement import Measurement, alternating_seconds

N_TOKEN, N_MEMBER, VOCAB_SIZE = 8, 10, 40_000


def literal_measures(logprob: torch.Tensor, token: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    """The measures of one hypothesis as they are written, a [member, vocab] temporary a term."""
    prefix = torch.zeros(logprob.shape[1])
    rows = []
    for member, chosen in zip(logprob, token, strict=True):
        probability = member.exp()
        weight = torch.softmax(prefix, dim=0)
        data = -(probability * member).sum(dim=1).mean()
        weighted = -(weight * (probability * member).sum(dim=1)).sum()
        row = {"data": data}
        uniform = torch.full_like(weight, 1 / len(weight))
        for name, w in (("prex", uniform), ("expr", weight)):
            post = (w[:, None] * probability).sum(dim=0)
            log_post = post.log()
            entropy = -(post * log_post).sum()
            row[f"{name}_entropy"] = entropy
            row[f"{name}_mi"] = entropy - data
            row[f"{name}_epkl"] = -(post * member).sum(dim=1).mean() - data
            row[f"{name}_rmi"] = (post * (log_post - member)).sum(dim=1).mean()
            row[f"{name}_score"] = -log_post[chosen]
            row[f"{name}_pmi"] = (log_post[chosen] - member[:, chosen]).mean()
        row["expr_mi_w"] = row["expr_entropy"] - weighted
        row["expr_epkl_w"] = -(post * member).sum(dim=1).mean() - weighted
        row["expr_mi_kl"] = (probability * (member - log_post)).sum(dim=1).mean()
        rows.append(row)
        prefix = prefix + member[:, chosen]
    return rows


def measure() -> list[Measurement]:
    """Milliseconds a position of the three, their ratios, and peak memory; single thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    logit = 2 * random.normal(size=(N_TOKEN, N_MEMBER, VOCAB_SIZE)).astype(np.float32)
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = random.integers(0, VOCAB_SIZE, N_TOKEN)
    tensors = torch.from_numpy(logprob), torch.from_numpy(token)
    out = np.empty_like(logprob)
    _agree(token_measures(logprob, token), literal_measures(*tensors))
    literal, fused, bare = alternating_seconds(
        lambda: literal_measures(*tensors),
        lambda: token_measures(logprob, token),
        lambda: np.exp(logprob, out=out),
        repeats=9,
    )
    milliseconds = 1000 / N_TOKEN
    shape = f"M={N_MEMBER} K={VOCAB_SIZE}"
    return [
        Measurement(f"literal form, {shape}, a position", literal * milliseconds, "ms"),
        Measurement(f"token_measures, {shape}, a position", fused * milliseconds, "ms"),
        Measurement(f"bare exp pass, {shape}, a position", bare * milliseconds, "ms"),
        Measurement("literal form / token_measures", literal / fused, "x", ">= 3"),
        Measurement("token_measures / bare exp pass", fused / bare, "x", "<= 2.5"),
        Measurement(
            "peak memory of token_measures / one position",
            _peak_bytes(logprob, token) / logprob[0].nbytes,
            "x",
            "<= 3",
        ),
    ]


def _agree(values: dict[str, NDArray[np.float64]], rows: list[dict[str, torch.Tensor]]) -> None:
    for name, value in values.items():
        expected = [float(row[name]) for row in rows]
        np.testing.assert_allclose(value, expected, atol=1e-3, err_msg=name)


def _peak_bytes(logprob: NDArray[np.float32], token: NDArray[np.int64]) -> int:
    tracemalloc.start()
    token_measures(logprob, token)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
