from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import ConfigError
from pipeline.metrics.bootstrap import percentile_interval
from pipeline.metrics.cell import Cell, Key
from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.report.claims import Claim, Side, Verdict, write_claims
from pipeline.report.paper_claims import claims_of_our_own, claims_of_the_paper
from pipeline.report.paper_numbers import paper_columns
from pipeline.report.verdicts import verdicts

MakeFrame = Callable[..., pd.DataFrame]
CLAIMS = {**claims_of_the_paper(), **claims_of_our_own()}
CLAIM = Claim("S beats C.", "here", ("tab:sequence-error-detection",), ("prr",),
              Side(("prex_entropy_s",)), Side(("prex_entropy_c",)))  # fmt: skip
GENERATOR = np.random.default_rng(0)


def prr(column: str, value: float, reason: str = "", **changes: str) -> Cell:
    fields = {"test_set": "newstest14", "ensemble": "random_init", **changes}
    return Cell(
        task="nmt_ende",
        hypotheses="prex",
        regime="beam",
        B="1",
        column=column,
        metric="prr",
        value=value,
        n=400,
        groups=100,
        reason=reason,
        roles="nwt14",
        **fields,
    )


def around(*cells: Cell, width: float = 1.0) -> dict[Key, np.ndarray]:
    """Return correlated bootstrap draws of cells, each with a little noise."""
    together = GENERATOR.normal(size=400) * 10
    return {
        cell.key: (cell.value or 0) + together + GENERATOR.normal(size=400) * width / 4
        for cell in cells
    }


def only_verdict(frame: pd.DataFrame, draws: dict[Key, np.ndarray], claim: Claim) -> Verdict:
    (verdict,) = verdicts({"claim": claim}, frame, draws, {})
    return verdict


@pytest.mark.parametrize(
    ("better", "expected"), [(43.0, "holds"), (37.0, "does not hold"), (40.1, "undecided")]
)
def test_the_interval_of_the_paired_difference_decides(
    frame_of: MakeFrame, better: float, expected: str
) -> None:
    cells = prr("prex_entropy_s", better), prr("prex_entropy_c", 40.0)
    draws = around(*cells)
    verdict = only_verdict(frame_of(*cells), draws, CLAIM)
    assert verdict.verdict == expected
    assert verdict.value == pytest.approx(better - 40)
    difference = draws[cells[0].key] - draws[cells[1].key]
    interval = percentile_interval(difference, 100)
    assert (verdict.low, verdict.high) == pytest.approx((interval.low, interval.high))
    assert verdict.compared == "one ensemble"
    assert verdict.cells == (cells[0].key, cells[1].key)
    assert verdict.reason == ("the interval includes 0" if expected == "undecided" else "")
    counts = (verdict.n_set, verdict.n_supporting, verdict.n_contradicting)
    assert counts == (1, int(expected == "holds"), int(expected == "does not hold"))


def test_lower_is_better_for_error_rates(frame_of: MakeFrame) -> None:
    shared = {"task": "nmt_ende", "test_set": "MED", "regime": "teacher_forcing", "groups": 99}
    ensemble = Cell(ensemble="random_init", hypotheses="prex", column="nll", metric="nll",
                    value=1.2, **shared)  # fmt: skip
    single = Cell(ensemble="single", hypotheses="-", column="nll", metric="nll",
                  value=1.5, **shared)  # fmt: skip
    name = "ensembles_beat_singles_in_nll"
    draws = around(ensemble, single, width=0.1)
    (verdict,) = verdicts({name: CLAIMS[name]}, frame_of(ensemble, single), draws, {})
    assert (verdict.verdict, verdict.value) == ("holds", pytest.approx(0.3))
    assert "newstest14 is not part of this run" in verdict.reason


def test_a_side_is_the_best_or_the_mean_of_its_cells(frame_of: MakeFrame) -> None:
    cells = prr("prex_mi_c", 10.0), prr("prex_epkl_c", 30.0), prr("prex_rmi_s", 22.0)
    frame, draws = frame_of(*cells), around(*cells)
    for best, expected in ((True, -8.0), (False, 2.0)):
        claim = Claim("M", "", CLAIM.tables, ("prr",), Side(("prex_rmi_s",)),
                      Side(("prex_mi_c", "prex_epkl_c"), best=best))  # fmt: skip
        assert only_verdict(frame, draws, claim).value == pytest.approx(expected)
    below = Claim("below 50", "", CLAIM.tables, ("prr",), 50.0, Side(("prex_rmi_s",)))
    assert only_verdict(frame, draws, below).value == pytest.approx(28)


def test_a_claim_with_missing_cells_is_undecided(frame_of: MakeFrame) -> None:
    better, worse = prr("prex_entropy_s", 43.0), prr("prex_entropy_c", 40.0)
    draws = around(better, worse)
    incomplete = only_verdict(frame_of(better), draws, CLAIM)
    assert incomplete.reason == "prex_entropy_c was not computed for newstest14"
    no_draws = only_verdict(frame_of(better, worse), {better.key: draws[better.key]}, CLAIM)
    assert no_draws.reason == "prex_entropy_c has no bootstrap draws (newstest14)"
    constant = prr("prex_entropy_c", 0.0, CONSTANT)
    of_constant = only_verdict(frame_of(better, constant), draws, CLAIM)
    assert of_constant.reason == f"{CONSTANT} (newstest14)"
    assert verdicts(CLAIMS, frame_of(), {}, {}) == []
    for verdict in (incomplete, no_draws, of_constant):
        assert (verdict.verdict, verdict.value, verdict.cells) == ("undecided", None, ())


def test_the_ensemble_of_the_run_replaces_that_of_the_paper(frame_of: MakeFrame) -> None:
    cells = [prr(name, value, ensemble="snapshot")
             for name, value in (("prex_entropy_s", 43.0), ("prex_entropy_c", 40.0))]  # fmt: skip
    assert only_verdict(frame_of(*cells), around(*cells), CLAIM).verdict == "holds"


def test_a_claim_without_cells_in_its_tables_is_refused(frame_of: MakeFrame) -> None:
    wrong = Claim("x", "", ("tab:none",), ("prr",), Side(), Side())
    with pytest.raises(ConfigError, match="claim mine: the paper's tables tab:none have no cells"):
        verdicts({"mine": wrong}, frame_of(), {}, {})


def test_all_claims_hold_for_the_numbers_of_the_paper(
    like_paper: Callable[..., list[Cell]],
) -> None:
    """Claims for which the paper prints no numbers are undecided."""
    labels = {label for claim in CLAIMS.values() for label in claim.tables}
    paper: dict[Key, Cell] = {}
    for label in sorted(labels):
        for cell in like_paper(label, "nmt_ende", "nmt_enfr", "asr"):
            paper.setdefault(cell.key, cell)
    frame = pd.DataFrame([vars(cell) for cell in paper.values()])
    frame["spread"] = np.nan
    draws = {key: np.full(10, cell.value, dtype=float) for key, cell in paper.items()}
    judged = verdicts(CLAIMS, frame, draws, {})
    by_verdict: dict[str, set[str]] = {}
    for verdict in judged:
        by_verdict.setdefault(verdict.verdict, set()).add(f"{verdict.name} {verdict.task}")
    assert by_verdict["undecided"] == {
        f"{name} {task}"
        for name, tasks in {
            "checkpoints_beat_singles": ("nmt_enfr",),
            "random_init_beats_checkpoints": ("nmt_enfr",),
            "checkpoints_beat_singles_nll": ("nmt_enfr",),
            "random_init_beats_checkpoints_nll": ("nmt_enfr",),
            "higher_temperature_helps_ood_in_translation": ("nmt_ende", "nmt_enfr"),
            "higher_temperature_hurts_ood_in_speech": ("asr",),
            "exact_expr_helps_errors": ("nmt_ende", "nmt_enfr", "asr"),
            "exact_expr_helps_ood": ("nmt_ende", "nmt_enfr", "asr"),
        }.items()
        for task in tasks
    }
    assert by_verdict.keys() == {"holds", "undecided"}


def test_files_list_every_verdict_with_its_cells(frame_of: MakeFrame, tmp_path: Path) -> None:
    cells = prr("prex_entropy_s", 43.0), prr("prex_entropy_c", 40.0)
    judged = verdicts({"joint": CLAIM, **claims_of_our_own()}, frame_of(*cells), around(*cells), {})
    write_claims(tmp_path, judged)
    with (tmp_path / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["claim"] for row in rows] == ["joint", "exact_expr_helps_errors",
                                              "exact_expr_helps_ood"]  # fmt: skip
    assert rows[0]["verdict"] == "holds"
    assert rows[0]["cells"].split() == [cell.tracked_name for cell in cells]
    assert (rows[1]["value"], rows[1]["verdict"]) == ("", "undecided")
    shown = (tmp_path / "claims.md").read_text(encoding="utf-8")
    row = next(line for line in shown.splitlines() if line.startswith("| S beats C."))
    values = [value.strip() for value in row.strip("|").split("|")]
    assert values[:3] == ["S beats C.", "nmt\\_ende", "**holds**"]
    assert values[3].startswith("3.0 \\[")
    assert cells[0].tracked_name in shown
    assert "nan" not in shown


def test_claims_use_columns_of_their_tables() -> None:
    for name, claim in claims_of_the_paper().items():
        columns = {column for label in claim.tables for column in paper_columns(label)}
        for side in (claim.better, claim.worse):
            assert not isinstance(side, Side) or set(side.columns) <= columns, name
