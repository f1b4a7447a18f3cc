"""The claims of the page: each with its verdicts, and the numbers behind each verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.metrics.cell import Cell
from pipeline.report.cells import CellIndex
from pipeline.report.claims import Verdict
from pipeline.report.names import decoder_name, measure_label, metric_label
from pipeline.report.table import TableCell


@dataclass(frozen=True)
class Finding:
    """A verdict on a claim in one task, as text.

    `remarks` are test sets, training runs and reasons; `numbers` are the compared cells with their
    names in words.
    """

    task: str
    verdict: str
    difference: str
    remarks: list[str]
    numbers: list[tuple[str, TableCell]]


@dataclass(frozen=True)
class ClaimGroup:
    """A claim with one finding per task. `name` identifies it on the page."""

    name: str
    statement: str
    source: str
    findings: list[Finding]


def claim_groups(verdicts: Sequence[Verdict], index: CellIndex) -> list[ClaimGroup]:
    """The verdicts by claim, in their order. `index` holds the compared cells."""
    of_claim: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        of_claim.setdefault(verdict.name, []).append(verdict)
    return [
        ClaimGroup(
            name,
            own[0].claim.statement,
            own[0].claim.source,
            [_finding(verdict, index) for verdict in own],
        )
        for name, own in of_claim.items()
    ]


def _finding(verdict: Verdict, index: CellIndex) -> Finding:
    cells = [index.cell(key) for key in verdict.cells]
    return Finding(
        verdict.label,
        verdict.verdict,
        verdict.difference,
        _remarks(verdict),
        [(_name(cell), TableCell(cell)) for cell in cells],
    )


def _remarks(verdict: Verdict) -> list[str]:
    """The test sets, the training runs, and the reason, which may be that the runs disagree."""
    is_in_reason = verdict.compared in verdict.reason
    texts = (_sets(verdict), "" if is_in_reason else verdict.compared, verdict.reason)
    return [text[0].upper() + text[1:] for text in texts if text]


def _sets(verdict: Verdict) -> str:
    """The compared test sets, and how many of several support the claim by themselves."""
    names = ", ".join(verdict.test_sets)
    if verdict.n_set < 2:
        return f"test set: {names}" if names else ""
    n_for, n_against = verdict.n_supporting, verdict.n_contradicting
    alone = f"{n_for} support{'s' if n_for == 1 else ''} the claim"
    if n_against:
        alone += f" and {n_against} contradict{'s' if n_against == 1 else ''} it"
    return f"mean of {verdict.n_set} test sets ({names}): taken alone, {alone}"


def _name(cell: Cell) -> str:
    """Return `help, random-init PrEx: PRR of PrEx total H, S-IW, B = 5, T = 10`, for example."""
    decoder = decoder_name(cell.ensemble, cell.hypotheses, cell.regime)
    number = metric_label(cell.metric)
    if cell.column not in ("", cell.metric):
        number += f" of {measure_label(cell.column)}"
    settings = [f"{name} = {value}" for name, value in (("B", cell.B), ("T", cell.T)) if value]
    if cell.length_norm != "true":
        settings.append("without length normalisation")
    return f"{cell.test_set}, {decoder}: {', '.join([number, *settings])}"
