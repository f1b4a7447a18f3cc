"""Content of the page's sections: summary, data cards, signatures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipeline.metrics.cell import Cell
from pipeline.quality.registry import QUALITIES
from pipeline.quality.transcripts import compares_words
from pipeline.report.cells import CellIndex
from pipeline.report.names import METRICS, decoder_name
from pipeline.report.page.browse import BrowsableSet, ordered_test_sets
from pipeline.report.table import Table, TableCell

# Markdown that may occur in a sentence by chance, or that links to other pages.
_DISABLED_MARKDOWN = ("link", "image", "autolink", "emphasis", "html_inline", "html_block")
_DEEPEST_HEADING = 6
# Blocks of a card whose texts may be in any language.
_TEXT_BLOCKS = ("heading_open", "paragraph_open", "list_item_open", "th_open", "td_open")
_SYNTHETIC = "SYNTHETIC"


@dataclass(frozen=True)
class SetSummary:
    """A test set. `quality` is the cell of the ensemble's corpus metric, None if it has none.

    `role` is the name that the paper's tables give to such a set; empty if they have none.
    """

    name: str
    role: str
    corpus: str
    n_sentence: int | None
    decoded_by: list[str]
    quality: TableCell | None

    @property
    def synthetic(self) -> bool:
        """Whether the description of the corpus says that it is synthetic."""
        return _SYNTHETIC.lower() in self.corpus.lower()

    @property
    def description(self) -> str:
        """The corpus without the mark that `synthetic` stands for."""
        return self.corpus.replace(f" ({_SYNTHETIC})", "")


@dataclass(frozen=True)
class TaskSummary:
    """A task with its test sets; `absent`: test set that the run does not have -> reason."""

    name: str
    quality: str
    sets: list[SetSummary]
    absent: dict[str, str]


def summaries(frame: pd.DataFrame, sets: Sequence[BrowsableSet]) -> list[TaskSummary]:
    """One summary per task. `frame` holds the cells of all tasks."""
    index = CellIndex(frame)
    # A cell without a regime is not a number. It says why a test set is absent.
    absent = frame[frame["regime"] == "-"]
    return [
        _task(
            index,
            task,
            {browsable.test_set: browsable for browsable in sets if browsable.task == task},
            dict(absent.loc[absent["task"] == task, ["test_set", "reason"]].to_numpy().tolist()),
        )
        for task in index.tasks
    ]


def _task(
    index: CellIndex, name: str, sets: dict[str, BrowsableSet], absent: dict[str, str]
) -> TaskSummary:
    cells = [cell for cell in index.cells if cell.task == name]
    of_quality = [cell for cell in cells if cell.metric in QUALITIES]
    metric = METRICS[of_quality[0].metric] if of_quality else ""
    if any(compares_words(cell.signature) for cell in of_quality):
        metric += ", lower-case words,"
    return TaskSummary(
        index.label(name),
        metric,
        [
            _set(
                test_set, [cell for cell in cells if cell.test_set == test_set], sets.get(test_set)
            )
            for test_set in ordered_test_sets(cells, name)
        ],
        absent,
    )


def _set(name: str, cells: list[Cell], browsable: BrowsableSet | None) -> SetSummary:
    decoders = dict.fromkeys(
        decoder_name(cell.ensemble, cell.hypotheses, cell.regime) for cell in cells
    )
    return SetSummary(
        name=name,
        role=next((cell.roles.partition(" ")[0] for cell in cells), ""),
        corpus=next((cell.data for cell in cells if cell.data), ""),
        n_sentence=browsable.n_sentence if browsable else None,
        decoded_by=list(decoders),
        quality=_quality_cell(cells, browsable),
    )


def _quality_cell(cells: list[Cell], browsable: BrowsableSet | None) -> TableCell | None:
    """The cell of the corpus metric of the decode that can be browsed."""
    for cell in cells:
        decoded = (cell.ensemble, cell.hypotheses, cell.regime)
        if (
            browsable is not None
            and cell.metric in QUALITIES
            and decoded == (browsable.ensemble, browsable.combination, browsable.regime)
        ):
            return TableCell(cell)
    return None


def card_html(markdown: str, name: str, below_level: int) -> str:
    """A data card as HTML, with headings from level `below_level` + 1 and scrollable tables.

    HTML, links and images in the card are shown as text. `name` is part of the tables' labels, so
    that screen readers can tell the tables of several cards apart.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(_DISABLED_MARKDOWN)
    tokens: list[Token] = []
    heading, n_table = "", 0
    for token in parser.parse(markdown):
        if token.type in _TEXT_BLOCKS:
            token.attrSet("dir", "auto")
        if token.type in ("heading_open", "heading_close"):
            level = min(int(token.tag.removeprefix("h")) + below_level, _DEEPEST_HEADING)
            token.tag = f"h{level}"
        elif token.type == "inline" and tokens[-1].type == "heading_open":
            heading = token.content
        elif token.type == "th_open":
            token.attrSet("scope", "col")
        elif token.type == "table_open":
            n_table += 1
            tokens.append(_opened_box(f"{name}, table {n_table}: {heading}"))
        tokens.append(token)
        if token.type == "table_close":
            tokens.append(_html("</div>"))
    return str(parser.renderer.render(tokens, parser.options, {}))


def _opened_box(label: str) -> Token:
    return _html(f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">')


def _html(content: str) -> Token:
    return Token("html_block", "", 0, content=content)


def signature_parts(tables: Iterable[Table]) -> dict[str, list[str]]:
    """The decodes, and the metrics with their settings, behind the cells of the tables."""
    signatures = dict.fromkeys(cell.cell.signature for table in tables for cell in table.cells)
    parts = dict.fromkeys(
        part.removeprefix("against ")
        for signature in signatures
        for part in signature.split("; ")
        if part
    )
    return {
        "Decodes": [part for part in parts if part.startswith("task:")],
        "Metrics and settings": [part for part in parts if not part.startswith("task:")],
    }
