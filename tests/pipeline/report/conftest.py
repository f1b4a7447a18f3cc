from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from pipeline.metrics.cell import Cell, write_cells
from pipeline.report.cells import read_cells
from pipeline.report.paper import paper_cells

MakeFrame = Callable[..., pd.DataFrame]


@pytest.fixture(scope="session")
def frame_of(tmp_path_factory: pytest.TempPathFactory) -> MakeFrame:
    """Cells as the report reads them."""

    def make(*cells: Cell) -> pd.DataFrame:
        path = tmp_path_factory.mktemp("cells") / "cells.csv"
        write_cells(path, cells)
        return read_cells([path])

    return make


@pytest.fixture(scope="session")
def like_paper() -> Callable[..., list[Cell]]:
    """Cells with the keys of a table of the paper and its values plus one, at most 100."""

    def make(label: str, *tasks: str) -> list[Cell]:
        return [
            Cell(
                **one.key._replace(
                    test_set=one.key.test_set.replace("nwt14", "newstest14")
                )._asdict(),
                value=min(one.value + 1, 100),
                low=one.value,
                high=min(one.value + 2, 100),
                n=100,
                data=f"corpus of {one.key.test_set}",
                signature=f"sig:{one.key.test_set}",
                also_called="nwt14" if "14" in one.key.test_set else "",
            )
            for one in paper_cells(label)
            if one.key.task in tasks
        ]

    return make
