"""Telling two kinds of sentences (or tokens) apart by a score of uncertainty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pipeline.errors import DataError
from pipeline.metrics.statistic import FloatArray, Statistic, point, ratio
from pipeline.metrics.ties import scores, tie_groups


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
    is_outside = np.repeat([0.0, 1.0], [len(inside), len(outside)])

    def area(weights: FloatArray) -> FloatArray:
        if not len(inside) or not len(outside):
            return np.full(len(weights), np.nan)
        group_weight = groups.sums(weights)
        group_outside = groups.sums(weights * is_outside)
        group_inside = group_weight - group_outside
        inside_up_to = np.cumsum(group_inside, axis=1)
        pairs_won = np.einsum("rg,rg->r", group_outside, inside_up_to - group_inside / 2)
        return 100 * ratio(pairs_won, inside_up_to[:, -1] * group_outside.sum(axis=1))

    return area


def average_precision(label: ArrayLike, uncertainty: ArrayLike) -> float:
    """Mean precision in percent over the positives, at the threshold of each.

    `label` [token] true or 1 for an error, `uncertainty` [token], higher is more uncertain; equal
    uncertainties pass a threshold together. NaN where there is no positive. Raises DataError for
    NaN, unequal lengths, or a label that is neither 0 nor 1. Source: `tab:token-error-detection`.
    """
    return point(average_precision_statistic(label, uncertainty), np.size(np.asarray(label)))


def average_precision_statistic(label: ArrayLike, uncertainty: ArrayLike) -> Statistic:
    """Average precision in percent as a function of weights [resample, token]."""
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

    def area(weights: FloatArray) -> FloatArray:
        if not len(labels):
            return np.full(len(weights), np.nan)
        group_positive = groups.sums(weights * labels)
        positive = np.cumsum(group_positive, axis=1)
        flagged = np.cumsum(groups.sums(weights), axis=1)
        precision = np.divide(positive, flagged, out=np.zeros_like(positive), where=flagged > 0)
        gained = np.einsum("rg,rg->r", group_positive, precision)
        return 100 * ratio(gained, positive[:, -1])

    return area
