"""ROC-AUC and average precision of detection by a score of uncertainty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.errors import DataError
from pipeline.metrics.ranking import precision_sum, rank_excess, scores, tie_groups
from pipeline.quality.weighted_metric import FloatArray, WeightedMetric, point_estimate, ratio


def roc_auc(in_domain: ArrayLike, out_of_domain: ArrayLike) -> float:
    """Percentage of pairs in which the out-of-domain sentence is the more uncertain one.

    Both arguments are uncertainties [sentence]; infinities are allowed, and a tie counts one half.
    NaN if one of them is empty. Raises DataError for NaN. Source: table `tab:ood-detection`.
    """
    n_sentence = np.size(np.asarray(in_domain)) + np.size(np.asarray(out_of_domain))
    return point_estimate(weighted_roc_auc(in_domain, out_of_domain), n_sentence)


def weighted_roc_auc(in_domain: ArrayLike, out_of_domain: ArrayLike) -> WeightedMetric:
    """ROC-AUC in percent as a function of weights [resample, sentence], in-domain first."""
    inside = scores("in_domain", in_domain)
    outside = scores("out_of_domain", out_of_domain)
    groups = tie_groups(np.concatenate([inside, outside]))
    is_outside = np.repeat([0.0, 1.0], [len(inside), len(outside)])[groups.order]
    row, is_last = groups.order, groups.is_last

    def area(weights: FloatArray) -> FloatArray:
        pairs = weights[:, : len(inside)].sum(axis=1) * weights[:, len(inside) :].sum(axis=1)
        return 100 * (0.5 + ratio(rank_excess(weights, row, is_outside, is_last), pairs))

    return area


def average_precision(label: ArrayLike, uncertainty: ArrayLike) -> float:
    """Mean over the errors of the precision in percent at the uncertainty of each.

    `label` [token] is 1 or true for an error; `uncertainty` [token]. Tokens of equal uncertainty
    pass a threshold together. NaN without errors. Raises DataError for NaN, unequal lengths, and
    labels other than 0 and 1. Source: `tab:token-error-detection`.
    """
    return point_estimate(
        weighted_average_precision(label, uncertainty), np.size(np.asarray(label))
    )


def weighted_average_precision(
    label: ArrayLike, uncertainty: ArrayLike, sentence: NDArray[np.intp] | None = None
) -> WeightedMetric:
    """Average precision in percent as a function of weights [resample, sentence].

    `sentence` [token] is the index of each token's sentence; None makes each token a sentence.
    """
    labels = scores("label", label)
    uncertainties = scores("uncertainty", uncertainty)
    if len(labels) != len(uncertainties):
        raise DataError(
            f"label and uncertainty: lengths differ ({len(labels)} and {len(uncertainties)}). "
            "Pass one value per token in each."
        )
    if not np.isin(labels, (0, 1)).all():
        raise DataError("label: holds values other than 0 and 1. Use 1 for an error, else 0.")
    groups = tie_groups(-uncertainties)
    row = groups.order if sentence is None else np.asarray(sentence)[groups.order]
    marks, is_last = labels[groups.order], groups.is_last

    def area(weights: FloatArray) -> FloatArray:
        gained, positive = precision_sum(weights, row, marks, is_last)
        return 100 * ratio(gained, positive)

    return area
