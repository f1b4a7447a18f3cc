"""Verdicts on claims as files: one table for people and one for programs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from pipeline.metrics.cell import Cell, Key, number_text
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
    return [
        one.name,
        one.task,
        one.verdict,
        one.metric,
        *("" if number is None else number_text(number) for number in _numbers(one)),
        str(one.n_set),
        str(one.n_supporting),
        str(one.n_contradicting),
        one.claim.statement,
        one.claim.source,
        one.reason,
        " ".join(_name(key) for key in one.cells),
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
        cells = ", ".join(f"`{_name(key)}`" for key in one.cells) or "none"
        lines.append(f"- `{one.name}` {one.task}: {cells}")
    return "\n".join(lines) + "\n"


def _line(one: Verdict) -> str:
    number = ""
    if one.value is not None and one.low is not None and one.high is not None:
        decimals = 3 if one.metric == "nll" else 1
        value, low, high = (f"{it:z.{decimals}f}" for it in (one.value, one.low, one.high))
        unit = one.unit
        number = f"{value} [{low}, {high}] {unit}"
    verdict = f"**{one.verdict}**" + (f": {one.reason}" if one.reason else "")
    sets = f"{one.n_supporting} for, {one.n_contradicting} against, of {one.n_set}"
    cells = (one.claim.statement, one.task, verdict, number, sets, one.claim.source)
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in cells)} |"


def _numbers(one: Verdict) -> tuple[float | None, ...]:
    return one.value, one.low, one.high


def _name(key: Key) -> str:
    return Cell(**key._asdict()).tracked_name
