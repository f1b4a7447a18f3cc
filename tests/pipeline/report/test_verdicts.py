"""Verdicts need the interval and the training runs; both sides stand on the same runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pipeline.metrics.cell import Cell, Key
from pipeline.report.claims import Claim, Side, Verdict
from pipeline.report.paper_claims import claims_of_our_own, claims_of_the_paper
from pipeline.report.verdicts import verdicts

MakeFrame = Callable[..., pd.DataFrame]
CLAIMS = {**claims_of_the_paper(), **claims_of_our_own()}
RUNS = ("seed_1", "seed_2", "seed_3", "seed_4")
ALL = ";".join(RUNS)
PRR = ("tab:sequence-error-detection",)


def nll(ensemble: str, value: float, runs: str = ALL, members: int = 4) -> Cell:
    hypotheses = "-" if members == 1 else "prex"
    key = ("nmt_ende", "MED", ensemble, hypotheses, "teacher_forcing")
    numbers = {"value": value, "n": 400, "groups": 90, "runs": runs, "members": members}
    return Cell(*key, column="nll", metric="nll", **numbers)  # type: ignore[arg-type]


def prr(column: str, value: float) -> Cell:
    key = ("nmt_ende", "newstest14", "random_init", "prex", "beam")
    numbers = {"value": value, "n": 400, "groups": 90, "runs": ALL, "members": 4}
    return Cell(*key, B="1", column=column, metric="prr", roles="nwt14", **numbers)  # type: ignore[arg-type]


def judged(
    frame_of: MakeFrame,
    claim: str | Claim,
    cells: Mapping[Cell, Mapping[str, float]],
    noise: float = 0.01,
    n_undefined: int = 0,
) -> Verdict:
    """The verdict on cells, which are given with the values of their replicates."""
    generator = np.random.default_rng(0)
    draws: dict[Key, np.ndarray] = {}
    for cell in cells:
        draws[cell.key] = (cell.value or 0) + generator.normal(size=400) * noise
        draws[cell.key][:n_undefined] = np.nan
    replicates = {cell.key: values for cell, values in cells.items()}
    claims = {"c": CLAIMS[claim] if isinstance(claim, str) else claim}
    (verdict,) = verdicts(claims, frame_of(*cells), draws, replicates)
    return verdict


def each(*values: float) -> dict[str, float]:
    return dict(zip(RUNS, values, strict=False))


def test_a_claim_holds_if_all_pairs_of_runs_agree(frame_of: MakeFrame) -> None:
    pair = {
        nll("random_init", 1.0): {ALL: 1.0},
        nll("checkpoint", 1.4): each(1.3, 1.4, 1.4, 1.5),
        nll("checkpoint_average", 1.5, members=1): each(1.4, 1.5, 1.5, 1.6),
    }
    verdict = judged(frame_of, "checkpoints_beat_singles_nll", pair)
    assert (verdict.verdict, verdict.compared) == ("holds", "4 of 4 training runs agree")
    assert (verdict.n_run, verdict.n_run_agreeing) == (4, 4)
    assert "different training runs" not in verdict.reason


def test_runs_that_disagree_leave_a_claim_undecided(frame_of: MakeFrame) -> None:
    runs = "seed_1;seed_2"
    pair = {
        nll("random_init", 1.0): {ALL: 1.0},
        nll("checkpoint", 1.4, runs): each(1.2, 1.6),
        nll("checkpoint_average", 1.5, runs, 1): each(1.5, 1.5),
    }
    verdict = judged(frame_of, "checkpoints_beat_singles_nll", pair)
    assert verdict.low is not None
    assert verdict.low > 0
    assert verdict.verdict == "undecided"
    assert verdict.reason.startswith("only 1 of 2 training runs agree")
    assert verdict.compared == "1 of 2 training runs agree"


def test_runs_must_also_agree_against_a_claim(frame_of: MakeFrame) -> None:
    for last, expected in ((1.6, "does not hold"), (1.3, "undecided")):
        pair = {
            nll("random_init", 1.0): {ALL: 1.0},
            nll("checkpoint", 1.6): each(1.6, 1.6, 1.6, last),
            nll("checkpoint_average", 1.5, members=1): each(1.5, 1.5, 1.5, 1.5),
        }
        verdict = judged(frame_of, "checkpoints_beat_singles_nll", pair)
        assert verdict.verdict == expected


def test_one_ensemble_is_compared_with_each_replicate_of_the_other_side(
    frame_of: MakeFrame,
) -> None:
    pair = {
        nll("random_init", 1.3): {ALL: 1.3, "seed_1;seed_2;seed_3": 9.0},
        nll("checkpoint", 1.5): each(1.2, 1.6, 1.6, 1.6),
    }
    verdict = judged(frame_of, "random_init_beats_checkpoints_nll", pair)
    assert verdict.reason.startswith("only 3 of 4 training runs agree")


def test_ensembles_without_one_run_are_compared_with_the_members_of_their_runs(
    frame_of: MakeFrame,
) -> None:
    three, other = "seed_1;seed_2;seed_3", "seed_2;seed_3;seed_4"
    for of_other, words in (
        (1.39, "2 of 2 ensembles, each without one training run, agree"),
        (1.41, "1 of 2 ensembles, each without one training run, agree"),
    ):
        pair = {
            nll("random_init", 1.0): {ALL: 1.0, three: 1.1, other: of_other},
            nll("single", 1.35, members=1): each(1.2, 1.3, 1.4, 1.5),
        }
        verdict = judged(frame_of, "ensembles_beat_singles_in_nll", pair)
        assert verdict.compared == words
        assert (verdict.verdict == "holds") == words.startswith("2")


def test_two_measures_are_compared_in_the_same_subsets(frame_of: MakeFrame) -> None:
    claim = Claim("x", "", PRR, ("prr",), Side(("prex_entropy_s",)), Side(("prex_entropy_c",)))
    three, other = "seed_1;seed_2;seed_3", "seed_2;seed_3;seed_4"
    pair = {
        prr("prex_entropy_s", 50.0): {ALL: 50.0, three: 49.0, other: 40.0},
        prr("prex_entropy_c", 45.0): {ALL: 45.0, three: 44.0, other: 41.0},
    }
    verdict = judged(frame_of, claim, pair, noise=1)
    assert verdict.reason == "only 1 of 2 ensembles, each without one training run, agree"
    alone = {cell: {ALL: cell.value or 0.0} for cell in pair}
    verdict = judged(frame_of, claim, alone, noise=1)
    assert (verdict.verdict, verdict.n_run, verdict.compared) == ("holds", 0, "one ensemble")


def test_a_constant_is_compared_with_every_replicate(frame_of: MakeFrame) -> None:
    claim = Claim("x", "", PRR, ("prr",), 50.0, Side(("prex_entropy_s",)))
    pair = {prr("prex_entropy_s", 45.0): {"seed_1": 44.0, "seed_2": 51.0}}
    assert judged(frame_of, claim, pair).reason == "only 1 of 2 training runs agree"


def test_the_best_column_is_chosen_once(frame_of: MakeFrame) -> None:
    """Of twenty equally good columns, the best on each resample would look better than one."""
    columns = [f"prex_{name}" for name in ("entropy_c", "mi_c", "epkl_c", "rmi_c", "rmi_s")]
    claim = Claim("x", "", PRR, ("prr",), Side(tuple(columns)), Side(("prex_entropy_s",)))
    cells = {prr(column, 40.0 + 1e-6 * i): {} for i, column in enumerate(columns)}
    verdict = judged(frame_of, claim, cells | {prr("prex_entropy_s", 40.0): {}}, noise=1.0)
    assert verdict.low is not None
    assert verdict.high is not None
    assert verdict.low < 0 < verdict.high
    assert abs(verdict.low + verdict.high) < 0.6
    assert [key.column for key in verdict.cells] == ["prex_rmi_s", "prex_entropy_s"]


@pytest.mark.parametrize(
    ("n_undefined", "expected"), [(0, "holds"), (20, "holds"), (21, "undecided")]
)
def test_a_few_undefined_resamples_are_left_out_and_counted(
    frame_of: MakeFrame, n_undefined: int, expected: str
) -> None:
    claim = Claim("x", "", PRR, ("prr",), Side(("prex_entropy_s",)), Side(("prex_entropy_c",)))
    cells = {prr("prex_entropy_s", 43.0): {}, prr("prex_entropy_c", 40.0): {}}
    verdict = judged(frame_of, claim, cells, n_undefined=n_undefined)
    assert verdict.verdict == expected
    counted = f"undefined in {n_undefined} of 400 resamples"
    assert (counted in verdict.reason) == (n_undefined > 0)


def test_the_interval_is_that_of_the_smallest_number_of_groups(frame_of: MakeFrame) -> None:
    claim = Claim("x", "", PRR, ("prr",), Side(("prex_entropy_s",)), Side(("prex_entropy_c",)))
    wide, narrow = (
        judged(
            frame_of,
            claim,
            {
                replace(prr("prex_entropy_s", 43.0), groups=groups): {},
                prr("prex_entropy_c", 40.0): {},
            },
        )
        for groups in (5, 90)
    )
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


@pytest.mark.parametrize("name", CLAIMS)
def test_both_sides_of_every_claim_stand_on_the_same_runs_or_it_says_why_not(
    name: str, like_paper: Callable[..., list[Cell]]
) -> None:
    own = {
        "single": ("seed_1;seed_2;seed_3;seed_4", 1),
        "checkpoint_average": ("seed_1;seed_2", 1),
        "checkpoint": ("seed_1;seed_2", 3),
        "random_init": ("seed_1;seed_2;seed_3;seed_4", 4),
    }
    cells: dict[Key, Cell] = {}
    for label in CLAIMS[name].tables:
        for cell in like_paper(label, "nmt_ende", "nmt_enfr", "asr"):
            runs, members = own[cell.ensemble]
            cells.setdefault(cell.key, replace(cell, runs=runs, members=members))
    frame = pd.DataFrame([vars(cell) for cell in cells.values()])
    frame["spread"] = np.nan
    draws = {key: np.full(10, cell.value, dtype=float) for key, cell in cells.items()}
    for verdict in verdicts({name: CLAIMS[name]}, frame, draws, {}):
        compared = [cells[key] for key in verdict.cells]
        runs = {cell.runs for cell in compared}
        members = {cell.members for cell in compared if cell.members > 1}
        assert ("the sides use different training runs" in verdict.reason) == (len(runs) > 1)
        assert ("members against" in verdict.reason) == (len(members) > 1)


def several(frame_of: MakeFrame, claim: str, cells: list[Cell]) -> list[Verdict]:
    draws = {cell.key: np.full(400, cell.value) for cell in cells}
    return verdicts({"c": CLAIMS[claim]}, frame_of(*cells), draws, {})


def test_a_task_of_ones_own_is_judged_in_the_settings_of_the_paper(frame_of: MakeFrame) -> None:
    own = {"task": "en_es", "roles": "", "task_label": "EN-ES", "family": "translation"}
    cells = [
        replace(prr(column, value), **own, test_set=test_set)  # type: ignore[arg-type]
        for test_set in ("news", "talks")
        for column, value in (
            ("prex_entropy_s", 60.0),
            *((column, 50.0) for column in ("expr_entropy_s", "prex_entropy_c", "expr_entropy_c")),
        )
    ]
    (verdict,) = several(frame_of, "joint_beats_chain_for_errors", cells)
    assert (verdict.task, verdict.label, verdict.verdict) == ("en_es", "EN-ES", "holds")
    assert verdict.test_sets == ("news", "talks")
    assert (verdict.value, verdict.n_set, verdict.n_supporting) == (5.0, 2, 2)


def test_claims_about_the_other_family_are_not_tested_in_a_task(
    frame_of: MakeFrame, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    cell = replace(prr("prex_rmi_s", 1.0), task="en_es", family="translation")
    ood = replace(cell, metric="roc_auc", B="20", T="1")
    assert several(frame_of, "total_is_best_for_ood_in_speech", [ood]) == []
    message = "claims that are not tested, since this run has no cells that they are about: c"
    assert message in caplog.text


def test_test_sets_that_the_paper_lacks_are_judged_by_themselves(frame_of: MakeFrame) -> None:
    columns = ("prex_entropy_s", "expr_entropy_s", "prex_entropy_c", "expr_entropy_c")
    named = {"task_label": "EN-DE", "family": "translation"}
    cells = [
        replace(prr(column, value if column.endswith("_s") else 50.0), **named, **of_set)  # type: ignore[arg-type]
        for value, of_set in (
            (60.0, {"test_set": "help", "roles": "newstest14 nwt14"}),
            (40.0, {"test_set": "typos", "roles": ""}),
        )
        for column in columns
    ]
    of_paper, further = several(frame_of, "joint_beats_chain_for_errors", cells)
    assert (of_paper.label, of_paper.test_sets, of_paper.value) == ("EN-DE", ("help",), 10.0)
    assert further.label == "EN-DE, further test sets"
    assert (further.test_sets, further.value) == (("typos",), -10.0)
    assert further.verdict == "does not hold"


def test_a_task_of_the_paper_that_its_table_lacks_is_judged_on_further_test_sets(
    frame_of: MakeFrame,
) -> None:
    only_ende = ("apn-tab:sequence-error-detection-noln",)
    claim = Claim("x", "", only_ende, ("prr",), Side(("prex_entropy_s",)), Side(("prex_rmi_s",)))
    named = {"task": "nmt_enfr", "task_label": "EN-FR", "family": "translation", "roles": ""}
    pair = {
        replace(prr(column, value), test_set="typos", **named): {ALL: value}  # type: ignore[arg-type]
        for column, value in (("prex_entropy_s", 60.0), ("prex_rmi_s", 50.0))
    }
    assert judged(frame_of, claim, pair, noise=1).label == "EN-FR, further test sets"


def test_claims_about_some_of_the_papers_sets_are_not_tested_on_others(
    frame_of: MakeFrame,
) -> None:
    cells = [
        replace(prr(column, 40.0), metric="roc_auc", T="10", B="5", **of_set)  # type: ignore[arg-type]
        for of_set in (
            {"test_set": "french-source", "roles": "L-FR"},
            {"test_set": "typos", "roles": ""},
        )
        for column in ("prex_entropy_c", "prex_entropy_s")
    ]
    (verdict,) = several(frame_of, "copying_hides_total_uncertainty", cells)
    assert verdict.test_sets == ("french-source",)
    assert verdict.value == 10.0
