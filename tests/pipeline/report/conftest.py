from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from pipeline.metrics.cell import Cell, write_cells
from pipeline.report.cells import read_cells
from pipeline.report.paper_numbers import FAMILIES, paper_cells

LABELS = {"nmt_ende": "EN-DE", "nmt_enfr": "EN-FR", "asr": "ASR"}
MakeFrame = Callable[..., pd.DataFrame]


@pytest.fixture(scope="session")
def frame_of(tmp_path_factory: pytest.TempPathFactory) -> MakeFrame:
    """Return a function that turns cells into the frame that the report reads."""

    def make(*cells: Cell) -> pd.DataFrame:
        path = tmp_path_factory.mktemp("cells") / "cells.csv"
        write_cells(path, cells)
        return read_cells([path])

    return make


@pytest.fixture(scope="session")
def like_paper() -> Callable[..., list[Cell]]:
    """Return a function that makes the cells of a table of the paper, with values plus one."""

    def make(label: str, *tasks: str) -> list[Cell]:
        return [
            Cell(
                **cell.key._replace(
                    test_set=cell.key.test_set.replace("nwt14", "newstest14")
                )._asdict(),
                value=min(cell.value + 1, 100),
                low=cell.value,
                high=min(cell.value + 2, 100),
                n=100,
                groups=50,
                data=f"corpus of {cell.key.test_set}",
                signature=f"sig:{cell.key.test_set}",
                roles="nwt14" if "14" in cell.key.test_set else "",
                task_label=LABELS[cell.key.task],
                family=FAMILIES[cell.key.task],
            )
            for cell in paper_cells(label)
            if cell.key.task in tasks
        ]

    return make
