"""The tables of the report, independent of any output format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.errors import DataError
from pipeline.metrics.cell import RUN_SEPARATOR, Cell
from pipeline.metrics.training_runs import is_training_run
from pipeline.quality.transcripts import compares_words
from pipeline.report.ensemble_names import ensemble_name, member_names

_WORDS_NOTE = (
    "WER, CER, X-WER and errors of tokens compare lower-case words of letters, digits and "
    "apostrophes, without other signs (metrics.transcripts=words)."
)
_DECIMALS = {
    "nll": 2,
    "hours": 2,
    "sentences": 0,
    "utterances": 0,
    "distinct_texts": 0,
    "groups": 0,
}


@dataclass(frozen=True)
class Heading:
    """A heading that spans `span` columns; `latex` is its mathematical form, if it has one."""

    text: str
    span: int = 1
    latex: str | None = None


@dataclass(frozen=True)
class TableCell:
    """A cell of the run, with the paper's number next to it.

    `rivals` are the cells that it competes with for the best value, itself included; empty if it
    does not compete. `best` says whether it is shown in bold. `role` is the name that the paper's
    table gives to the test set; empty in other tables. `decimals` are those of its numbers; None
    takes those of the metric.
    """

    cell: Cell
    paper: float | None = None
    paper_spread: float | None = None
    rivals: tuple[Cell, ...] = ()
    best: bool = False
    decimals: int | None = None
    role: str = ""

    @property
    def test_set_label(self) -> str:
        """The name of the test set, with its role in the paper's table."""
        name = self.cell.test_set
        return name if self.role in ("", name) else f"{name} ({self.role})"

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval, or None if the cell has none."""
        low, high = self.cell.low, self.cell.high
        return None if low is None or high is None else (low, high)

    def format(self, value: float) -> str:
        """Format a number of the cell, with commas between thousands and never as -0.0."""
        decimals = _DECIMALS.get(self.cell.metric, 1) if self.decimals is None else self.decimals
        return f"{value:z,.{decimals}f}"


@dataclass(frozen=True)
class Row:
    """The labels of a row, followed by its cells; None leaves a column empty.

    `rule` draws a line above the row.
    """

    labels: tuple[str, ...]
    cells: tuple[TableCell | None, ...]
    rule: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the report.

    `label` is the label of the paper's table, `number` its number in the paper (None: it is not in
    the paper), and `title` a short caption. `header` holds one or more rows of headings. In each of
    them the spans add up to the number of columns, label columns first. Raises DataError for a
    table without headings.
    """

    label: str
    title: str
    header: tuple[tuple[Heading, ...], ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    number: int | None = None

    def __post_init__(self) -> None:
        if not self.header:
            raise DataError(f"table {self.label}: has no headings. Add at least one row of them.")

    @property
    def caption(self) -> str:
        """The title after the number of the paper's table, such as `Table 4. Copied words`."""
        return self.title if self.number is None else f"Table {self.number}. {self.title}"

    @property
    def is_empty(self) -> bool:
        """Whether no cell has a value."""
        return all(table_cell.cell.value is None for table_cell in self.cells)

    @property
    def cells(self) -> list[TableCell]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row.cells if cell is not None]

    @property
    def has_interval(self) -> bool:
        """Whether any cell has an interval."""
        return any(cell.interval for cell in self.cells)

    @property
    def has_paper(self) -> bool:
        """Whether any cell has a number of the paper."""
        return any(cell.paper is not None for cell in self.cells)

    @property
    def n_label(self) -> int:
        """The number of label columns."""
        return len(self.rows[0].labels) if self.rows else 0

    @property
    def name(self) -> str:
        """The label as a file name."""
        return self.label.replace(":", "_")

    @property
    def footnotes(self) -> list[str]:
        """The remarks and the signatures."""
        return [*self.remarks, *self.signatures]

    @property
    def remarks(self) -> list[str]:
        """The notes, the corpora and sizes of the test sets, and the training runs."""
        cells = [table_cell.cell for table_cell in self.cells]
        of_test_set: dict[str, list[Cell]] = {}
        for cell in cells:
            if cell.data:
                name = f"{cell.test_set} ({cell.task_label or cell.task}): {cell.data}."
                of_test_set.setdefault(name, []).append(cell)
        data = [f"{name}{_sizes(own)}" for name, own in of_test_set.items()]
        words = [_WORDS_NOTE] if any(map(compares_words, self.signatures)) else []
        return [*self.notes, *words, *data, *_training_runs(cells)]

    @property
    def signatures(self) -> list[str]:
        """The signatures of the cells, each once."""
        signatures = (table_cell.cell.signature for table_cell in self.cells)
        return [f"Signature: {signature}" for signature in dict.fromkeys(signatures) if signature]

    @property
    def reasons(self) -> dict[str, str]:
        """Reason -> footnote mark (a, b, ..., z, aa, ...), in the order of the cells."""
        reasons = dict.fromkeys(
            table_cell.cell.reason for table_cell in self.cells if table_cell.cell.reason
        )
        return {reason: _footnote_mark(index) for index, reason in enumerate(reasons)}


def count_reasons(tables: Iterable[Table]) -> Counter[str]:
    """Count the cells of tables by their reasons."""
    cells = (table_cell.cell for table in tables for table_cell in table.cells)
    return Counter(cell.reason for cell in cells if cell.reason)


def _sizes(cells: Sequence[Cell]) -> str:
    """The numbers of sentences and of resampled groups that cells with an interval use."""
    used = [cell for cell in cells if cell.low is not None]
    if not used:
        return ""
    sentences = _range([cell.n for cell in used])
    groups = _range([cell.groups for cell in used])
    return f" Cells use {sentences} sentences; intervals resample {groups} groups."


def _training_runs(cells: Sequence[Cell]) -> Iterator[str]:
    """The training runs and members behind the rows of each task, and whether the runs differ."""
    of_task: dict[str, dict[str, tuple[str, int]]] = {}
    for cell in cells:
        if cell.runs:
            of_ensemble = of_task.setdefault(cell.task_label or cell.task, {})
            of_ensemble[cell.ensemble] = cell.runs, cell.members
    for task, of_ensemble in of_task.items():
        members = ", ".join(f"{ensemble_name(name)} {n}" for name, (_, n) in of_ensemble.items())
        by_runs: dict[str, list[str]] = {}
        for name, (runs, _) in of_ensemble.items():
            by_runs.setdefault(runs, []).append(ensemble_name(name))
        in_words = {runs: member_names(runs.split(RUN_SEPARATOR)) for runs in by_runs}
        runs = "; ".join(
            f"{', '.join(names)}: {in_words[runs]}" if len(by_runs) > 1 else in_words[runs]
            for runs, names in by_runs.items()
        )
        of_all = (run for joined in by_runs for run in joined.split(RUN_SEPARATOR))
        title = "Training runs" if all(map(is_training_run, of_all)) else "Models"
        differ = f" (not the same {title.split()[-1].lower()} in all rows)"
        yield f"{title} ({task}){differ if len(by_runs) > 1 else ''}: {runs}. Members: {members}."


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"


def _footnote_mark(index: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[index % 26] * (index // 26 + 1)
