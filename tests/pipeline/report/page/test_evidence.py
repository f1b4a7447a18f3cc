from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pandas as pd

from pipeline.metrics.cell import Cell, write_cells
from pipeline.report.cells import CellIndex, read_cells
from pipeline.report.claims import Claim, Side, Verdict
from pipeline.report.page.evidence import claim_groups

CLAIM = Claim("A beats B.", "sec:x", (), ("nll",), Side(), Side())
CELL = Cell(
    "nmt_ende", "help", "random_init", "prex", "beam", "10", "5", "true", "prex_entropy_s", "prr",
    value=61.25, low=55.0, high=66.0, n=400, groups=93,
)  # fmt: skip


def test_verdicts_are_grouped_by_claim() -> None:
    decided = Verdict(
        "c", CLAIM, "nmt_ende", "holds", "EN-DE", ("a", "b"), "nll", 0.25, 0.1, 0.4, 2, 1, 0
    )
    undecided = replace(
        Verdict("c", CLAIM, "asr", "undecided", "ASR"), reason="task asr was not run"
    )
    other = Verdict("d", CLAIM, "asr", "undecided", "ASR")
    empty = CellIndex(pd.DataFrame(columns=[field.name for field in fields(Cell)]))
    first, second = claim_groups([decided, other, undecided], empty)
    assert (first.name, first.statement, first.source) == ("c", "A beats B.", "sec:x")
    assert [finding.task for finding in first.findings] == ["EN-DE", "ASR"]
    assert first.findings[0].difference == "0.250 [0.100, 0.400] nats per token"
    assert first.findings[0].remarks == [
        "Mean of 2 test sets (a, b): taken alone, 1 supports the claim"
    ]
    assert first.findings[1].difference == ""
    assert first.findings[1].remarks == ["Task asr was not run"]
    assert second.name == "d"


def test_a_verdict_says_once_whether_training_runs_agree() -> None:
    agreement = "3 of 4 training runs agree"
    empty = CellIndex(pd.DataFrame(columns=[field.name for field in fields(Cell)]))
    holds = Verdict("c", CLAIM, "nmt_ende", "holds", "EN-DE", ("a",), n_set=1, compared=agreement)
    undecided = replace(holds, verdict="undecided", reason=f"only {agreement}")
    (group,) = claim_groups([holds, undecided], empty)
    assert [finding.remarks for finding in group.findings] == [
        ["Test set: a", agreement],
        ["Test set: a", f"Only {agreement}"],
    ]


def test_the_numbers_behind_a_verdict_have_names_in_words(tmp_path: Path) -> None:
    cells = [
        CELL,
        replace(CELL, ensemble="single", hypotheses="-", T="", B="", column="bleu", metric="bleu"),
        replace(CELL, length_norm="false", column="my_own", metric="roc_auc"),
    ]
    write_cells(tmp_path / "cells.csv", cells)
    index = CellIndex(read_cells([tmp_path / "cells.csv"]))
    verdict = Verdict("c", CLAIM, "nmt_ende", "holds", cells=tuple(cell.key for cell in cells))
    numbers = claim_groups([verdict], index)[0].findings[0].numbers
    assert [name for name, _ in numbers] == [
        "help, random-init PrEx: PRR of PrEx total H, S-IW, B = 5, T = 10",
        "help, single: BLEU",
        "help, random-init PrEx: ROC-AUC of my_own, B = 5, T = 10, without length normalisation",
    ]
    assert [cell.cell.value for _, cell in numbers] == [61.25] * 3
