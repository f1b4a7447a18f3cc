from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.bootstrap import resample_weights, resampled_values
from pipeline.metrics.cell import Cell, Key
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation, read_draws, write_draws
from pipeline.quality.weighted_metric import weighted_mean

CELL = Cell("nmt_ende", "newstest14", "random_init", "prex", "beam", metric="nll")
VALUE = np.array([1.0, 2.0, 4.0, 8.0])


def recorded(plain: Evaluation, resamples: int) -> RecordedEvaluation:
    return RecordedEvaluation(**{**vars(plain), "resamples": resamples})


def test_cells_are_as_without_recording_and_draws_are_kept(evaluation: Evaluation) -> None:
    recording = recorded(evaluation, evaluation.resamples)
    weights = recording.weights(np.ones(4, dtype=bool))
    statistic = weighted_mean(VALUE)
    cell = recording.filled(CELL, statistic, weights, "NLL")
    assert cell == evaluation.filled(CELL, statistic, weights, "NLL")
    draws = resampled_values(statistic, resample_weights(4, evaluation.resamples, evaluation.seed))
    np.testing.assert_allclose(recording.draws[CELL.key], draws, rtol=1e-6)


def test_what_has_no_interval_has_no_draws(evaluation: Evaluation) -> None:
    recording = recorded(evaluation, 0)
    recording.filled(CELL, weighted_mean(VALUE), recording.weights(np.ones(4, bool)), "NLL")
    recording = recorded(evaluation, 50)
    recording.filled(CELL, weighted_mean(VALUE[:1]), recording.weights(np.ones(1, bool)), "NLL")
    assert recording.draws == {}


def test_draws_come_back_from_their_file(tmp_path: Path) -> None:
    other = Key(*CELL.key)._replace(T="10", test_set="L-FR")
    draws = {CELL.key: np.arange(3, dtype=np.float32), other: np.ones(3, dtype=np.float32)}
    write_draws(tmp_path / "a.parquet", draws)
    write_draws(tmp_path / "b.parquet", {})
    found = read_draws([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert {key: one.tolist() for key, one in found.items()} == {
        CELL.key: [0, 1, 2],
        other: [1, 1, 1],
    }
    again = tmp_path / "c.parquet"
    write_draws(again, draws)
    assert again.read_bytes() == (tmp_path / "a.parquet").read_bytes()


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "draws.parquet"
    path.write_text("no table", encoding="utf-8")
    with pytest.raises(DataError, match=r"draws\.parquet: not a table of draws"):
        read_draws([path])
