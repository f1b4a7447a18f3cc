"""Verdicts on claims in the words of the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
            one.cell_names,
        )
        for one in verdicts
    ]


def _difference(one: Verdict) -> str:
    return f"Difference {one.difference}" if one.difference else ""


def _sets(one: Verdict) -> str:
    if one.n_set == 0:
        return ""
    return (
        f"{one.n_set} test set{'s' if one.n_set > 1 else ''}: {one.n_supporting} for it, "
        f"{one.n_contradicting} against it by their own intervals"
    )
