"""Cells of external scores of replicates, and what PRR depends on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.metrics import prediction_rejection_ratio
from pipeline.metrics.bootstrap import resample
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation
from pipeline.metrics.external_scores import ExternalScores
from pipeline.metrics.rejection import weighted_rejection_ratio
from pipeline.metrics.score_cells import score_cells

U = {"a": [1.0, 9, 5, 4, 3, 6, 8, 7], "b": [2.0, 1, 3, 3.5, 3, 8, 6, 4]}
SCORES = {"a": [9.0, 1, 2, 6, 4, 5, 3, np.nan], "b": [3.0, 4, 1, 2, 2, 7, 7, 8]}
GROUPS = list("ggkkmmnn")


def decode(folder: Path, part: str) -> Decode:
    members, runs = (f"{part}1", f"{part}2"), (f"run_{part}",) * 2
    cell = Cell("task", "talks", "checkpoint", "prex", "beam", runs=f"run_{part}")
    texts: list[str | None] = list("abcdefgh")
    path = folder / part / "store.h5"
    return Decode(
        path, cell, False, members, ["s"] * 8, texts, texts, GROUPS, None, member_runs=runs
    )


def write_measures(folder: Path, part: str) -> None:
    setting = {"beam": 1, "temperature": 1.0, "length_norm": True, "flag": 0}
    (folder / part).mkdir()
    frame = pd.DataFrame({"sentence_id": range(8)} | setting | {"u": U[part]})
    frame.to_parquet(folder / part / "sequence.parquet")


def cells_of(folder: Path, evaluation: Evaluation, parts: str) -> dict[tuple[str, str], Cell]:
    decodes = {part: decode(folder, part) for part in "ab"}
    for part in decodes:
        write_measures(folder, part)
    values = {decodes[part].path: np.array(SCORES[part]) for part in parts}
    kind = ExternalScores("mqm", False, values, dict.fromkeys(values, "sha"))
    cells = score_cells([kind], decodes, [], folder, True, evaluation)
    return {(cell.column, cell.metric): cell for cell in cells}


def test_a_cell_is_the_mean_over_replicates_of_the_sentences_that_all_have(
    tmp_path: Path, evaluation: Evaluation
) -> None:
    cells = cells_of(tmp_path, evaluation, "ab")
    taus = [stats.kendalltau(SCORES[part][:7], U[part][:7]).statistic for part in "ab"]
    cell = cells["u", "kendall_mqm"]
    assert cell.value == pytest.approx(np.mean(taus))
    assert cell.spread == pytest.approx(np.std(taus, ddof=1))
    assert (cell.n, cell.groups, cell.runs) == (7, 4, "run_a;run_b")
    assert cells["mqm", "mqm"].value == pytest.approx((30 + 26) / 14)


def test_a_replicate_without_scores_is_left_out(tmp_path: Path, evaluation: Evaluation) -> None:
    cells = cells_of(tmp_path, evaluation, "b")
    expected = prediction_rejection_ratio(SCORES["b"], U["b"])
    cell = cells["u", "prr_mqm"]
    assert (cell.value, cell.n, cell.runs) == (pytest.approx(expected), 8, "run_b")


def test_draws_are_those_of_the_shared_resamples_of_groups(
    tmp_path: Path, evaluation: Evaluation
) -> None:
    recorded = RecordedEvaluation(evaluation.quality, 50, 0, "measures")
    cell = cells_of(tmp_path, recorded, "b")["u", "spearman_mqm"]
    assert "unit:group|groups:4" in cell.signature
    draws = {key.column: draw for key, draw in recorded.draws.items() if key.metric == cell.metric}
    expected = [
        stats.spearmanr(np.repeat(SCORES["b"], times), np.repeat(U["b"], times)).statistic
        if times.any()
        else np.nan
        for times in resample(GROUPS, 50, 0).weights
    ]
    np.testing.assert_allclose(draws["u"], expected, rtol=1e-6)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 5)), min_size=2, max_size=12),
    st.floats(0.01, 100),
    st.floats(-100, 100),
)
def test_prr_does_not_depend_on_scale_and_zero_of_the_score(
    pairs: list[tuple[int, int]], scale: float, shift: float
) -> None:
    """The ranks of all sentences have a fixed sum, so a constant has no gain in any order."""
    badness, measure = np.array(pairs, dtype=float).T
    weights = resample([str(i) for i in range(len(pairs))], 5, seed=1).weights.astype(float)
    if (badness == badness[0]).all():
        return
    plain = weighted_rejection_ratio(badness, measure)(weights)
    moved = weighted_rejection_ratio(scale * badness + shift, measure)(weights)
    defined = ~np.isnan(plain)
    np.testing.assert_allclose(moved[defined], plain[defined], rtol=1e-6, atol=1e-6)
