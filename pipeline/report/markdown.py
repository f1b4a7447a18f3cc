"""A table as Markdown: one line of headings, ours [95 % interval], the paper's in brackets."""

from __future__ import annotations

from pipeline.report.table import Heading, Table, TableCell


def markdown(table: Table, beside_paper: bool) -> str:
    """The table with its title, footnotes and signatures, as GitHub-flavoured Markdown.

    `beside_paper` puts the paper's number behind ours. Markdown has no spans: a heading over
    several columns is repeated in each of them.
    """
    reasons = table.reasons
    columns = list(zip(*(_spread_out(row) for row in table.header), strict=True))
    head = [" ".join(dict.fromkeys(part for part in column if part)) for column in columns]
    lines = [f"### {_escaped(table.title)}", ""]
    lines.append(_line([_escaped(text) for text in head]))
    lines.append(_line(["---"] * table.n_label + ["---:"] * (len(head) - table.n_label)))
    for row in table.rows:
        values = [_value(cell, reasons, beside_paper) for cell in row.cells]
        lines.append(_line([*(_escaped(label) for label in row.labels), *values]))
    interval = " [95 % interval]" if table.has_interval else ""
    paper = " (the paper's number)" if beside_paper and table.has_paper else ""
    lines += ["", f"`{table.label}`. Ours{interval}{paper}.", ""]
    lines += [f"- ({mark}) {_escaped(reason)}" for reason, mark in reasons.items()]
    lines += [f"- {_escaped(note)}" for note in table.footnotes]
    return "\n".join(lines) + "\n"


def _spread_out(row: tuple[Heading, ...]) -> list[str]:
    texts: list[str] = []
    for heading in row:
        texts += [heading.text] * heading.span
    return texts


def _value(cell: TableCell | None, reasons: dict[str, str], beside_paper: bool) -> str:
    if cell is None:
        return ""
    ours = cell.cell
    parts = []
    if ours.value is None:
        parts.append("n/a")
    else:
        text = cell.shown(ours.value)
        parts.append(f"**{text}**" if cell.best else text)
        if ours.spread is not None:
            parts.append(f"± {cell.shown(ours.spread)}")
        if ours.low is not None and ours.high is not None:
            parts.append(f"[{cell.shown(ours.low)}, {cell.shown(ours.high)}]")
    if ours.reason:
        parts.append(f"({reasons[ours.reason]})")
    if beside_paper and cell.paper is not None:
        parts.append(f"(paper {cell.shown(cell.paper)})")
    return " ".join(parts)


def _line(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _escaped(text: str) -> str:
    for character in "\\|*_`<[":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
