"""A weighted metric fills a cell: numbers, reason, signature and draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import resample_weights, resampled_values
from pipeline.metrics.cell import Cell, Key
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation, read_draws, write_draws
from pipeline.quality.weighted_metric import weighted_mean

CELL = Cell("nmt_ende", "MED", "random_init", "prex", "beam", metric="nll", signature="decode")
EVERY = np.ones(4, dtype=bool)
VALUE = np.array([1.0, 2.0, 4.0, 9.0])


def test_a_filled_cell_has_value_interval_and_signature(evaluation: Evaluation) -> None:
    cell = evaluation.filled(CELL, weighted_mean(VALUE), evaluation.weights(EVERY), "NLL")
    draws = resample_weights(4, 30, 0) @ VALUE / 4
    assert (cell.value, cell.n, cell.reason, cell.spread) == (4, 4, "", None)
    assert (cell.low, cell.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    assert cell.signature == "decode; NLL; bootstrap|n:30|seed:0|interval:percentile-95"


def test_an_undefined_metric_leaves_the_reason_to_the_caller(evaluation: Evaluation) -> None:
    weights = evaluation.weights(EVERY)
    undefined = [weighted_mean(VALUE), weighted_mean(VALUE * np.nan)]
    cell = evaluation.mean_filled(CELL, undefined, weights, "NLL")
    assert (cell.value, cell.low, cell.n, cell.spread, cell.reason) == (None, None, 4, None, "")


def test_the_mean_over_replicates_has_its_own_interval(evaluation: Evaluation) -> None:
    weights = evaluation.weights(EVERY)
    group = [weighted_mean(VALUE), weighted_mean(VALUE[::-1] + 2)]
    cell = evaluation.mean_filled(CELL, group, weights, "NLL")
    assert cell.value == 5
    assert cell.spread == pytest.approx(np.sqrt(2))
    draws = weights @ (VALUE + VALUE[::-1] + 2) / 8
    assert (cell.low, cell.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))


def test_resamples_are_drawn_over_all_sentences_of_the_test_set(evaluation: Evaluation) -> None:
    every = resample_weights(4, 30, 0)
    np.testing.assert_array_equal(evaluation.weights(EVERY), every)
    used = np.array([True, False, True, True])
    np.testing.assert_array_equal(evaluation.weights(used), every[:, [0, 2, 3]])


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
    weights = recording.weights(np.ones(4, dtype=bool))
    metric = weighted_mean(VALUE)
    cell = recording.filled(CELL, metric, weights, "NLL")
    assert cell == evaluation.filled(CELL, metric, weights, "NLL")
    draws = resampled_values(metric, resample_weights(4, evaluation.resamples, evaluation.seed))
    np.testing.assert_allclose(recording.draws[CELL.key], draws, rtol=1e-6)


def test_cells_without_interval_have_no_draws(evaluation: Evaluation) -> None:
    recording = recorded(evaluation, 0)
    recording.filled(CELL, weighted_mean(VALUE), recording.weights(np.ones(4, bool)), "NLL")
    recording = recorded(evaluation, 50)
    recording.filled(CELL, weighted_mean(VALUE[:1]), recording.weights(np.ones(1, bool)), "NLL")
    assert recording.draws == {}


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
