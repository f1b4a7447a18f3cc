"""Which decodes the page lets one browse: one a test set, chosen by a rule that the page tells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.token_labels import SPECIAL_TOKENS, read_vocabulary
from pipeline.quality.registry import QUALITIES
from pipeline.report.cells import CellIndex
from pipeline.report.names import decoder_name
from pipeline.report.page.sentences import sentence_data
from pipeline.run.artifacts import read_manifest
from pipeline.store import Store, open_store


def read_pieces(path: Path, vocab_size: int) -> list[str]:
    """The unit of every token id: [vocab].

    Raises DataError if there is no dictionary, or one of other units than the store counts.
    """
    if not path.is_file():
        raise DataError(f"{path} must exist: run python -m stages.prepare first")
    pieces = read_vocabulary(path)
    if len(pieces) != vocab_size:
        wanted, found = (size - len(SPECIAL_TOKENS) for size in (vocab_size, len(pieces)))
        raise DataError(
            f"{path} must list the {wanted} units of the decode store, "
            f"got {found}: run python -m stages.prepare and stages.decode"
        )
    return pieces


def ordered_test_sets(cells: Iterable[Cell], task: str) -> list[str]:
    """The baseline first, then sets with decodes of single members, then those only scored.

    The baseline is told by having no ROC-AUC: the others are told apart from it.
    """
    by_set: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.task == task:
            by_set.setdefault(cell.test_set, []).append(cell)

    def rank(name: str) -> tuple[bool, bool, bool]:
        own = by_set[name]
        return (
            all(cell.regime == "teacher_forcing" for cell in own),
            any(cell.metric == "roc_auc" for cell in own),
            all(cell.ensemble != "single" for cell in own),
        )

    return sorted(by_set, key=rank)


_PAPER_ENSEMBLE = "random_init"


@dataclass(frozen=True)
class TaskFolders:
    """Where the results of a task are: its parts of decode and of uncertainty, and its data card.

    `dictionary` lists the target units as fairseq does; without one, tokens are shown by their ids.
    """

    name: str
    decode: Path
    uncertainty: Path
    data_card: Path | None = None
    dictionary: Path | None = None


@dataclass(frozen=True)
class BrowsableSet:
    """A decode whose sentences the page embeds, as JSON text (its form: `sentence_data`).

    `n_sentence` counts the whole set, of which the page holds the first `n_embedded`.
    """

    task: str
    test_set: str
    ensemble: str
    combination: str
    regime: str
    quality: str
    members: list[str]
    measures: list[str]
    n_sentence: int
    n_embedded: int
    json: str

    @property
    def decoded_by(self) -> str:
        """The decode in words."""
        return decoder_name(self.ensemble, self.combination, self.regime)


def browsable_sets(
    task: TaskFolders, cells: pd.DataFrame, most_sentences: int
) -> list[BrowsableSet]:
    """One measured decode a test set, with at most so many sentences.

    Of several decodes a search is taken before teacher forcing, the paper's ensemble before others,
    PrEx before ExPr. `cells` are those of all tasks (pipeline.report.cells). Raises DataError or
    StoreError for results that do not belong together.
    """
    index = CellIndex(cells)
    wanted = index.ensemble(task.name, _PAPER_ENSEMBLE)
    chosen: dict[str, tuple[tuple[bool, ...], str]] = {}
    for part in read_manifest(task.decode):
        if not (task.uncertainty / part / "sequence.parquet").is_file():
            continue  # members alone have no measures
        with open_store(task.decode / part / "store.h5") as store:
            test_set = _attribute(store, "test_set")
            less_wanted = (
                store.regime == "teacher_forcing",
                _attribute(store, "ensemble") != wanted,
                store.combination != "prex",
            )
        if test_set not in chosen or less_wanted < chosen[test_set][0]:
            chosen[test_set] = less_wanted, part
    quality = _quality(index, task.name)
    return [
        _browsable(task, chosen[test_set][1], quality, most_sentences)
        for test_set in dict.fromkeys([*ordered_test_sets(index.cells, task.name), *chosen])
        if test_set in chosen
    ]


def _browsable(task: TaskFolders, part: str, quality: str, most_sentences: int) -> BrowsableSet:
    with open_store(task.decode / part / "store.h5") as store:
        pieces = read_pieces(task.dictionary, store.vocab_size) if task.dictionary else None
        data = sentence_data(
            store, task.uncertainty / part, QUALITIES[quality], most_sentences, pieces
        )
        return BrowsableSet(
            task=task.name,
            test_set=_attribute(store, "test_set"),
            ensemble=_attribute(store, "ensemble"),
            combination=store.combination,
            regime=store.regime,
            quality=quality,
            members=store.members,
            measures=list(data["measures"]),
            n_sentence=store.n_sentence,
            n_embedded=len(data["source"]),
            json=json_text(data),
        )


def _quality(index: CellIndex, task: str) -> str:
    """The quality metric that the cells of a task hold."""
    found = dict.fromkeys(cell.metric for cell in index.cells if cell.task == task)
    for name in QUALITIES:
        if name in found:
            return name
    raise DataError(
        f"the cells of {task} must hold one of {', '.join(QUALITIES)}, got {', '.join(found)}: "
        "run python -m stages.metrics again"
    )


def json_text(value: Any) -> str:
    """JSON that no text can break out of: without '<' no tag and no comment begins in HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _attribute(store: Store, name: str) -> str:
    return str(store.attributes.get(name, ""))
