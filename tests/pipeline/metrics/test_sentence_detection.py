"""Detection cells: which decodes have them, and which in-domain decode is the reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import MeasuredDecode, SentenceMeasures
from pipeline.metrics.sentence_detection import (
    error_detection_cells,
    ood_detection_cells,
    sentence_detection_cells,
)
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
def detection_cells(tmp_path: Path, evaluation: Evaluation) -> Any:
    def cells(decodes: dict[str, Decode], values: dict[str, list[float]]) -> dict[Any, Cell]:
        for part, u in values.items():
            write_measures(tmp_path, part, u)
        detected = sentence_detection_cells(decodes, tmp_path, "MED", True, evaluation)
        return {
            (cell.test_set, cell.ensemble, cell.regime, cell.metric, cell.column): cell
            for cell in detected
        }

    return cells


def test_each_search_is_compared_with_the_in_domain_decode_of_its_ensemble(
    detection_cells: Any,
) -> None:
    forced = {"regime": "teacher_forcing", "hypotheses": "reference"}
    decodes = {
        "in": decode("MED", {}),
        "in.checkpoint": decode("MED", {"ensemble": "checkpoint"}),
        "out": decode("L-FR", {}),
        "forced.in": decode("MED", forced),
        "forced.out": decode("L-FR", forced),
        "single": decode("MED", {"ensemble": "single", "hypotheses": "-"}, PAIR[:1]),
        # Samples and references by a single member have no cells.
        "sample": decode("L-FR", {"regime": "sample"}),
        "forced": decode("MED", {"ensemble": "single"} | forced, PAIR[:1]),
    }
    values = {
        "in": [1.0, 9.0, 5.0],
        "in.checkpoint": [9.0, 1.0, 5.0],
        "out": [2.0, 9.0, 10.0],
        "forced.in": [1.0, 2.0, 3.0],
        "forced.out": [0.0, 2.5, 0.0],
        "single": [1.0, 2.0, 3.0],
        "sample": [0.0, 0.0, 0.0],
    }
    cells = detection_cells(decodes, values)
    med, french = ("MED", "random_init", "beam"), ("L-FR", "random_init", "beam")
    searches = [med, french, *(("MED", ensemble, "beam") for ensemble in ("checkpoint", "single"))]
    assert set(cells) == {
        *(
            (*search, metric, column)
            for search in searches
            for metric in ("prr", "spearman")
            for column in ("u", "copy_through", "source_length")
        ),
        *((*french, "roc_auc", column) for column in ("u", "copy_through", "source_length")),
        ("L-FR", "random_init", "teacher_forcing", "roc_auc", "u"),
    }
    # Errors are 0, 100 and in between. The first measure ranks like the oracle.
    assert cells[*med, "prr", "u"].value == pytest.approx(100)
    assert cells[*med, "spearman", "u"].value == pytest.approx(1)
    assert cells["MED", "single", "beam", "spearman", "u"].value == pytest.approx(0.5)
    assert cells["MED", "single", "beam", "spearman", "u"].signature.endswith(
        "; measures; Spearman|error:sentence-bleu|tok:13a|norm:NFC|ties:mean"
        "; bootstrap|n:30|seed:0|unit:sentence, no groups|groups:3|interval:expanded-percentile-95"
    )
    assert cells["MED", "checkpoint", "beam", "prr", "u"].value < 0
    # Compared with 1, 9, 5: 2 exceeds one of them, 9 exceeds two and ties with one, 10 exceeds all.
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
def test_a_test_set_without_an_in_domain_decode_is_left_out(
    detection_cells: Any, change: dict[str, str], members: tuple[str, ...]
) -> None:
    decodes = {"in": decode("MED", {}), "out": decode("L-FR", change, members)}
    cells = detection_cells(decodes, {"in": [1.0, 2.0, 3.0], "out": [1.0, 2.0, 3.0]})
    assert {key[3] for key in cells} == {"prr", "spearman"}


def test_a_correlation_needs_an_in_domain_set(detection_cells: Any) -> None:
    outside = replace(decode("L-FR", {}), in_domain=False)
    cells = detection_cells({"out": outside}, {"out": [1.0, 2.0, 3.0]})
    assert {key[3] for key in cells} == {"prr"}


def test_cells_state_the_b_that_the_store_has(tmp_path: Path, evaluation: Evaluation) -> None:
    """A cell of B = 10 from stores of 5 hypotheses per sentence says so."""
    decodes = {"in": decode("MED", {}), "out": decode("L-FR", {})}
    for part in decodes:
        settings = {"temperature": 1.0, "length_norm": True, "flag": 0}
        frames = [
            pd.DataFrame(
                {"sentence_id": range(3), "beam": beam} | settings | {"u": [1.0, 2.0, 3.0]}
            )
            for beam in (1, 5, 10)
        ]
        (tmp_path / part).mkdir()
        pd.concat(frames).to_parquet(tmp_path / part / "sequence.parquet")
        # The in-domain store does not name its beam, and has only sentences with fewer hypotheses.
        used = {"1": 1, "5": 5, "10": 5} if part == "out" else {"1": 1, "5": 4, "10": 4}
        report = {"beam": {"used": used}}
        (tmp_path / part / "checks.json").write_text(json.dumps(report), encoding="utf-8")
    cells = sentence_detection_cells(decodes, tmp_path, "MED", True, evaluation)
    reasons = {c.B: c.reason for c in cells if (c.metric, c.column) == ("roc_auc", "u")}
    fewer = "the decodes have no more than 5 hypotheses per sentence"
    assert reasons["10"] == f"{reasons['5']}; {fewer}"
    assert reasons["1"] == reasons["5"] == "no interval: undefined in 5 of 30 resamples"


def test_replicates_need_the_in_domain_decode_of_each_ensemble(detection_cells: Any) -> None:
    runs = [PAIR, ("seed_3", "seed_4")]
    out = {f"out{run}": decode("L-FR", {}, members) for run, members in enumerate(runs)}
    values = {part: [1.0, 2.0, 3.0] for part in (*out, "in0")}
    cells = detection_cells({"in0": decode("MED", {}, runs[0])} | out, values)
    assert {key[3] for key in cells} == {"prr", "spearman"}


def test_missing_measures_are_reported(tmp_path: Path, evaluation: Evaluation) -> None:
    decodes = {"in": decode("MED", {})}
    with pytest.raises(DataError, match=r"in/sequence\.parquet: no such file"):
        list(sentence_detection_cells(decodes, tmp_path, "MED", True, evaluation))
    with pytest.raises(DataError, match=r"in/token\.parquet: no such file"):
        list(token_detection_cells(decodes, tmp_path, None, evaluation))


def test_token_cells_are_of_ensembles_that_searched(tmp_path: Path, evaluation: Evaluation) -> None:
    """Two ensembles of one kind are replicates; forced and single decodes have no cell."""
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
    cells = list(token_detection_cells(decodes, tmp_path, lambda _: None, evaluation))
    names = [(cell.regime, "ensembles:2" in cell.signature) for cell in cells]
    assert sorted(set(names)) == [("beam", True), ("greedy", False)]
    assert {cell.reason for cell in cells} == {"the dictionary of tokens is missing"}


def test_error_detection_uses_scored_sentences(measured, evaluation):
    (cell,) = error_detection_cells(
        [measured([1, 2, 3, np.nan], ["a", "b", "c d", "e"], ["a", "b", "x", "e"])], evaluation
    )
    assert (cell.value, cell.n, cell.T, cell.B) == (100, 3, "", "1")
    assert cell.signature.startswith(
        "sig; measures; PRR|error:sentence-bleu|tok:13a|norm:NFC|ties:mean; bootstrap"
    )


@pytest.mark.parametrize(
    ("values", "texts", "references", "n", "reason"),
    [
        ([1, 2], ["a", "b"], [None, None], 0, "no reference"),
        ([1, 2], [None, None], ["a", "b"], 0, "no hypothesis"),
        ([1, 2], [None, "b"], ["a", None], 0, "no sentence has both a hypothesis and a reference"),
        ([1, np.nan], [None, "b"], ["a", "b"], 0, "no scored sentence has a value of this measure"),
        ([1, 2], ["a", None], ["a", "b"], 1, "a single sentence has no order"),
        ([1, 2], ["a", "b"], ["a", "b"], 2, "all errors are equal"),
    ],
)
def test_missing_value_has_a_reason(measured, evaluation, values, texts, references, n, reason):
    (cell,) = error_detection_cells([measured(values, texts, references)], evaluation)
    assert (cell.value, cell.n, cell.reason) == (None, n, reason)


def test_a_constant_measure_scores_chance_with_a_reason(measured, evaluation):
    (cell,) = error_detection_cells([measured([0, 0, 0])], evaluation)
    assert (cell.value, cell.reason) == (0, "the measure is the same for every sentence")


def _measured(*uncertainty: float) -> MeasuredDecode:
    cell = Cell("nmt_ende", "PRM", "random_init", "prex", "beam")
    texts: list[str | None] = ["a"] * len(uncertainty)
    values = {"prex_entropy_s": np.array(uncertainty)}
    sources = ["source"] * len(uncertainty)
    decode = Decode(Path("store.h5"), cell, False, ("seed_1",), sources, texts, texts)
    return MeasuredDecode(decode, [SentenceMeasures(1, 10.0, True, values, {}, 1)])


def test_a_single_sentence_of_a_class_has_a_value_and_no_interval(evaluation: Evaluation) -> None:
    (cell,) = ood_detection_cells([_measured(1.0)], [_measured(2.0, 0.5, 3.0)], evaluation)
    assert round(cell.value or 0, 6) == round(200 / 3, 6)
    assert (cell.low, cell.high) == (None, None)
    assert cell.reason == "a single group of sentences has no interval"


def test_a_setting_that_one_class_lacks_has_a_reason(evaluation: Evaluation) -> None:
    """Only equal settings are compared; the in-domain set has T = 1, the OOD set T = 10."""
    in_domain, ood = _measured(1.0, 2.0), _measured(3.0, 0.5)
    first = replace(in_domain, grid=[replace(in_domain.grid[0], temperature=1.0)])
    (cell,) = ood_detection_cells([first], [ood], evaluation)
    assert (cell.value, cell.T) == (None, "10")
    assert cell.reason == "the in-domain set lacks this measure"
    both = replace(first, grid=[*first.grid, *in_domain.grid])
    (cell,) = ood_detection_cells([both], [ood], evaluation)
    assert cell.value == 50
