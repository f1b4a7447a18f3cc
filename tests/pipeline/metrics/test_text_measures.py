"""Measures that need no hypothesis of their own: the length of the source, and those of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pipeline.metrics.evaluation import Evaluation
from pipeline.metrics.measure_files import MeasuredDecode
from pipeline.metrics.sample_measures import with_measures_of_samples
from pipeline.metrics.sentence_detection import error_detection_cells, ood_detection_cells
from pipeline.metrics.source_length import with_source_length

Make = Callable[..., MeasuredDecode]


def test_the_length_of_a_source_counts_characters_in_nfc(measured: Make) -> None:
    decode = measured([1, 2, 3], ["a", "b", None], sources=["a\u0308 b\tc", "", "z"])
    values = with_source_length(decode, source_is_text=True).grid[0].values
    np.testing.assert_array_equal(values["source_length"], [3, 0, np.nan])


def test_speech_has_no_length_of_a_source_text(measured: Make, evaluation: Evaluation) -> None:
    decode = with_source_length(measured([1, 2, 3]), source_is_text=False)
    cells = {cell.column: cell for cell in ood_detection_cells([decode], [decode], evaluation)}
    assert cells["source_length"].reason == "speech has no source text"
    assert cells["u"].value == 50


def sampled(measured: MeasuredDecode, values: dict[int, list[float]], **change: str) -> object:
    """Samples by the same ensemble, with measure `mc` of each number of samples."""
    cell = replace(measured.decode.cell, regime="sample", signature="drawn", **change)  # type: ignore[arg-type]
    (first,) = measured.grid
    grid = [
        replace(first, beam=beam, values={"u": np.zeros(3), "mc": np.array(of_beam)})
        for beam, of_beam in values.items()
    ]
    return replace(measured, decode=replace(measured.decode, cell=cell), grid=grid)


def test_a_search_has_the_measures_of_the_most_samples(
    measured: Make, evaluation: Evaluation
) -> None:
    search = measured([3, 1, 2])
    drawn = sampled(search, {20: [1, 2, 3], 1: [9, 9, 9]})
    (joined,) = with_measures_of_samples([drawn, search])  # type: ignore[list-item]
    np.testing.assert_array_equal(joined.grid[0].values["mc"], [1, 2, 3])
    np.testing.assert_array_equal(joined.grid[0].values["u"], [3, 1, 2])
    cells = {cell.column: cell for cell in error_detection_cells([joined], evaluation)}
    assert "; samples drawn" in cells["mc"].signature
    assert "samples" not in cells["u"].signature


def test_samples_belong_to_the_same_ensemble_posterior_and_test_set(measured: Make) -> None:
    search = measured([3, 1, 2])
    of_members = sampled(search, {1: [1, 2, 3]}, hypotheses="member")
    (joined,) = with_measures_of_samples([search, of_members])  # type: ignore[list-item]
    assert "mc" in joined.grid[0].values
    for change in ({"hypotheses": "expr"}, {"ensemble": "checkpoint"}, {"test_set": "other"}):
        other = sampled(search, {1: [1, 2, 3]}, **change)
        (alone,) = with_measures_of_samples([search, other])  # type: ignore[list-item]
        assert alone == search
