"""Measures of stage uncertainty are read and checked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics.measure_files import (
    SentenceMeasures,
    first_of_each_length_norm,
    read_measures,
)


def frame(sentence_id: list[int], **columns: object) -> pd.DataFrame:
    settings = {"beam": 1, "temperature": 10.0, "length_norm": True, "flag": 0}
    return pd.DataFrame({"sentence_id": sentence_id} | settings | columns)


def test_measures_by_setting_in_the_order_of_sentences(tmp_path: Path) -> None:
    path = tmp_path / "sequence.parquet"
    second = frame([0, 1], beam=5, length_norm=False, u=[0.5, None], var_p=0.0, ln_var_p=-3.0)
    first = frame([1, 0], u=[7.0, 8.0], var_p=0.0, ln_var_p=[-1.0, -2.0])
    pd.concat([second, first]).assign(why="text").to_parquet(path)
    (tmp_path / "checks.json").write_text(json.dumps({"null": {"u": "no member"}}))
    large, small = read_measures(path, 2)
    assert (large.setting, small.setting) == ((5, 10.0, False), (1, 10.0, True))
    assert list(small.values) == ["u", "var_p"]
    assert small.values["u"].tolist() == [8, 7]
    # The variance underflows, so its logarithm replaces it.
    assert small.values["var_p"].tolist() == [-2, -1]
    np.testing.assert_array_equal(large.values["u"], [0.5, np.nan])
    assert small.reason("u") == "no member"
    assert small.reason("var_p") == "no scored sentence has a value of this measure"


@pytest.mark.parametrize("sentence_id", [[0], [0, 0], [0, 2], [0, 1, 2], [1, 2]])
def test_measures_of_other_sentences_are_rejected(tmp_path: Path, sentence_id: list[int]) -> None:
    path = tmp_path / "sequence.parquet"
    frame(sentence_id, u=1.0).to_parquet(path)
    words = rf"each of the 2 sentences .* B = 1, T = 10\.0 \(got {len(sentence_id)} rows\)"
    with pytest.raises(DataError, match=words):
        read_measures(path, 2)


def test_unreadable_measures_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "sequence.parquet"
    with pytest.raises(DataError, match=r"sequence\.parquet: no such file\. Run python"):
        read_measures(path, 2)
    path.write_text("no table", encoding="utf-8")
    with pytest.raises(DataError, match=r"sequence\.parquet: not a complete table .*\(Arrow"):
        read_measures(path, 2)
    pd.DataFrame({"sentence_id": [0]}).to_parquet(path)
    with pytest.raises(DataError, match=r"columns sentence_id, beam, .* \(KeyError"):
        read_measures(path, 2)
    frame([0, 1], u=1.0).to_parquet(path)
    (tmp_path / "checks.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"checks\.json: damaged JSON"):
        read_measures(path, 2)
    (tmp_path / "checks.json").unlink()
    assert len(read_measures(path, 2)) == 1


def test_first_measures_of_each_length_norm_have_one_hypothesis() -> None:
    grid = [
        SentenceMeasures(beam, temperature, length_norm, {}, {}, beam)
        for beam in (5, 1)
        for temperature in (10.0, 1.0)
        for length_norm in (False, True)
    ]
    first = first_of_each_length_norm(grid)
    assert {norm: measures.setting for norm, measures in first.items()} == {
        False: (1, 10.0, False),
        True: (1, 10.0, True),
    }
    assert first_of_each_length_norm(grid[:4]) == {}
