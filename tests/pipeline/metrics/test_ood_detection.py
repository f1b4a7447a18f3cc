from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import MeasuredDecode, SentenceMeasures
from pipeline.metrics.sentence_detection import ood_detection_cells


def _measured(*uncertainty: float) -> MeasuredDecode:
    cell = Cell("nmt_ende", "PRM", "random_init", "prex", "beam")
    texts: list[str | None] = ["a"] * len(uncertainty)
    values = {"prex_entropy_s": np.array(uncertainty)}
    sources = ["source"] * len(uncertainty)
    decode = Decode(Path("store.h5"), cell, False, ("seed_1",), sources, texts, texts)
    return MeasuredDecode(decode, [SentenceMeasures(1, 10.0, True, values, {})])


def test_one_sentence_on_a_side_has_a_value_and_no_interval(evaluation: Evaluation) -> None:
    (cell,) = ood_detection_cells([_measured(1.0)], [_measured(2.0, 0.5, 3.0)], evaluation)
    assert round(cell.value or 0, 6) == round(200 / 3, 6)
    assert (cell.low, cell.high) == (None, None)
    assert cell.reason == "a single sentence has no interval"


def test_a_setting_that_one_side_lacks(evaluation: Evaluation) -> None:
    """Only equal settings are compared: the in-domain set has T = 1 where the other has T = 10."""
    here, other = _measured(1.0, 2.0), _measured(3.0, 0.5)
    first = replace(here, grid=[replace(here.grid[0], temperature=1.0)])
    (cell,) = ood_detection_cells([first], [other], evaluation)
    assert (cell.value, cell.T) == (None, "10")
    assert cell.reason == "the in-domain set lacks this measure"
    both = replace(first, grid=[*first.grid, *here.grid])
    (cell,) = ood_detection_cells([both], [other], evaluation)
    assert cell.value == 50
