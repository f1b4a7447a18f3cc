"""Lexical dissimilarity of the texts of a sentence, by chrF: of hypotheses and of members."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.statistics.posterior import Float64
from pipeline.store import Store
from pipeline.uncertainty.chrf_of_pairs import mean_chrf_of_pairs
from pipeline.uncertainty.measures_of_sequences import Estimator, measures_by

HYPOTHESES = tuple(measures_by(Estimator.HYPOTHESES))


def hypothesis_measures(store: Store) -> dict[str, Float64]:
    """Compute the dissimilarity of all hypotheses of each sentence, `hypothesis_chrf`.

    Returns name -> [sentence] in percent: the mean over ordered pairs of hypotheses of 100 - chrF
    between their texts. It is 0 for a single hypothesis and NaN without one. Source: Fomicheva et
    al., "Unsupervised quality estimation for neural machine translation", TACL 8, 2020.
    """
    texts = store.read("/hypothesis/text")
    return {"hypothesis_chrf": dissimilarity(list(texts), store.hypothesis_offset)}


def dissimilarity(texts: Sequence[str], text_offset: NDArray[np.integer]) -> Float64:
    """Mean of 100 - chrF over ordered pairs of texts, [text] to [sentence], in percent.

    text_offset [sentence + 1]. It is 0 for a single text and NaN without one.
    """
    n_text = np.diff(text_offset)
    of_pairs = 100 - mean_chrf_of_pairs(texts, text_offset)
    return np.where(n_text > 1, of_pairs, np.where(n_text == 1, 0.0, np.nan))
