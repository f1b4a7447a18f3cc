"""Render the report as one HTML file with style, script and data inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.report.cells import CellIndex
from pipeline.report.claims import Verdict
from pipeline.report.page.anchors import slug, unique_anchors
from pipeline.report.page.browse import BrowsableSet, TaskFolders, browsable_sets, json_text
from pipeline.report.page.evidence import claim_groups
from pipeline.report.page.origin import COPIES, Origin, comparison, facts, versions
from pipeline.report.page.sections import card_html, signature_parts, summaries
from pipeline.report.page.tables import shown_table
from pipeline.report.table import Table, count_reasons
from pipeline.run.files import read_json

_HERE = Path(__file__).parent
_CARD_HEADING_LEVEL = 2
_STYLES = ("page", "tables", "claims", "sentences")
# Joined into one script. The last file runs the page; all other files only define functions.
_SCRIPTS = (
    "dom",
    "numbers",
    "choice",
    "address",
    "sound",
    "list",
    "sentence",
    "tokens",
    "cloud",
    "wide",
    "start",
)


@dataclass(frozen=True)
class PageFigure:
    """A figure with its title, caption and SVG file, or the reason why it was not drawn."""

    title: str
    caption: str
    svg: Path | None
    reason: str = ""

    @property
    def address(self) -> str:
        """The picture as a data URL. As an image it can neither run scripts nor load files."""
        content = base64.b64encode(self.svg.read_bytes()).decode("ascii") if self.svg else ""
        return f"data:image/svg+xml;base64,{content}"


def page_figures(folder: Path, task: str, label: str) -> list[PageFigure]:
    """The figures of a task from the folder that `make_figures` wrote.

    Titles begin with `label`, the name of the task.
    """
    figures = []
    for entry in read_json(folder / f"{task}_figures.json", "metrics", list):
        svg = next((folder / name for name in entry["files"] if name.endswith(".svg")), None)
        title = f"{label}: {entry['title']}"
        figures.append(PageFigure(title, entry["caption"], svg, entry["reason"]))
    return figures


@dataclass(frozen=True)
class PageContent:
    """Everything that the page shows.

    `cells` are the cells of all tasks, including those that are in no table. The first
    `most_sentences` sentences of each test set can be browsed. `origin` says what made them.
    """

    tables: Sequence[Table]
    claims: Sequence[Verdict]
    figures: Sequence[PageFigure]
    tasks: Sequence[TaskFolders]
    cells: pd.DataFrame
    most_sentences: int
    beside_paper: bool = True
    origin: Origin = field(default_factory=Origin)


def write_page(path: Path, content: PageContent) -> None:
    """Write the page as one self-contained file; its content security policy forbids requests.

    The browser unpacks the sentences of a test set when the set is selected. Raises DataError or
    StoreError for results of a task that do not belong together.
    """
    style = "\n".join(_asset(f"{name}.css") for name in _STYLES)
    script = "\n".join(_asset(f"script/{name}.js") for name in _SCRIPTS)
    index = CellIndex(content.cells)
    sets = [
        browsable
        for task in content.tasks
        for browsable in browsable_sets(task, index, content.most_sentences)
    ]
    page = (
        _environment()
        .get_template("page.html")
        .render(
            content=content,
            tasks=summaries(content.cells, sets),
            runs={
                index.label(task.name): facts(
                    content.origin, task.name, task.decode, _members(sets, task.name)
                )
                for task in content.tasks
            },
            comparison=comparison(content.origin, [task.name for task in content.tasks]),
            copies=COPIES,
            versions=versions(),
            tables=[shown_table(table) for table in content.tables if not table.is_empty],
            empty_tables=[table for table in content.tables if table.is_empty],
            empty_cells=count_reasons(table for table in content.tables if table.is_empty),
            claims=claim_groups(content.claims, index),
            verdicts=Counter(verdict.verdict for verdict in content.claims),
            cards=_cards(content.tasks, index),
            figures=_anchored(content.figures),
            signatures=signature_parts(content.tables),
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            sets=sets,
            set_index=Markup(
                json_text(
                    [
                        {"element": f"data-{number}", **browsable.entry}
                        for number, browsable in enumerate(sets)
                    ]
                )
            ),
            set_data=[_packed(browsable.json) for browsable in sets],
        )
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="\n")


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _anchored(figures: Sequence[PageFigure]) -> list[tuple[str, PageFigure]]:
    """The figures with the anchors to link to."""
    anchors = unique_anchors([f"figure-{slug(figure.title)}" for figure in figures])
    return list(zip(anchors, figures, strict=True))


def _members(sets: Sequence[BrowsableSet], task: str) -> list[str]:
    names = (member for browsable in sets if browsable.task == task for member in browsable.members)
    return list(dict.fromkeys(names))


def _cards(tasks: Sequence[TaskFolders], index: CellIndex) -> dict[str, Markup]:
    """Name of a task in tables -> its data card."""
    cards = {}
    for task in tasks:
        if task.data_card is not None:
            with task.data_card.open(encoding="utf-8", newline="\n") as file:
                cards[index.label(task.name)] = Markup(
                    card_html(file.read(), task.name, _CARD_HEADING_LEVEL)
                )
    return cards


def _packed(text: str) -> str:
    """The text compressed by gzip and encoded as base64; the script unpacks it."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A content security policy that allows this style and this script, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; media-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
