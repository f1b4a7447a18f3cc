"""Verdicts on claims in the words of the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.metrics.cell import Cell, Key
from pipeline.report.claims import Verdict
from pipeline.report.task_names import task_name


@dataclass(frozen=True)
class ClaimLine:
    """One claim in one task: `findings` says by how much, on how many sets, and what is absent."""

    statement: str
    source: str
    task: str
    verdict: str
    findings: list[str]
    cells: list[str]


def claim_lines(verdicts: Iterable[Verdict]) -> list[ClaimLine]:
    """The verdicts, in their order."""
    return [
        ClaimLine(
            one.claim.statement,
            one.claim.source,
            task_name(one.task) if one.task else "",
            one.verdict,
            [text for text in (_difference(one), _sets(one), one.reason) if text],
            [_name(key) for key in one.cells],
        )
        for one in verdicts
    ]


def _difference(one: Verdict) -> str:
    if one.value is None or one.low is None or one.high is None:
        return ""
    decimals = 3 if one.metric == "nll" else 1
    value, low, high = (f"{number:z.{decimals}f}" for number in (one.value, one.low, one.high))
    return f"Difference {value} [{low}, {high}] {one.unit}"


def _sets(one: Verdict) -> str:
    if one.n_set == 0:
        return ""
    return (
        f"{one.n_set} test set{'s' if one.n_set > 1 else ''}: {one.n_supporting} for it, "
        f"{one.n_contradicting} against it by their own intervals"
    )


def _name(key: Key) -> str:
    return Cell(**key._asdict()).tracked_name
