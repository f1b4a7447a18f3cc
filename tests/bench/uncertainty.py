"""Token measures at the size of the paper, compared with a direct implementation and with `exp`."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import torch
from numpy.typing import NDArray

from pipeline.uncertainty.token import token_measures
from tests.bench.measurement import Measurement, alternating_seconds

N_TOKEN, N_MEMBER, VOCAB_SIZE = 8, 10, 40_000


def direct_measures(logprob: torch.Tensor, token: torch.Tensor) -> list[dict[str, torch.Tensor]]:
    """Compute the measures of one hypothesis term by term, with [member, vocab] temporaries."""
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
    """Measure milliseconds per position, their ratios, and peak memory, in one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    logit = 2 * random.normal(size=(N_TOKEN, N_MEMBER, VOCAB_SIZE)).astype(np.float32)
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = random.integers(0, VOCAB_SIZE, N_TOKEN)
    tensors = torch.from_numpy(logprob), torch.from_numpy(token)
    out = np.empty_like(logprob)
    _agree(token_measures(logprob, token), direct_measures(*tensors))
    direct, fused, single = alternating_seconds(
        lambda: direct_measures(*tensors),
        lambda: token_measures(logprob, token),
        lambda: np.exp(logprob, out=out),
        repeats=9,
    )
    milliseconds = 1000 / N_TOKEN
    shape = f"M={N_MEMBER} K={VOCAB_SIZE}"
    return [
        Measurement(f"direct implementation, {shape}, per position", direct * milliseconds, "ms"),
        Measurement(f"token_measures, {shape}, per position", fused * milliseconds, "ms"),
        Measurement(f"single exp pass, {shape}, per position", single * milliseconds, "ms"),
        Measurement("direct implementation / token_measures", direct / fused, "x", ">= 3"),
        Measurement("token_measures / single exp pass", fused / single, "x", "<= 2.5"),
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
