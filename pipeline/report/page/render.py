"""The page: what it shows, and one HTML file with style, script and data inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.report.claims import Verdict
from pipeline.report.names import measure_label, task_name
from pipeline.report.page.browse import BrowsableSet, TaskFolders, browsable_sets, json_text
from pipeline.report.page.sections import card_html, claim_lines, header_cells
from pipeline.report.page.summary import signature_parts, summaries
from pipeline.report.table import Table

_HERE = Path(__file__).parent
_CARD_HEADING_LEVEL = 2
_ERROR_LABELS = {"bleu": "Error (100 \u2212 BLEU)", "wer_percent": "Error (WER %)"}
# One script in the page: what runs while it is read stands in the last, constants above their use.
_SCRIPTS = ("dom", "numbers", "choice", "list", "sentence", "tokens", "cloud", "start")


@dataclass(frozen=True)
class PageFigure:
    """A figure: what it shows in a few words, its caption, and its SVG file, or why it has none."""

    title: str
    caption: str
    svg: Path | None
    reason: str = ""

    @property
    def address(self) -> str:
        """The picture as a data address: as an image it can neither run nor load anything."""
        content = base64.b64encode(self.svg.read_bytes()).decode("ascii") if self.svg else ""
        return f"data:image/svg+xml;base64,{content}"


def page_figures(folder: Path, listed: Sequence[Mapping[str, Any]]) -> list[PageFigure]:
    """The figures of a folder, from the list that `make_figures` gives of a task."""
    figures = []
    for one in listed:
        pictures = [folder / name for name in one["files"] if name.endswith(".svg")]
        title = f"{task_name(one['task'])}: {one['title']}"
        figures.append(
            PageFigure(title, one["caption"], pictures[0] if pictures else None, one["reason"])
        )
    return figures


@dataclass(frozen=True)
class PageContent:
    """All that the page shows.

    `cells` are those of all tasks (pipeline.report.cells), in tables or not; of each test set the
    first `most_sentences` sentences can be browsed.
    """

    tables: Sequence[Table]
    claims: Sequence[Verdict]
    figures: Sequence[PageFigure]
    tasks: Sequence[TaskFolders]
    cells: pd.DataFrame
    most_sentences: int
    beside_paper: bool = True


def write_page(path: Path, content: PageContent) -> None:
    """Write the one self-contained file; it loads nothing, and its policy forbids to.

    The sentences of a test set are unpacked in the browser when the set is chosen.

    Raises DataError or StoreError for results of a task that do not belong together.
    """
    style = _asset("page.css")
    script = "\n".join(_asset(f"script/{name}.js") for name in _SCRIPTS)
    sets = [
        one
        for task in content.tasks
        for one in browsable_sets(task, content.cells, content.most_sentences)
    ]
    page = (
        _environment()
        .get_template("page.html")
        .render(
            content=content,
            tasks=summaries(content.cells, sets),
            claims=claim_lines(content.claims),
            verdicts=Counter(one.verdict for one in content.claims),
            cards=_cards(content.tasks),
            signatures=signature_parts(content.tables),
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            sets=sets,
            set_index=Markup(
                json_text([_index_entry(place, one) for place, one in enumerate(sets)])
            ),
            set_data=[_packed(one.json) for one in sets],
        )
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8", newline="\n")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["header_cells"] = header_cells
    return environment


def _cards(tasks: Sequence[TaskFolders]) -> dict[str, Markup]:
    cards = {}
    for task in tasks:
        if task.data_card is not None:
            with task.data_card.open(encoding="utf-8", newline="\n") as file:
                cards[task.name] = Markup(card_html(file.read(), task.name, _CARD_HEADING_LEVEL))
    return cards


def _index_entry(place: int, one: BrowsableSet) -> dict[str, Any]:
    return {
        "element": f"data-{place}",
        "label": f"{task_name(one.task)}: {one.test_set}",
        "decoded_by": one.decoded_by,
        "error_label": _ERROR_LABELS[one.quality],
        "n_sentence": one.n_sentence,
        "measure_labels": {name: measure_label(name) for name in one.measures},
    }


def _packed(text: str) -> str:
    """Base64 of gzip of a text, the same bytes for the same text; the script unpacks it."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A policy that allows this style and this script by their hashes, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
