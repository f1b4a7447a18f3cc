"""Write tables as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from tabulate import tabulate

from pipeline.metrics.cell import KEY_COLUMNS, number_text
from pipeline.report.table import Heading, Table, TableCell, count_reasons

_log = logging.getLogger(__name__)
_CSV_COLUMNS = (
    "table",
    *KEY_COLUMNS,
    "value",
    "spread",
    "low",
    "high",
    "n",
    "groups",
    "runs",
    "members",
    "reason",
    "data",
    "signature",
    "test_set_name",
)
_CSV_PAPER_COLUMNS = ("paper_value", "paper_spread", "best")
_LATEX_PREAMBLE = r"""\documentclass[a4paper]{article}
\usepackage{amsfonts}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage[landscape,margin=1cm]{geometry}
\begin{document}
"""
_MOST_NARROW = 6  # a table with more columns spans both columns of the text
# The height of the first line of a cell, so that it does not touch the rule above.
_LATEX_STRUT = r"\rule{0pt}{2.4ex}"
_LATEX_PACKAGES = "% Needs the packages amsfonts, booktabs and graphicx."
# A table shrinks to the width of the text, and then to the height that leaves room for its notes.
_LATEX_FITTED = "%\n".join(
    (
        r"\resizebox*{!}{\ifdim\totalheight>0.66\textheight 0.66\textheight\else\totalheight\fi}{",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
    )
)
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}\allowbreak{}",  # long names have no spaces to break at
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "\N{EN DASH}": "--",
}


def write_tables(folder: Path, tables: Sequence[Table], beside_paper: bool) -> None:
    """Write results.csv, and each table as {name}.csv, {name}.md and {name}.tex.

    {name}.tex is a float to `\\input` into a paper; all_tables.tex is a document of the tables with
    a value. `beside_paper` adds the paper's numbers, except in results.csv.
    """
    write_results(folder / "results.csv", tables)
    shown = [table for table in tables if not table.is_empty]
    (folder / "all_tables.tex").write_text(latex_document(shown), encoding="utf-8")
    for table in tables:
        write_csv(folder / f"{table.name}.csv", table, beside_paper)
        (folder / f"{table.name}.md").write_text(markdown(table, beside_paper), encoding="utf-8")
        (folder / f"{table.name}.tex").write_text(latex(table, beside_paper), encoding="utf-8")


def write_results(path: Path, tables: Iterable[Table]) -> None:
    """Write every cell of every table in the columns of the paper's own file of results.

    A join of both files on the key columns gives the run's number next to the paper's: `test_set`
    is the role in the paper, empty for a test set without one, and `test_set_name` its name. A cell
    that occurs several times in a table is written once.
    """
    rows = dict.fromkeys(tuple(_csv_row(table, cell)) for table in tables for cell in table.cells)
    _write_csv(path, _CSV_COLUMNS, rows)
    n_empty = sum(not row[_CSV_COLUMNS.index("value")] for row in rows)
    _log.info("%s: %d rows, %d of them without a value", path.name, len(rows), n_empty)


def write_csv(path: Path, table: Table, beside_paper: bool) -> None:
    """Write the cells of one table; `beside_paper` adds columns for the paper's numbers."""
    rows = [_csv_row(table, cell) for cell in table.cells]
    if not beside_paper:
        _write_csv(path, _CSV_COLUMNS, rows)
        return
    of_paper = [
        [_csv_number(cell.paper), _csv_number(cell.paper_spread), str(cell.best).lower()]
        for cell in table.cells
    ]
    joined = [[*ours, *paper] for ours, paper in zip(rows, of_paper, strict=True)]
    _write_csv(path, (*_CSV_COLUMNS, *_CSV_PAPER_COLUMNS), joined)


def _csv_row(table: Table, table_cell: TableCell) -> list[str]:
    cell = table_cell.cell
    numbers = [_csv_number(value) for value in (cell.value, cell.spread, cell.low, cell.high)]
    counts = (str(cell.n), str(cell.groups), cell.runs, str(cell.members))
    key = cell.key._replace(test_set=table_cell.role or cell.roles.partition(" ")[0])
    name = cell.test_set
    return [table.label, *key, *numbers, *counts, cell.reason, cell.data, cell.signature, name]


def _csv_number(value: float | None) -> str:
    return "" if value is None else number_text(value)


def _write_csv(path: Path, columns: tuple[str, ...], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def markdown(table: Table, beside_paper: bool) -> str:
    """The table with its title, footnotes and signatures, as GitHub-flavoured Markdown.

    `beside_paper` adds the paper's numbers. Markdown has no spans: a heading over several columns
    is repeated in each of them. A table without any value is a list of its reasons.
    """
    if table.is_empty:
        return _reasons(table)
    reasons = table.reasons
    columns = zip(*(_without_spans(row) for row in table.header), strict=True)
    headings = [" ".join(dict.fromkeys(text for text in column if text)) for column in columns]
    rows = [
        [
            *(escape_markdown(label) for label in row.labels),
            *(_markdown_cell(cell, reasons, beside_paper) for cell in row.cells),
        ]
        for row in table.rows
    ]
    lines = [
        f"### {escape_markdown(table.caption)}",
        "",
        markdown_table([escape_markdown(text) for text in headings], rows, table.n_label),
        "",
        _explanation(table, beside_paper),
        "",
    ]
    lines += [f"- ({mark}) {escape_markdown(reason)}" for reason, mark in reasons.items()]
    lines += [f"- {escape_markdown(note)}" for note in table.footnotes]
    return "\n".join(lines) + "\n"


def _reasons(table: Table) -> str:
    counts = count_reasons([table]).most_common()
    lines = [f"- {escape_markdown(reason)} (cells: {count})" for reason, count in counts]
    where = f"No cell has a value. In results.csv: `{table.label}`."
    return "\n".join([f"### {escape_markdown(table.caption)}", "", where, "", *lines]) + "\n"


def _explanation(table: Table, beside_paper: bool) -> str:
    """What a cell holds, which table of the paper this one is like, and its name in results.csv."""
    sentences = [] if table.number is None else [f"As in Table {table.number} of the paper."]
    interval = " [95 % interval]" if table.has_interval else ""
    paper = " (the paper's number)" if beside_paper and table.has_paper else ""
    if interval or paper:
        sentences.append(f"Each cell: ours{interval}{paper}.")
    return " ".join([*sentences, f"In results.csv: `{table.label}`."])


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]], n_left: int) -> str:
    """A Markdown table of texts; the first `n_left` columns are left-aligned, others right-aligned.

    Texts from data must be escaped with `escape_markdown`.
    """
    alignment = ["left"] * n_left + ["right"] * (len(headings) - n_left)
    return tabulate(
        rows, headers=headings, tablefmt="pipe", disable_numparse=True, colalign=alignment
    )


def escape_markdown(text: str) -> str:
    """Escape Markdown's special characters and put the text on one line."""
    for character in "\\|*_`<[":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())


def _without_spans(row: tuple[Heading, ...]) -> list[str]:
    """One heading text per column."""
    return [heading.text for heading in row for _ in range(heading.span)]


def _markdown_cell(
    table_cell: TableCell | None, reasons: dict[str, str], beside_paper: bool
) -> str:
    if table_cell is None:
        return ""
    cell, parts = table_cell.cell, []
    if cell.value is None:
        parts.append("n/a")
    else:
        text = table_cell.format(cell.value)
        parts.append(f"**{text}**" if table_cell.best else text)
        if cell.spread is not None:
            parts.append(f"± {table_cell.format(cell.spread)}")
        if table_cell.interval:
            low, high = map(table_cell.format, table_cell.interval)
            parts.append(f"[{low}, {high}]")
    if cell.reason:
        parts.append(f"({reasons[cell.reason]})")
    if beside_paper and table_cell.paper is not None:
        parts.append(f"(paper {table_cell.format(table_cell.paper)})")
    return " ".join(parts)


def latex_document(tables: Iterable[Table]) -> str:
    """A LaTeX document with the files of all tables, each on a page of its own."""
    inputs = [rf"\input{{{table.name}}}" for table in tables]
    return _LATEX_PREAMBLE + "\n\\clearpage\n".join(inputs) + "\n\\end{document}\n"


def escape_latex(text: str) -> str:
    """Escape LaTeX's special characters."""
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)


def latex(table: Table, beside_paper: bool) -> str:
    """A table with title, label and notes as a LaTeX float; signatures are comments below it.

    `beside_paper` puts the paper's number on a line below ours.
    """
    reasons = table.reasons
    n_column = sum(heading.span for heading in table.header[0])
    n_value = n_column - table.n_label
    environment = "table*" if n_column > _MOST_NARROW else "table"
    content = "ours"
    if table.has_interval:
        content += r", 95\,\% interval"
    if beside_paper and table.has_paper:
        content += ", (the paper's number)"
    caption = f"{escape_latex(table.title)}. "
    if table.number is not None:
        caption += f"As in Table {table.number} of the paper. "
    lines = [
        _LATEX_PACKAGES,
        rf"\begin{{{environment}}}[!t]",
        r"\centering",
        rf"\caption{{{caption}Each cell: {content}.}}\label{{{table.label}}}",
        _LATEX_FITTED,
        rf"\begin{{tabular}}{{{'l' * table.n_label}{'c' * n_value}}}",
        r"\toprule",
        *(_latex_line([_latex_heading(heading) for heading in row]) for row in table.header),
        r"\midrule",
    ]
    for row in table.rows:
        if row.rule:
            lines.append(r"\midrule")
        values = [_latex_cell(cell, reasons, beside_paper) for cell in row.cells]
        lines.append(_latex_line([*(escape_latex(label) for label in row.labels), *values]))
    lines += [r"\bottomrule", r"\end{tabular}}}", r"\par\smallskip"]
    lines.append(r"{\raggedright\scriptsize\setlength{\parindent}{0pt}%")
    lines += [rf"$^{{{mark}}}$ {escape_latex(reason)}.\par" for reason, mark in reasons.items()]
    lines += [rf"{escape_latex(note)}\par" for note in table.remarks]
    lines += ["}", rf"\end{{{environment}}}"]
    lines += [f"% {' '.join(signature.split())}" for signature in table.signatures]
    return "\n".join(lines) + "\n"


def _latex_heading(heading: Heading) -> str:
    text = heading.latex or escape_latex(heading.text)
    return rf"\multicolumn{{{heading.span}}}{{c}}{{{text}}}" if heading.span > 1 else text


def _latex_cell(table_cell: TableCell | None, reasons: dict[str, str], beside_paper: bool) -> str:
    if table_cell is None:
        return ""
    cell = table_cell.cell
    value = "--" if cell.value is None else table_cell.format(cell.value)
    if table_cell.best:
        value = rf"\textbf{{{value}}}"
    if cell.spread is not None:
        value += rf" {{\tiny $\pm$ {table_cell.format(cell.spread)}}}"
    if cell.reason:
        value += rf"$^{{{reasons[cell.reason]}}}$"
    lines = [value]
    if table_cell.interval:
        low, high = (_latex_number(table_cell, bound) for bound in table_cell.interval)
        lines.append(rf"{{\tiny {low} to {high}}}")
    if beside_paper and table_cell.paper is not None:
        lines.append(rf"{{\tiny ({_latex_number(table_cell, table_cell.paper)})}}")
    if len(lines) == 1:
        return value
    stack = r"\\".join(lines)
    return rf"\shortstack{{{_LATEX_STRUT}{stack}}}"


def _latex_number(table_cell: TableCell, value: float) -> str:
    text = table_cell.format(value)
    return f"${text}$" if text.startswith("-") else text


def _latex_line(texts: Iterable[str]) -> str:
    return " & ".join(texts) + r" \\"
