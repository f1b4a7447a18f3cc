"""A table as Markdown: one line of headings, ours [95 % interval], the paper's in brackets."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.report.table import Heading, Table, TableCell

_PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{amsfonts}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage[landscape,margin=1cm]{geometry}
% As wide as the page, or as high as most of it.
\newsavebox{\fullsize}
\newsavebox{\fullwidth}
\newcommand{\fitted}[1]{%
  \sbox{\fullsize}{#1}%
  \sbox{\fullwidth}{\resizebox{\linewidth}{!}{\usebox{\fullsize}}}%
  \ifdim\dimexpr\ht\fullwidth+\dp\fullwidth\relax>0.8\textheight
    \resizebox*{!}{0.8\textheight}{\usebox{\fullsize}}%
  \else
    \usebox{\fullwidth}%
  \fi}
\begin{document}
"""
_ESCAPES = {
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
    "|": r"\textbar{}\allowbreak{}",  # signatures are long and have no spaces
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "\N{EN DASH}": "--",
}


def latex(tables: Iterable[Table], beside_paper: bool) -> str:
    """Tables with title, label, footnotes and signatures as one LaTeX document.

    `beside_paper` puts the paper's number in a line below ours.
    """
    floats = [_float(table, beside_paper) for table in tables]
    return _PREAMBLE + "\\clearpage\n".join(floats) + "\\end{document}\n"


def _float(table: Table, beside_paper: bool) -> str:
    reasons = table.reasons
    n_value = sum(heading.span for heading in table.header[0]) - table.n_label
    order = "ours"
    if table.has_interval:
        order += r", 95\,\% interval"
    if beside_paper and table.has_paper:
        order += ", (the paper's number)"
    lines = [
        r"\begin{table}[!t]",
        r"\centering",
        rf"\caption{{{escaped(table.title)}. Each cell: {order}.}}\label{{{table.label}}}",
        r"\fitted{%",
        rf"\begin{{tabular}}{{{'l' * table.n_label}{'c' * n_value}}}",
        r"\toprule",
        *(_heading_row(row) for row in table.header),
        r"\midrule",
    ]
    for row in table.rows:
        if row.rule:
            lines.append(r"\midrule")
        values = [_latex_value(cell, reasons, beside_paper) for cell in row.cells]
        lines.append(_latex_line([*(escaped(label) for label in row.labels), *values]))
    lines += [r"\bottomrule", r"\end{tabular}}", r"\end{table}"]
    # Below the float, as they may be longer than what is left of the page.
    lines.append(r"{\raggedright\scriptsize\setlength{\parindent}{0pt}")
    lines += [rf"$^{{{mark}}}$ {escaped(reason)}.\par" for reason, mark in reasons.items()]
    lines += [rf"{escaped(note)}\par" for note in table.footnotes]
    lines.append("}")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text in which every character that LaTeX reads as a command stands for itself."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _heading_row(row: tuple[Heading, ...]) -> str:
    texts = []
    for heading in row:
        text = heading.latex or escaped(heading.text)
        if heading.span > 1:
            text = rf"\multicolumn{{{heading.span}}}{{c}}{{{text}}}"
        texts.append(text)
    return _latex_line(texts)


def _latex_value(cell: TableCell | None, reasons: dict[str, str], beside_paper: bool) -> str:
    if cell is None:
        return ""
    ours = cell.cell
    first = "--" if ours.value is None else cell.shown(ours.value)
    if cell.best:
        first = rf"\textbf{{{first}}}"
    if ours.spread is not None:
        first += rf" {{\tiny $\pm$ {cell.shown(ours.spread)}}}"
    if ours.reason:
        first += rf"$^{{{reasons[ours.reason]}}}$"
    parts = [first]
    if ours.low is not None and ours.high is not None:
        parts.append(rf"{{\tiny {_number(cell, ours.low)} to {_number(cell, ours.high)}}}")
    if beside_paper and cell.paper is not None:
        parts.append(rf"{{\tiny ({_number(cell, cell.paper)})}}")
    stack = r"\\".join(parts)
    return rf"\shortstack{{{stack}}}" if len(parts) > 1 else stack


def _number(cell: TableCell, value: float) -> str:
    text = cell.shown(value)
    return f"${text}$" if text.startswith("-") else text


def _latex_line(texts: list[str]) -> str:
    return " & ".join(texts) + r" \\"


def markdown(table: Table, beside_paper: bool) -> str:
    """The table with its title, footnotes and signatures, as GitHub-flavoured Markdown.

    `beside_paper` puts the paper's number behind ours. Markdown has no spans: a heading over
    several columns is repeated in each of them.
    """
    reasons = table.reasons
    columns = list(zip(*(_spread_out(row) for row in table.header), strict=True))
    head = [" ".join(dict.fromkeys(part for part in column if part)) for column in columns]
    lines = [f"### {_escaped(table.title)}", ""]
    lines.append(_markdown_line([_escaped(text) for text in head]))
    lines.append(_markdown_line(["---"] * table.n_label + ["---:"] * (len(head) - table.n_label)))
    for row in table.rows:
        values = [_markdown_value(cell, reasons, beside_paper) for cell in row.cells]
        lines.append(_markdown_line([*(_escaped(label) for label in row.labels), *values]))
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


def _markdown_value(cell: TableCell | None, reasons: dict[str, str], beside_paper: bool) -> str:
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


def _markdown_line(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _escaped(text: str) -> str:
    for character in "\\|*_`<[":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
