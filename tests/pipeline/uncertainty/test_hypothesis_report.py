"""A B beyond the beam and equal texts are counted, and logged once per run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.hypothesis_report import hypothesis_report, log_hypotheses
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
SIZE = {"n_member": 3, "vocab_size": 8}


def sentences(make: Make, *counts: int) -> list[list[Hypothesis]]:
    return [[make(10 * index + rank) for rank in range(n)] for index, n in enumerate(counts)]


@pytest.mark.parametrize(
    ("attributes", "largest"),
    [({}, 3), ({"beam": 5}, 5), ({"beam": 5, "n_best": 4}, 4), ({"beam": 2}, 3)],
)
def test_the_b_that_is_used(
    store_of: StoreOf, random_hypothesis: Make, attributes: dict[str, Any], largest: int
):
    """A sentence of a search with beam 5 may have fewer hypotheses; B = 5 is still its beam."""
    store = store_of(sentences(random_hypothesis, 3, 0, 2), **SIZE, **attributes)
    beam = hypothesis_report(store, [1, 5, 10])["beam"]
    assert beam == {
        "largest": largest,
        "used": {"1": 1, "5": min(5, largest), "10": largest},
        "sentences_with_fewer": {"1": 1, "5": 3, "10": 3},
    }


def test_b_counts_the_samples_of_each_member(store_of: StoreOf, random_hypothesis: Make):
    drawn = [replace(random_hypothesis(seed), member=seed % 3) for seed in range(6)]
    store = store_of([drawn], regime="sample", combination="member", **SIZE)
    assert hypothesis_report(store, [5])["beam"]["used"] == {"5": 2}


def test_equal_texts_are_counted(store_of: StoreOf, random_hypothesis: Make):
    first, second = random_hypothesis(0), random_hypothesis(1)
    store = store_of([[first, replace(second, text=first.text), first], [first, second]], **SIZE)
    counts = hypothesis_report(store, [1])["equal_texts"]
    assert counts == {"sentences": 1, "hypotheses": 2, "with_equal_tokens": 1}


def test_one_warning_per_run_counts_stores_and_sentences(
    store_of: StoreOf,
    random_hypothesis: Make,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    stores = [
        store_of(sentences(random_hypothesis, 5, 5, 3), beam=5, **SIZE),
        store_of(sentences(random_hypothesis, 4, 5), beam=5, **SIZE),
        store_of(sentences(random_hypothesis, *[12] * 4), beam=12, **SIZE),
        store_of(sentences(random_hypothesis, 1, 1), regime="teacher_forcing", **SIZE),
    ]
    reports = [write_measures(store, tmp_path, Grid([1, 10], [1], [True])) for store in stores]
    with caplog.at_level(logging.INFO):
        log_hypotheses(reports)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "uncertainty.beam=10: 2 of 3 stores have fewer hypotheses" in record.message
    assert "5 of their 5 sentences have fewer than 10" in record.message
    assert "those of B=5" in record.message


def test_a_run_within_the_beam_is_silent(
    store_of: StoreOf,
    random_hypothesis: Make,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    store = store_of(sentences(random_hypothesis, 5, 2, 0), beam=5, **SIZE)
    with caplog.at_level(logging.INFO):
        log_hypotheses([write_measures(store, tmp_path, Grid([1, 5], [1], [True]))])
    assert not caplog.records


def test_equal_texts_are_logged_once_per_run(
    store_of: StoreOf,
    random_hypothesis: Make,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
):
    equal = [replace(random_hypothesis(seed), text="same") for seed in range(3)]
    stores = [store_of([equal, equal[:1]], **SIZE), store_of([equal[:2]], **SIZE)]
    stores.append(store_of([[*equal[:1], *equal[:1]]], regime="sample", **SIZE))
    reports = [write_measures(store, tmp_path, Grid([1], [1], [True])) for store in stores]
    with caplog.at_level(logging.INFO):
        log_hypotheses(reports)
    (record,) = caplog.records
    assert "uncertainty.equal_texts=keep: in 2 of 2 stores of searches" in record.message
    assert "2 of 3 sentences" in record.message
    assert "3 hypotheses share their text" in record.message
