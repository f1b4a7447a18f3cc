"""Bounds of every token-level measure from the k likeliest tokens and the mass of the rest."""

from __future__ import annotations

import numpy as np

from pipeline.statistics.kernel import Array, Float64, fused_statistics, log_mean
from pipeline.store import TokenStatistics
from pipeline.uncertainty.token import Position, measures

Interval = tuple[Float64, Float64]


def token_bounds(
    topk_logprob: Array,
    tail_logprob: Array,
    logprob: Array,
    log_weight: Float64,
    vocab_size: int,
) -> dict[str, Interval]:
    """The lowest and highest value that each measure can have, name -> ([token], [token]) in nats.

    topk_logprob [token, member, k]: of the k likeliest tokens under PrEx; tail_logprob
    [token, member]: ln of the mass of the others; logprob [token, member]: of the token that stands
    there; log_weight [token, member]: ln w_m of ExPr. The k tokens and the tail as one cell give a
    coarser distribution: its divergences are lower bounds, and its entropy lacks only the tail's
    own, which lies between the least that its likeliest token allows and ln(vocab_size - k).
    A reverse divergence within the tail has no upper bound: +inf.
    """
    coarse = np.concatenate([topk_logprob, tail_logprob[:, :, np.newaxis]], axis=2, dtype=float)
    n_member, n_tail = coarse.shape[1], vocab_size - topk_logprob.shape[2]
    statistics = TokenStatistics(logprob, **fused_statistics(coarse, log_weight))
    low = measures(Position(statistics, log_weight))
    high = {name: values.copy() for name, values in low.items()}
    if n_tail > 1:
        tail = coarse[:, :, -1]
        tail_prex = log_mean(tail, -np.log(n_member))
        tail_expr = log_mean(tail, log_weight)
        # No token of the tail is likelier under PrEx than the last of the k.
        log_most = log_mean(coarse[:, :, :-1], -np.log(n_member)).min(axis=1)
        log_most_member = log_most + np.log(n_member)
        log_most_expr = log_most_member + log_weight.max(axis=1)
        most = {
            "data": (tail, log_most_member[:, np.newaxis]),
            "prex_entropy": (tail_prex, log_most),
            "expr_entropy": (tail_expr, log_most_expr),
        }
        for name, (mass, most_likely) in most.items():
            lowest, highest = _tail_entropy(mass, most_likely, n_tail)
            low[name] = low[name] + (lowest.mean(axis=1) if name == "data" else lowest)
            high[name] = high[name] + (highest.mean(axis=1) if name == "data" else highest)
        uniform = np.full_like(tail, -np.log(n_member))
        high["prex_mi"] = high["prex_mi"] + _tail_information(tail, uniform, n_tail)
        high["expr_mi_w"] = high["expr_mi_w"] + _tail_information(tail, log_weight, n_tail)
        high["expr_mi_kl"] = high["expr_mi_kl"] + _tail_divergence(tail, tail_expr, log_weight)
        if n_member > 1:
            for name, mass in (("prex_rmi", tail_prex), ("expr_rmi", tail_expr)):
                high[name] = np.where(np.isneginf(mass), high[name], np.inf)
    low["expr_mi"] = low["expr_entropy"] - high["data"]
    high["expr_mi"] = high["expr_entropy"] - low["data"]
    for side in (low, high):
        side["prex_epkl"] = side["prex_mi"] + side["prex_rmi"]
        side["expr_epkl"] = side["expr_mi"] + side["expr_rmi"]
        side["expr_epkl_w"] = side["expr_mi_w"] + side["expr_rmi"]
    return {name: (low[name], high[name]) for name in low}


def _tail_entropy(log_mass: Float64, log_most: Float64, n_tail: int) -> Interval:
    """r H(tail) at least and at most, where no token of the tail exceeds exp(log_most)."""
    mass = np.exp(log_mass)
    possible = mass > 0
    excess = np.where(possible, log_mass, 0.0) - np.where(possible, log_most, 0.0)
    return mass * np.maximum(0.0, excess), mass * np.log(n_tail)


def _tail_information(tail: Float64, log_weight: Float64, n_tail: int) -> Float64:
    """What a token within the tail can tell of the member: at most H(member | tail) and ln n."""
    joint = tail + log_weight
    total = log_mean(tail, log_weight)
    share = np.exp(joint - np.where(np.isneginf(total), 0.0, total)[:, np.newaxis])
    entropy = -np.where(share > 0, share * np.log(np.where(share > 0, share, 1.0)), 0.0).sum(axis=1)
    bounded: Float64 = np.exp(total) * np.minimum(entropy, np.log(n_tail))
    return bounded


def _tail_divergence(tail: Float64, tail_expr: Float64, log_weight: Float64) -> Float64:
    """Mean over members of r_m ln(r_EP / (w_m r_m)), the most that KL(P_m || P_EP) can add."""
    possible = ~np.isneginf(tail)
    weighted = ~np.isneginf(log_weight)
    known = np.where(possible & weighted, tail + log_weight, tail_expr[:, np.newaxis])
    with np.errstate(invalid="ignore"):
        terms = np.exp(tail) * (tail_expr[:, np.newaxis] - known)
    terms = np.where(possible, np.where(weighted, terms, np.inf), 0.0)
    mean: Float64 = terms.mean(axis=1)
    return mean
