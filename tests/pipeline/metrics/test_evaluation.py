"""A weighted metric fills a cell: numbers, reason, signature and draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import percentile_interval, resample, resampled_values
from pipeline.metrics.cell import Cell, Key
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import (
    Evaluation,
    RecordedEvaluation,
    read_draws,
    read_replicates,
    write_draws,
    write_replicates,
)
from pipeline.quality.weighted_metric import weighted_mean

CELL = Cell("nmt_ende", "MED", "random_init", "prex", "beam", metric="nll", signature="decode")
EVERY = np.ones(4, dtype=bool)
VALUE = np.array([1.0, 2.0, 4.0, 9.0])
TEXTS: list[str | None] = ["a", "b", "c", "d"]
DECODE = Decode(Path("store.h5"), CELL, True, ("seed_1",), ["s"] * 4, TEXTS, TEXTS)
PAGES = ["page 1", "page 1", "page 2", "page 3"]
SENTENCES = [f"MED:{number}" for number in range(4)]


def test_a_filled_cell_has_value_interval_and_signature(evaluation: Evaluation) -> None:
    cell = evaluation.filled(CELL, weighted_mean(VALUE), evaluation.resampled(DECODE, EVERY), "NLL")
    weights = resample(SENTENCES, 30, 0).weights.astype(float)
    draws = weights @ VALUE / weights.sum(axis=1)
    interval = percentile_interval(draws, 4)
    assert (cell.value, cell.n, cell.groups, cell.spread) == (4, 4, 4, None)
    assert (cell.low, cell.high, cell.reason) == (interval.low, interval.high, interval.reason)
    assert cell.signature == (
        "decode; NLL; bootstrap|n:30|seed:0|unit:sentence, no groups|groups:4"
        "|interval:expanded-percentile-95"
    )


def test_an_undefined_metric_leaves_the_reason_to_the_caller(evaluation: Evaluation) -> None:
    resamples = evaluation.resampled(DECODE, EVERY)
    undefined = [weighted_mean(VALUE), weighted_mean(VALUE * np.nan)]
    cell = evaluation.mean_filled(CELL, undefined, ["a", "b"], resamples, "NLL")
    assert (cell.value, cell.low, cell.n, cell.spread, cell.reason) == (None, None, 4, None, "")


def test_the_mean_over_replicates_has_its_own_interval(evaluation: Evaluation) -> None:
    resamples = evaluation.resampled(DECODE, EVERY)
    replicates = [weighted_mean(VALUE), weighted_mean(VALUE[::-1] + 2)]
    cell = evaluation.mean_filled(CELL, replicates, ["a", "b"], resamples, "NLL")
    assert cell.value == 5
    assert cell.spread == pytest.approx(np.sqrt(2))
    weights = resamples.weights.astype(float)
    draws = weights @ (VALUE + VALUE[::-1] + 2) / 2 / weights.sum(axis=1)
    interval = percentile_interval(draws, 4)
    assert (cell.low, cell.high) == pytest.approx((interval.low, interval.high))


def test_a_cell_without_groups_in_its_store_says_so(evaluation: Evaluation) -> None:
    resamples = evaluation.resampled(DECODE, EVERY)
    np.testing.assert_array_equal(resamples.weights, resample(SENTENCES, 30, 0).weights)
    assert (resamples.unit, resamples.n_group) == ("sentence, no groups", 4)


def test_groups_of_the_store_are_resampled_unless_sentences_are_asked_for(
    evaluation: Evaluation,
) -> None:
    grouped = replace(DECODE, groups=PAGES, originals=["help:7", "help:9", "help:10", "help:12"])
    resamples = evaluation.resampled(grouped, EVERY)
    np.testing.assert_array_equal(resamples.weights, resample(PAGES, 30, 0).weights)
    assert (resamples.unit, resamples.n_group) == ("group", 3)
    by_sentence = replace(evaluation, unit="sentence").resampled(grouped, EVERY)
    assert (by_sentence.unit, by_sentence.n_group) == ("sentence", 4)


@pytest.mark.parametrize("unit", ["group", "sentence"])
def test_a_distorted_set_that_lacks_a_sentence_stays_paired(
    evaluation: Evaluation, unit: str
) -> None:
    """Sentence 1 cannot be permuted, so the permuted set has three sentences."""
    evaluation = replace(evaluation, unit=unit)
    originals = [f"help:{number}" for number in range(4)]
    baseline = replace(DECODE, groups=PAGES, originals=originals)
    permuted = replace(
        DECODE,
        cell=replace(CELL, test_set="PRM"),
        sources=["s"] * 3,
        texts=TEXTS[:3],
        references=[None] * 3,
        groups=[PAGES[0], *PAGES[2:]],
        originals=[originals[0], *originals[2:]],
    )
    np.testing.assert_array_equal(
        evaluation.resampled(permuted, EVERY[:3]).weights,
        evaluation.resampled(baseline, EVERY).weights[:, [0, 2, 3]],
    )


def test_sentences_without_a_value_leave_the_resamples_of_all_others_unchanged(
    evaluation: Evaluation,
) -> None:
    used = np.array([True, False, True, True])
    np.testing.assert_array_equal(
        evaluation.resampled(DECODE, used).weights,
        evaluation.resampled(DECODE, EVERY).weights[:, [0, 2, 3]],
    )


@pytest.mark.parametrize(
    ("of_decode", "of_metric", "both"),
    [("a", "b", "a; b"), ("", "b", "b"), ("a", "", "a"), ("", "", "")],
)
def test_signatures_are_joined(
    evaluation: Evaluation, of_decode: str, of_metric: str, both: str
) -> None:
    cell = Cell("nmt_ende", "MED", "random_init", "prex", "beam", signature=of_decode)
    assert evaluation.signed(cell, of_metric) == both


def recorded(plain: Evaluation, resamples: int) -> RecordedEvaluation:
    return RecordedEvaluation(**{**vars(plain), "resamples": resamples})


def test_recording_keeps_draws_and_leaves_cells_unchanged(evaluation: Evaluation) -> None:
    recording = recorded(evaluation, evaluation.resamples)
    resamples = recording.resampled(DECODE, EVERY)
    metric = weighted_mean(VALUE)
    cell = recording.filled(CELL, metric, resamples, "NLL")
    assert cell == evaluation.filled(CELL, metric, resamples, "NLL")
    draws = resampled_values(metric, resamples.weights)
    np.testing.assert_allclose(recording.draws[CELL.key], draws, rtol=1e-6)


def test_cells_without_interval_have_no_draws(evaluation: Evaluation) -> None:
    recording = recorded(evaluation, 0)
    recording.filled(CELL, weighted_mean(VALUE), recording.resampled(DECODE, EVERY), "NLL")
    recording = recorded(evaluation, 50)
    one = np.array([True, False, False, False])
    recording.filled(CELL, weighted_mean(VALUE[:1]), recording.resampled(DECODE, one), "NLL")
    assert recording.draws == {}


def test_replicates_are_kept_by_their_training_runs(evaluation: Evaluation) -> None:
    recording = recorded(evaluation, 0)
    resamples = recording.resampled(DECODE, EVERY)
    metrics = [weighted_mean(VALUE + shift) for shift in (0, 1, 4)]
    runs = ["seed_1", "seed_2", "seed_2"]
    assert recording.mean_filled(CELL, metrics, runs, resamples, "NLL").value == pytest.approx(
        17 / 3
    )
    assert recording.replicates == {CELL.key: {"seed_1": 4, "seed_2": 6.5}}
    recording.record_replicates(CELL.key, {"seed_3": 1.0})
    assert recording.replicates[CELL.key].keys() == {"seed_1", "seed_2", "seed_3"}


def test_replicates_round_trip_through_their_file(tmp_path: Path) -> None:
    second = Key(*CELL.key)._replace(T="10", test_set="a, b")
    replicates = {CELL.key: {"seed_1": 4.5, "seed_1;seed_2": -1 / 3}, second: {"x": 0.0}}
    write_replicates(tmp_path / "a.csv", replicates)
    write_replicates(tmp_path / "b.csv", {})
    result = read_replicates([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert result == {key: pytest.approx(values) for key, values in replicates.items()}


@pytest.mark.parametrize("text", ["no table\nx\n", None])
def test_a_file_without_replicates_is_rejected_by_name(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "replicates.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"replicates\.csv: not a table of replicates"):
        read_replicates([path])


def test_draws_round_trip_through_their_file(tmp_path: Path) -> None:
    second = Key(*CELL.key)._replace(T="10", test_set="L-FR")
    draws = {CELL.key: np.arange(3, dtype=np.float32), second: np.ones(3, dtype=np.float32)}
    write_draws(tmp_path / "a.parquet", draws)
    write_draws(tmp_path / "b.parquet", {})
    result = read_draws([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert {key: values.tolist() for key, values in result.items()} == {
        CELL.key: [0, 1, 2],
        second: [1, 1, 1],
    }
    again = tmp_path / "c.parquet"
    write_draws(again, draws)
    assert again.read_bytes() == (tmp_path / "a.parquet").read_bytes()


def test_a_file_without_draws_is_rejected_by_name(tmp_path: Path) -> None:
    path = tmp_path / "draws.parquet"
    path.write_text("no table", encoding="utf-8")
    with pytest.raises(DataError, match=r"draws\.parquet: not a table of draws"):
        read_draws([path])
