"""Subsets of the members of an ensemble, for smaller ensembles."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np


def subsets(n_member: int, size: int, most: int, seed: int) -> list[tuple[int, ...]]:
    """Return sorted tuples of member indices: all subsets of a size, or `most` random subsets.

    Random subsets are distinct and depend on the seed only.
    """
    if comb(n_member, size) <= most:
        return list(combinations(range(n_member), size))
    generator = np.random.default_rng([seed, size])
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < most:
        chosen = generator.choice(n_member, size, replace=False)
        drawn[tuple(sorted(chosen.tolist()))] = None
    return list(drawn)
