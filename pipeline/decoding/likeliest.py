"""Each prefix's likeliest next tokens under the ensemble, in one compiled pass over the logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.mixture import Float32, highest_value, mix
from pipeline.uncertainty.fused import compiled

# Tokens that are compared with the weakest of the likeliest at once.
_GROUP = 64


@compiled
def _keep_likeliest(posterior: Float32, best: Float32, token: NDArray[np.int64]) -> None:
    """The len(best) largest of posterior [vocab], largest first; the lower id where equal."""
    n_best, n_found, n_vocab = len(best), 0, len(posterior)
    for start in range(0, n_vocab, _GROUP):
        end = min(start + _GROUP, n_vocab)
        if n_found == n_best and highest_value(posterior[start:end]) <= best[n_best - 1]:
            continue
        for k in range(start, end):
            value = posterior[k]
            if n_found < n_best:
                n_found += 1
            elif value <= best[n_best - 1]:
                continue
            place = n_found - 1
            while place > 0 and best[place - 1] < value:
                best[place] = best[place - 1]
                token[place] = token[place - 1]
                place -= 1
            best[place] = value
            token[place] = k


@compiled
def likeliest_tokens(
    logits: Float32,
    weight: Float32,
    factor: Float32,
    log_total: Float32,
    best: Float32,
    token: NDArray[np.int64],
) -> None:
    """Fill in ln of the sum of exp of logits, and the likeliest tokens under the posterior.

    logits [member, row, vocab], contiguous; weight [row, member] of the members; factor [vocab]: on
    the posterior of a token, 0 for those that must not be chosen. Filled in: log_total
    [row, member], NaN where logits are; best [row, n], likeliest first: factor * P_post; token
    [row, n]. A best below exp(-80) is not exact.
    """
    n_row, n_vocab = logits.shape[1:]
    shares = np.empty(n_vocab, np.float32)
    posterior = np.empty(n_vocab, np.float32)
    for row in range(n_row):
        mix(logits, row, weight[row], shares, log_total[row], posterior)
        for k in range(n_vocab):
            posterior[k] *= factor[k]
        _keep_likeliest(posterior, best[row], token[row])
