"""The headings of a table with the spans that HTML wants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipeline.report.claims import Verdict
from pipeline.report.names import task_name
from pipeline.report.table import Table

# What a sentence of a corpus may look like by chance, and what would lead out of the page.
_OFF = ("link", "image", "autolink", "emphasis", "html_inline", "html_block")
_DEEPEST_HEADING = 6


def card_html(markdown: str, name: str, below_level: int) -> str:
    """The card with headings from `below_level` + 1 on, tables in boxes that scroll.

    HTML, links and images in the text are shown as text; `name` tells the tables of several cards
    apart for those who hear the page.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_OFF)
    shown: list[Token] = []
    heading, n_table = "", 0
    for token in parser.parse(markdown):
        if token.type in ("heading_open", "heading_close"):
            level = min(int(token.tag.removeprefix("h")) + below_level, _DEEPEST_HEADING)
            token.tag = f"h{level}"
        elif token.type == "inline" and shown[-1].type == "heading_open":
            heading = token.content
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type == "table_open":
            n_table += 1
            shown.append(_opened_box(f"{name}, table {n_table}: {heading}"))
        shown.append(token)
        if token.type == "table_close":
            shown.append(_html("</div>"))
    return str(parser.renderer.render(shown, parser.options, {}))


def _opened_box(label: str) -> Token:
    return _html(f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">')


def _html(content: str) -> Token:
    return Token("html_block", "", 0, content=content)


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


@dataclass(frozen=True)
class HeaderCell:
    """A heading over `columns` columns and `rows` rows of headings."""

    text: str
    columns: int
    rows: int

    @property
    def scope(self) -> str:
        """What it is the heading of."""
        return "colgroup" if self.columns > 1 else "col"


def header_cells(table: Table) -> list[list[HeaderCell]]:
    """The rows of headings; one above empty ones reaches down over them."""
    grid = [_by_column(row) for row in _texts(table)]
    rows = []
    for depth, row in enumerate(grid):
        cells = []
        for column, (text, span) in row.items():
            above = grid[depth - 1].get(column) if depth else None
            if not text and above is not None and above[1] == span:
                continue  # the one above reaches down to here
            below = 1
            while depth + below < len(grid) and grid[depth + below].get(column) == ("", span):
                below += 1
            cells.append(HeaderCell(text, span, below))
        rows.append(cells)
    return rows


def _texts(table: Table) -> list[list[tuple[str, int]]]:
    return [[(heading.text, heading.span) for heading in row] for row in table.header]


def _by_column(row: list[tuple[str, int]]) -> dict[int, tuple[str, int]]:
    """First column -> (text, span)."""
    by_column, column = {}, 0
    for text, span in row:
        by_column[column] = text, span
        column += span
    return by_column
