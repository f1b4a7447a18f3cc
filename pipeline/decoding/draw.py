"""Drawing the next token of each prefix from the ensemble's posterior, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipeline.decoding.mixture import Float32, mix
from pipeline.uncertainty.fused import compiled

# Posteriors below are not exact, and may stand for 0.
_LEAST = np.float32(1e-34)


@compiled
def posteriors(logits: Float32, weight: Float32, log_total: Float32, probability: Float32) -> None:
    """Fill in ln of the sum of exp of logits, and the posterior; what is below 1e-34 as 0.

    logits [member, row, vocab], contiguous; weight [row, member] of the members. Filled in:
    log_total [row, member], NaN where logits are; probability [row, vocab].
    """
    n_row, n_vocab = probability.shape
    shares = np.empty(n_vocab, np.float32)
    for row in range(n_row):
        posterior = probability[row]
        mix(logits, row, weight[row], shares, log_total[row], posterior)
        for k in range(n_vocab):
            posterior[k] = posterior[k] if posterior[k] > _LEAST else np.float32(0)


@compiled
def drawn_tokens(
    probability: Float32, uniform: NDArray[np.float64], token: NDArray[np.int64]
) -> None:
    """Fill in token [row]: the first up to which the mass is above the share uniform [row].

    probability [row, vocab]: of the tokens up to a factor, one above 0 in each row; uniform in
    [0, 1). A token of probability 0 is never drawn.
    """
    n_row, n_vocab = probability.shape
    for row in range(n_row):
        shares = probability[row]
        total = 0.0
        for k in range(n_vocab):
            total += shares[k]
        target = uniform[row] * total
        mass = 0.0
        for k in range(n_vocab):
            if shares[k] > 0:
                # The last one of all where rounding keeps the mass from reaching the target.
                token[row] = k
                mass += shares[k]
                if mass > target:
                    break
