"""Telling two kinds of sentences (or tokens) apart by a score of uncertainty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.metrics.ranking import scores, tie_groups
from pipeline.quality.statistic import FloatArray, Statistic, point, ratio


def roc_auc(in_domain: ArrayLike, out_of_domain: ArrayLike) -> float:
    """Percent of pairs in which the out-of-domain sentence is the more uncertain one.

    Both [sentence], higher is more uncertain, +-inf allowed; a tie counts one half. NaN where one
    of the two is empty. Raises DataError for NaN. Source: table `tab:ood-detection`.
    """
    n_sentence = np.size(np.asarray(in_domain)) + np.size(np.asarray(out_of_domain))
    return point(roc_auc_statistic(in_domain, out_of_domain), n_sentence)


def roc_auc_statistic(in_domain: ArrayLike, out_of_domain: ArrayLike) -> Statistic:
    """ROC-AUC in percent as a function of weights [resample, sentence], in-domain ones first."""
    inside = scores("in_domain", in_domain)
    outside = scores("out_of_domain", out_of_domain)
    groups = tie_groups(np.concatenate([inside, outside]))
    is_outside = np.repeat([0.0, 1.0], [len(inside), len(outside)])[groups.order]
    row, is_last = groups.order, groups.is_last

    def area(weights: FloatArray) -> FloatArray:
        from pipeline.metrics.ranking import rank_excess

        pairs = weights[:, : len(inside)].sum(axis=1) * weights[:, len(inside) :].sum(axis=1)
        return 100 * (0.5 + ratio(rank_excess(weights, row, is_outside, is_last), pairs))

    return area


def average_precision(label: ArrayLike, uncertainty: ArrayLike) -> float:
    """Mean precision in percent over the positives, at the threshold of each.

    `label` [token] true or 1 for an error, `uncertainty` [token], higher is more uncertain; equal
    uncertainties pass a threshold together. NaN where there is no positive. Raises DataError for
    NaN, unequal lengths, or a label that is neither 0 nor 1. Source: `tab:token-error-detection`.
    """
    return point(average_precision_statistic(label, uncertainty), np.size(np.asarray(label)))


def average_precision_statistic(
    label: ArrayLike, uncertainty: ArrayLike, sentence: NDArray[np.intp] | None = None
) -> Statistic:
    """Average precision in percent as a function of weights [resample, sentence].

    `sentence` [token]: the place of each token's sentence; if None, each token is one of its own.
    """
    labels = scores("label", label)
    uncertainties = scores("uncertainty", uncertainty)
    if len(labels) != len(uncertainties):
        raise DataError(
            "label and uncertainty must have one value for the same tokens, "
            f"got {len(labels)} and {len(uncertainties)}"
        )
    if not np.isin(labels, (0, 1)).all():
        raise DataError("label must be 0 or 1, got another value")
    groups = tie_groups(-uncertainties)
    row = groups.order if sentence is None else np.asarray(sentence)[groups.order]
    marks, is_last = labels[groups.order], groups.is_last

    def area(weights: FloatArray) -> FloatArray:
        from pipeline.metrics.ranking import precision_sum

        gained, positive = precision_sum(weights, row, marks, is_last)
        return 100 * ratio(gained, positive)

    return area
