"""Measures of meaning, from labels or embeddings that a model of the user gives the texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.statistics.posterior import Float64, sequence_logprob
from pipeline.store import Store
from pipeline.uncertainty.blocks import decoding_posteriors
from pipeline.uncertainty.weighting import Selection, first_hypotheses, importance, uniform


def semantic_entropy(store: Store, meaning: ArrayLike) -> Float64:
    """Entropy over the meanings of the hypotheses of each sentence, [sentence], in nats.

    meaning [hypothesis], whole numbers: hypotheses of one sentence with equal numbers have the same
    meaning. The probability of a meaning is the sum over its hypotheses of P(y) under the posterior
    that decoded, divided by the sum over all of them; of samples it is their share. NaN without a
    hypothesis. Raises DataError for another shape or type, and if members searched by themselves.
    Source: Kuhn et al., "Semantic uncertainty: linguistic invariances for uncertainty estimation in
    natural language generation", ICLR 2023; for samples Farquhar et al., "Detecting hallucinations
    in large language models using semantic entropy", Nature 630, 2024.
    """
    labels = np.asarray(meaning)
    if labels.shape != (store.n_hypothesis,) or labels.dtype.kind not in "iu":
        raise DataError(
            f"meaning: must be whole numbers, one per hypothesis, {store.n_hypothesis} in all (got "
            f"{labels.dtype} of shape {labels.shape}). Number the meanings of each sentence."
        )
    selection = first_hypotheses(store.hypothesis_offset, store.n_hypothesis)
    sentence = np.repeat(selection.group, selection.sizes)
    meanings, place = np.unique(np.stack([sentence, labels]), axis=1, return_inverse=True)
    probability = np.bincount(place.ravel(), np.exp(_log_share(store, selection)))
    # What is exactly 0 adds nothing.
    terms = -probability * np.log(np.where(probability > 0, probability, 1.0))
    entropy = np.bincount(meanings[0], terms, minlength=store.n_sentence)
    return np.where(np.diff(store.hypothesis_offset) > 0, 0.0 + entropy, np.nan)


def _log_share(store: Store, selection: Selection) -> Float64:
    """Return ln of the share of each hypothesis in its sentence, [hypothesis]."""
    if store.regime == "sample":
        return uniform(selection)
    posteriors = decoding_posteriors(store)
    if not posteriors:
        raise DataError(
            f"{store.path}: no posterior decoded (combination={store.combination}), so that its "
            "hypotheses have no probabilities. Give a store of samples or of a joint search."
        )
    logprob = sequence_logprob(store.read("/token/logprob"), store.token_offset)
    return importance(getattr(logprob, posteriors[0]), selection, 1.0)


def embedding_dispersion(store: Store, embedding: ArrayLike) -> Float64:
    """Mean of 1 - cosine between the hypotheses of each sentence, [sentence], from 0 to 2.

    embedding [hypothesis, dimension]: of the texts of the hypotheses. It is 0 for a single
    hypothesis and NaN without one. Raises DataError for another shape, and for embeddings that are
    0 or not finite. It is the lexical similarity of Fomicheva et al. (TACL 8, 2020) with the cosine
    in the place of METEOR.
    """
    vectors = _embeddings("embedding", embedding, store.n_hypothesis, "hypothesis")
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (norm > 0).all():
        raise DataError(
            f"embedding: row {int(norm.argmin())} is 0 and has no direction. Embed every text."
        )
    n_hypothesis = np.diff(store.hypothesis_offset)
    total = np.zeros((store.n_sentence, vectors.shape[1]))
    has_some = n_hypothesis > 0
    if has_some.any():
        start = store.hypothesis_offset[:-1][has_some]
        total[has_some] = np.add.reduceat(vectors / norm, start, axis=0)
    # The squared norm of a sum of unit vectors is n plus the cosines of all ordered pairs.
    cosines = (total**2).sum(axis=1) - n_hypothesis
    n_pair = n_hypothesis * (n_hypothesis - 1)
    dispersion = np.clip(1 - cosines / np.maximum(n_pair, 1), 0, 2)
    return np.where(n_pair > 0, dispersion, np.where(has_some, 0.0, np.nan))


def embedding_distance(embedding: ArrayLike, in_domain: ArrayLike) -> Float64:
    """Mahalanobis distance of each embedding from those of in-domain texts, [sentence].

    embedding [sentence, dimension]: of the sources, or of the best hypotheses; NaN in all
    dimensions where there is none. in_domain [text, dimension]: of training texts. Directions in
    which these do not vary are left out. NaN where the embedding is. Raises DataError for other
    shapes, for fewer than two in-domain texts and for values that are not finite. Source: Ren et
    al., "Out-of-distribution detection and selective generation for conditional language models",
    ICLR 2023.
    """
    vectors: NDArray[np.float64] = np.array(embedding, dtype=np.float64, ndmin=2)
    is_absent = np.asarray(np.isnan(vectors).all(axis=1))
    vectors[is_absent] = 0.0
    known = _embeddings("in_domain", in_domain, None, "text")
    if len(known) < 2:
        raise DataError(f"in_domain: must have two texts or more (got {len(known)}). Add texts.")
    given = _embeddings("embedding", vectors, len(vectors), "sentence", known.shape[1])
    covariance = np.atleast_2d(np.cov(known, rowvar=False))
    difference = given - known.mean(axis=0)
    inverse = np.linalg.pinv(covariance, hermitian=True)
    squares = np.einsum("sd,de,se->s", difference, inverse, difference)
    return np.where(is_absent, np.nan, np.sqrt(np.maximum(squares, 0)))


def _embeddings(
    name: str, values: ArrayLike, n_row: int | None, unit: str, n_column: int | None = None
) -> NDArray[np.float64]:
    """Check and convert to float64 [row, dimension]."""
    vectors = np.asarray(values, dtype=np.float64)
    is_right = vectors.ndim == 2 and n_row in (None, len(vectors))
    if not is_right or n_column not in (None, vectors.shape[1]):
        expected = ("rows" if n_row is None else n_row, n_column or "dimensions")
        raise DataError(
            f"{name}: must be one vector per {unit}, {' x '.join(map(str, expected))} (got shape "
            f"{vectors.shape}). Embed every {unit} with the same model."
        )
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        raise DataError(f"{name}: row {int(is_finite.argmin())} is not finite. Embed every {unit}.")
    return vectors
