"""The tables of measures, made at every build from the registry."""

from __future__ import annotations

from collections.abc import Iterable

from mkdocs.structure.pages import Page

from pipeline.uncertainty.measures_of_sequences import Estimator as By
from pipeline.uncertainty.measures_of_sequences import SequenceMeasure, measures_by
from pipeline.uncertainty.measures_of_tokens import TOKEN_MEASURES, TokenMeasure


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Put the tables of measures.md in the place of their markers."""
    if page.file.src_path != "measures.md":
        return markdown
    for marker, table in tables().items():
        if marker not in markdown:
            raise ValueError(
                f"docs/measures.md: no marker {marker}. Add it where the table belongs."
            )
        markdown = markdown.replace(marker, table)
    return markdown


def tables() -> dict[str, str]:
    """Return marker -> table in Markdown."""
    beam = measures_by(By.WEIGHTED_MEAN, By.LOG_WEIGHTED_MEAN, By.MEMBER_DECODES, By.HYPOTHESES)
    return {
        "<!-- token measures -->": _table(TOKEN_MEASURES.values(), with_range=True),
        "<!-- measures of a beam -->": _table(beam.values()),
        "<!-- measures of samples -->": _table(measures_by(By.SAMPLE_MEAN).values()),
        "<!-- measures of member samples -->": _table(measures_by(By.MEMBER_SAMPLE_MEAN).values()),
    }


def _table(measures: Iterable[TokenMeasure | SequenceMeasure], with_range: bool = False) -> str:
    heading = ["measure", "formula", *(["values"] if with_range else []), "source"]
    rows = [heading, ["---"] * len(heading)]
    for measure in measures:
        row = [f"`{measure.name}`", f"`{measure.formula}`"]
        if isinstance(measure, TokenMeasure) and with_range:
            row.append(measure.range.value)
        rows.append([*row, _source(measure.source)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _source(source: str) -> str:
    if source.startswith("docs/"):
        return f"[exact forms]({source.removeprefix('docs/')})"
    label, comma, rest = source.partition(",")
    return f"`{label}`{comma}{rest}" if ":" in label else source
