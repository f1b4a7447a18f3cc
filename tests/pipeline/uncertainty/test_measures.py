"""The registry of measures is complete and consistent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.store import Hypothesis, Store, TokenStatistics
from pipeline.uncertainty import measures_of_sequences, measures_of_tokens
from pipeline.uncertainty.blocks import token_blocks
from pipeline.uncertainty.measures_of_sequences import SEQUENCE_MEASURES, Estimator
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES, Range, Words
from pipeline.uncertainty.sequence import sequence_measures
from pipeline.uncertainty.token import token_bounds


def test_full_names_occur_in_the_source() -> None:
    source = inspect.getsource(measures_of_tokens) + inspect.getsource(measures_of_sequences)
    for name in (*TOKEN_MEASURES, *SEQUENCE_MEASURES):
        assert source.count(f'"{name}"') >= 1, name
    assert not set(TOKEN_MEASURES) & set(SEQUENCE_MEASURES)


def test_no_sequence_measure_replaces_another() -> None:
    chain = [form for m in TOKEN_MEASURES.values() for form in (m.chain, m.chain_of_samples)]
    forms = [*chain, *(measure.maximum for measure in TOKEN_MEASURES.values())]
    names = [form.name for form in forms if form is not None]
    names += [name for name, measure in SEQUENCE_MEASURES.items() if measure.token_measure is None]
    assert sorted(names) == sorted(SEQUENCE_MEASURES)


def test_every_measure_is_documented_and_labelled() -> None:
    for measure in (*TOKEN_MEASURES.values(), *SEQUENCE_MEASURES.values()):
        assert measure.formula, measure.name
        assert measure.source, measure.name
        assert measure.label, measure.name
        assert isinstance(measure.label, Words) or measure.posterior, measure.name


def test_measures_need_statistics_of_the_store() -> None:
    for measure in TOKEN_MEASURES.values():
        assert set(measure.needs) <= set(TokenStatistics.__dataclass_fields__), measure.name


def test_only_comparisons_of_texts_have_no_quantity() -> None:
    of_texts = (Estimator.MEMBER_DECODES, Estimator.HYPOTHESES)
    for measure in SEQUENCE_MEASURES.values():
        has_none = measure.quantity is None
        assert has_none == (measure.estimator in of_texts), measure.name


def test_measures_have_their_ranges_of_values() -> None:
    for name in ("expr_mi", "expr_epkl", "expr_pmi"):
        assert TOKEN_MEASURES[name].range is Range.REAL, name
    for name in ("data", "prex_entropy", "expr_entropy"):
        assert TOKEN_MEASURES[name].range is Range.ENTROPY, name
    for name in ("prex_mi", "prex_epkl", "prex_rmi", "prex_pmi", "prex_score", "expr_score"):
        assert TOKEN_MEASURES[name].range is Range.NOT_NEGATIVE, name
    for name in ("expr_rmi", "expr_mi_w", "expr_epkl_w", "expr_mi_kl"):
        assert TOKEN_MEASURES[name].range is Range.NOT_NEGATIVE, name


@pytest.mark.parametrize("name", [*TOKEN_MEASURES])
def test_a_measure_reads_only_the_statistics_that_it_needs(
    store_of: Callable[..., Store], random_hypothesis: Callable[..., Hypothesis], name: str
) -> None:
    measure = TOKEN_MEASURES[name]
    store = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    (block,) = token_blocks(store)
    statistics = block.statistics.statistics
    unread = {
        field: np.full_like(getattr(statistics, field), np.nan)
        for field in TokenStatistics.__dataclass_fields__
        if field not in measure.needs
    }
    # Shared quantities are cached, so use a new block.
    reduced = type(block.statistics)(replace(statistics, **unread), block.statistics.log_weight)
    np.testing.assert_array_equal(measure.compute(reduced), block.measures[name])


def test_a_measure_without_a_rule_for_bounds_is_not_compared_with_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        TOKEN_MEASURES, "prex_mi", replace(TOKEN_MEASURES["prex_mi"], topk_bounds=None)
    )
    listed, tail = np.log([[[0.75], [0.75]]]), np.log([[0.25, 0.25]])
    bounds = token_bounds(listed, tail, listed[:, :, 0], np.full((1, 2), np.log(0.5)), 3)
    assert {"prex_rmi", "prex_score"} <= set(bounds)
    assert "prex_mi" not in bounds


def test_sequence_table_has_every_measure_that_a_store_can_give(
    store_of: Callable[..., Store], random_hypothesis: Callable[..., Hypothesis]
) -> None:
    store = store_of([[random_hypothesis(0)]], n_member=3, vocab_size=8)
    table = sequence_measures(store, beam=1, temperature=1, length_norm=True)
    of_beams = {
        name
        for name, measure in SEQUENCE_MEASURES.items()
        if measure.estimator not in (Estimator.SAMPLE_MEAN, Estimator.MEMBER_SAMPLE_MEAN)
    }
    assert set(table.columns[5:]) == of_beams
