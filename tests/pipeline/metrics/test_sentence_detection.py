"""Which decodes have cells of detection, and which in-domain decode stands against which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.sentence_detection import sentence_detection_cells
from pipeline.metrics.token_errors import token_detection_cells

PAIR = ("seed_1", "seed_2")


def decode(test_set: str, change: dict[str, str], members: tuple[str, ...] = PAIR) -> Decode:
    cell = replace(Cell("nmt_ende", test_set, "random_init", "prex", "beam"), **change)  # type: ignore[arg-type]
    texts: list[str | None] = ["a", "x y", "b c"]
    references: list[str | None] = ["a", "b", "b d"]
    sources = ["a q"] * 3
    return Decode(Path("store.h5"), cell, True, members, sources, texts, references)


def write_measures(folder: Path, part: str, u: list[float]) -> None:
    settings = {"beam": 1, "temperature": 1.0, "length_norm": True, "flag": 0}
    (folder / part).mkdir()
    frame = pd.DataFrame({"sentence_id": range(3)} | settings | {"u": u})
    frame.to_parquet(folder / part / "sequence.parquet")


@pytest.fixture
def found(tmp_path: Path, evaluation: Evaluation) -> Any:
    def cells(decodes: dict[str, Decode], values: dict[str, list[float]]) -> dict[Any, Cell]:
        for part, one in values.items():
            write_measures(tmp_path, part, one)
        made = sentence_detection_cells(decodes, tmp_path, "MED", True, evaluation)
        return {
            (one.test_set, one.ensemble, one.regime, one.metric, one.column): one for one in made
        }

    return cells


def test_each_search_is_held_against_its_own_ensembles_in_domain_decode(found: Any) -> None:
    forced = {"regime": "teacher_forcing", "hypotheses": "reference"}
    decodes = {
        "in": decode("MED", {}),
        "in.other": decode("MED", {"ensemble": "checkpoint"}),
        "out": decode("L-FR", {}),
        "forced.in": decode("MED", forced),
        "forced.out": decode("L-FR", forced),
        # These have no measures: a single model, and samples.
        "single": decode("MED", {"ensemble": "single", "hypotheses": "-"}, PAIR[:1]),
        "sample": decode("MED", {"regime": "sample"}),
    }
    values = {
        "in": [1.0, 9.0, 5.0],
        "in.other": [9.0, 1.0, 5.0],
        "out": [2.0, 9.0, 10.0],
        "forced.in": [1.0, 2.0, 3.0],
        "forced.out": [0.0, 2.5, 0.0],
    }
    cells = found(decodes, values)
    med, french = ("MED", "random_init", "beam"), ("L-FR", "random_init", "beam")
    assert set(cells) == {
        (*med, "prr", "u"),
        (*med, "prr", "copy_through"),
        ("MED", "checkpoint", "beam", "prr", "u"),
        ("MED", "checkpoint", "beam", "prr", "copy_through"),
        (*french, "prr", "u"),
        (*french, "prr", "copy_through"),
        (*french, "roc_auc", "u"),
        (*french, "roc_auc", "copy_through"),
        ("L-FR", "random_init", "teacher_forcing", "roc_auc", "u"),
    }
    # Errors 0, 100 and in between: of the first measure the order is the oracle's.
    assert cells[*med, "prr", "u"].value == pytest.approx(100)
    assert cells["MED", "checkpoint", "beam", "prr", "u"].value < 0
    # Against 1, 9, 5: 2 beats one, 9 one and a half more, 10 all three.
    assert cells[*french, "roc_auc", "u"].value == pytest.approx(100 * (1 + 2.5 + 3) / 9)
    forced_cell = cells["L-FR", "random_init", "teacher_forcing", "roc_auc", "u"]
    assert forced_cell.value == pytest.approx(100 * 2 / 9)
    assert cells[*french, "roc_auc", "copy_through"].value == 50


@pytest.mark.parametrize(
    ("change", "members"),
    [
        ({"ensemble": "checkpoint"}, PAIR),
        ({"hypotheses": "expr"}, PAIR),
        ({"regime": "greedy"}, PAIR),
        ({}, ("seed_1", "seed_3")),
    ],
)
def test_a_set_without_its_own_in_domain_decode_is_left_out(
    found: Any, change: dict[str, str], members: tuple[str, ...]
) -> None:
    decodes = {"in": decode("MED", {}), "out": decode("L-FR", change, members)}
    cells = found(decodes, {"in": [1.0, 2.0, 3.0], "out": [1.0, 2.0, 3.0]})
    assert {key[3] for key in cells} == {"prr"}


def test_a_kind_of_ensembles_needs_the_in_domain_decode_of_each(found: Any) -> None:
    runs = [PAIR, ("seed_3", "seed_4")]
    out = {f"out{run}": decode("L-FR", {}, members) for run, members in enumerate(runs)}
    values = {part: [1.0, 2.0, 3.0] for part in (*out, "in0")}
    cells = found({"in0": decode("MED", {}, runs[0])} | out, values)
    assert {key[3] for key in cells} == {"prr"}


def test_measures_that_are_not_there(tmp_path: Path, evaluation: Evaluation) -> None:
    decodes = {"in": decode("MED", {})}
    with pytest.raises(DataError, match=r"in/sequence\.parquet: no such file"):
        list(sentence_detection_cells(decodes, tmp_path, "MED", True, evaluation))
    with pytest.raises(DataError, match=r"in/token\.parquet: no such file"):
        list(token_detection_cells(decodes, tmp_path, None, evaluation))


def test_tokens_of_ensembles_that_searched(tmp_path: Path, evaluation: Evaluation) -> None:
    """Two runs of one kind are one group; what has no search or one member has no cell."""
    decodes = {
        "a": decode("MED", {}),
        "b": decode("MED", {}, ("seed_3", "seed_4")),
        "greedy": decode("MED", {"regime": "greedy"}),
        "forced": decode("MED", {"regime": "teacher_forcing"}),
        "single": decode("MED", {"ensemble": "single"}, PAIR[:1]),
    }
    empty = {name: [0] for name in ("sentence_id", "hypothesis", "position", "token_id")}
    for part in ("a", "b", "greedy"):
        (tmp_path / part).mkdir()
        frame = pd.DataFrame(empty | {"prex_score": [1.0]})
        frame.to_parquet(tmp_path / part / "token.parquet")
    cells = list(token_detection_cells(decodes, tmp_path, None, evaluation))
    names = [(cell.regime, "ensembles:2" in cell.signature) for cell in cells]
    assert sorted(set(names)) == [("beam", True), ("greedy", False)]
    assert {cell.reason for cell in cells} == {"the dictionary of tokens is missing"}
