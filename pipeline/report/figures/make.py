"""Draw the figures of a task, each with its data, and list them for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.errors import ConfigError
from pipeline.report.figures.drawing import Sheet, write_sheet
from pipeline.report.figures.evidence import TaskEvidence
from pipeline.run.files import write_json

MakeSheet = Callable[[TaskEvidence], Sheet]


def make_figures(
    folder: Path, evidence: TaskEvidence, figures: Mapping[str, MakeSheet]
) -> list[dict[str, Any]]:
    """Write each figure as {task}_{name}.csv, .svg and .png, and their list {task}_figures.json.

    An entry of the list has name, task, title, caption, files and reason (why there is no picture,
    else empty). Raises ConfigError where a function of report.figures does not return a Sheet.
    """
    listed = []
    for name, make in figures.items():
        sheet = make(evidence)
        if not isinstance(sheet, Sheet):
            raise ConfigError(
                f"report.figures.{name} must name a function that returns a Sheet, got {sheet!r}"
            )
        files = write_sheet(folder, f"{evidence.task}_{name}", sheet)
        listed.append(
            {
                "name": name,
                "task": evidence.task,
                "title": sheet.title,
                "caption": sheet.caption,
                "files": [path.name for path in files],
                "reason": sheet.reason if sheet.data.empty else "",
            }
        )
    write_json(folder / f"{evidence.task}_figures.json", listed)
    return listed
