"""The end of a multirun of any stage: a summary of its points, which names those that failed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline import tracking
from pipeline.errors import MachineError, PipelineError
from pipeline.report.sweep import Point, failures, swept_keys, write_summary
from pipeline.run.locks import exclusive_lock
from pipeline.run.points import read_records, unread_keys

_DID_NOT_END = "its process was killed or is still running elsewhere"


def close(sweep: tracking.Sweep) -> None:
    """Write the summary of a multirun that has ended, and print it.

    Raises PipelineError naming the points that failed, and why.
    """
    records = read_records(sweep.folder)
    messages = []
    for home in dict.fromkeys(record["summary"] for record in records):
        of_home = [record for record in records if record["summary"] == home]
        points = [point_of(record, _reason(record)) for record in of_home]
        written = summarise(Path(home), points)
        with suppress(MachineError):  # points may have failed because tracking does
            sweep.log.artifacts(*written)
        print(written[1].read_text(encoding="utf-8"), end="")
        print(f"summary of {len(points)} points: {', '.join(map(str, written))}")
        _warn_of_equal_points(of_home[0]["stage"], points)
        failed = [point for point in points if point.reason]
        if failed:
            messages.append(
                f"{written[0]}: {len(failed)} of {len(points)} points failed: {failures(points)}."
            )
    if messages:
        kept = "Finished points are kept; the next run makes only these."
        raise PipelineError(" ".join([*messages, kept]))


def _reason(record: Mapping[str, Any]) -> str | None:
    return record["reason"] or (None if record["ended"] else _DID_NOT_END)


def _warn_of_equal_points(stage: str, points: Sequence[Point]) -> None:
    keys = unread_keys(stage, swept_keys(points)) if len(points) > 1 else []
    if keys:
        print(
            f"warning: {', '.join(keys)}: not read by stage {stage} or one before it, so that "
            "points are equal. They differ after the stage that reads it.",
            file=sys.stderr,
        )


def summarise(folder: Path, points: Sequence[Point]) -> list[Path]:
    """Write the summary of points into a folder, one process at a time; return its files."""
    with exclusive_lock(folder / ".summary.lock", f"the summary in {folder}", wait=True):
        return write_summary(folder, points)


def point_of(record: Mapping[str, Any], reason: str | None = None) -> Point:
    """Return a point from its record; stages without numbers have none."""
    numbers, intervals = record.get("numbers"), record.get("intervals", {})
    if numbers is None and record["stage"] == "metrics" and record["ended"] and not reason:
        numbers = _of_metrics(Path(record["folder"]), "numbers")
        intervals = _of_metrics(Path(record["folder"]), "intervals")
    folder = os.path.relpath(record["folder"], record["summary"]) if "folder" in record else ""
    overrides = dict(record["overrides"])
    return Point(record["number"], overrides, numbers or {}, reason, folder, intervals)


def _of_metrics(folder: Path, name: str) -> dict[str, Any]:
    """What stage metrics wrote into {name}.json; of the last task if `folder` has several."""
    content: dict[str, Any] = {}
    for path in sorted((folder / "metrics").glob(f"*/{name}.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
    return content
