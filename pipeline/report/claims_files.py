"""Verdicts on claims as files: one table for people and one for programs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from pipeline.metrics.cell import number_text
from pipeline.report.claims import Verdict

_COLUMNS = (
    "claim",
    "task",
    "verdict",
    "metric",
    "value",
    "low",
    "high",
    "n_set",
    "n_supporting",
    "n_contradicting",
    "statement",
    "source",
    "reason",
    "cells",
)
_HEAD = "| Claim | Task | Verdict | By how much [95 % interval] | Test sets | Source |"


def write_claims(folder: Path, verdicts: Sequence[Verdict]) -> list[Path]:
    """Write claims.csv and claims.md; the same verdicts give the same bytes."""
    paths = [folder / "claims.csv", folder / "claims.md"]
    with paths[0].open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(_row(one) for one in verdicts)
    paths[1].write_text(_markdown(verdicts), encoding="utf-8", newline="\n")
    return paths


def _row(one: Verdict) -> list[str]:
    numbers = (one.value, one.low, one.high)
    return [
        one.name,
        one.task,
        one.verdict,
        one.metric,
        *("" if number is None else number_text(number) for number in numbers),
        str(one.n_set),
        str(one.n_supporting),
        str(one.n_contradicting),
        one.claim.statement,
        one.claim.source,
        one.reason,
        " ".join(one.cell_names),
    ]


def _markdown(verdicts: Sequence[Verdict]) -> str:
    lines = [
        "### Claims, tested on the numbers of this run",
        "",
        "A claim holds where the 95 % interval of the mean difference over test sets lies above 0 "
        "(paired bootstrap over sentences), and does not where it lies below.",
        "",
        _HEAD,
        "|---|---|---|---:|---|---|",
    ]
    lines += [_line(one) for one in verdicts]
    lines += ["", "#### The cells that each verdict stands on", ""]
    for one in verdicts:
        cells = ", ".join(f"`{name}`" for name in one.cell_names) or "none"
        lines.append(f"- `{one.name}` {one.task}: {cells}")
    return "\n".join(lines) + "\n"


def _line(one: Verdict) -> str:
    verdict = f"**{one.verdict}**" + (f": {one.reason}" if one.reason else "")
    sets = f"{one.n_supporting} for, {one.n_contradicting} against, of {one.n_set}"
    cells = (one.claim.statement, one.task, verdict, one.difference, sets, one.claim.source)
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |"
