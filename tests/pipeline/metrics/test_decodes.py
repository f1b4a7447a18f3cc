"""What the metrics read of a store and of its measures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics.decodes import Decode, read_decodes
from pipeline.metrics.measure_files import (
    SentenceMeasures,
    first_of_each_length_norm,
    read_measures,
)
from pipeline.run import settings as config
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics

SETS = {
    "MED": config.TestSetConfig(
        kind="held_out", corpus="help", in_domain=True, also_called=["M", "N"]
    ),
    "L-FR": config.TestSetConfig(kind="held_out", corpus="french", in_domain=False),
}


def write_store(folder: Path, part: str, **attributes: object) -> None:
    everything = {"regime": "beam", "combination": "prex", "vocab_size": 3} | attributes
    n_member = len(everything["members"])  # type: ignore[arg-type]
    plain = {name: np.zeros(1) for name in TokenStatistics.__dataclass_fields__}
    of_members = {name: np.zeros((1, n_member)) for name in ("logprob", "entropy_member")}
    statistics = TokenStatistics(**(plain | of_members))
    one = Hypothesis(np.array([2]), "said", 0.0, True, statistics)
    with StoreWriter(folder / part / "store.h5", **everything) as store:
        store.add_sentence(0, "source", "meant", [one])
        store.add_sentence(1, "other", None, [])


@pytest.mark.parametrize(
    ("attributes", "key", "kind"),
    [
        (
            {"members": ["a", "b"], "ensemble": "random_init"},
            ("random_init", "prex", "beam"),
            (True, False, True),
        ),
        (
            {"members": ["a", "b"], "ensemble": "random_init", "combination": "expr"},
            ("random_init", "expr", "beam"),
            (True, False, True),
        ),
        ({"members": ["a"], "ensemble": "a"}, ("single", "-", "beam"), (True, False, False)),
        (
            {"members": ["a"], "ensemble": "a", "regime": "greedy"},
            ("single", "-", "greedy"),
            (True, False, False),
        ),
        ({"members": ["a"], "ensemble": "b"}, ("b", "prex", "beam"), (True, False, True)),
        (
            {"members": ["a"], "ensemble": "checkpoint_average"},
            ("checkpoint_average", "-", "beam"),
            (True, False, True),
        ),
        (
            {"members": ["a", "b"], "ensemble": "random_init", "regime": "teacher_forcing"},
            ("random_init", "reference", "teacher_forcing"),
            (False, True, True),
        ),
        (
            {"members": ["a", "b"], "ensemble": "random_init", "regime": "sample"},
            ("random_init", "prex", "sample"),
            (False, False, True),
        ),
    ],
)
def test_a_decode_is_named_by_its_store(
    tmp_path: Path,
    attributes: dict[str, object],
    key: tuple[str, str, str],
    kind: tuple[bool, bool, bool],
) -> None:
    write_store(tmp_path, "part", test_set="MED", signature="sig", **attributes)
    decode = read_decodes(tmp_path, ["part"], "nmt_ende", SETS)["part"]
    cell = decode.cell
    assert (cell.ensemble, cell.hypotheses, cell.regime) == key
    assert (decode.is_search, decode.is_forced, decode.is_ensemble) == kind
    assert (cell.task, cell.test_set, cell.data, cell.signature) == (
        "nmt_ende",
        "MED",
        "help",
        "sig",
    )
    assert cell.also_called == "M N"
    assert decode.members == tuple(attributes["members"])  # type: ignore[arg-type]
    assert decode.sources == ["source", "other"]
    assert decode.texts == ["said", None]
    assert decode.references == ["meant", None]
    assert decode.scorable.tolist() == [True, False]


def test_parts_keep_their_order_and_their_sets(tmp_path: Path) -> None:
    for part, test_set in (("z", "MED"), ("a", "L-FR")):
        write_store(tmp_path, part, test_set=test_set, members=["m"], ensemble="m")
    decodes = read_decodes(tmp_path, ["z", "a"], "nmt_ende", SETS)
    assert [(part, one.in_domain) for part, one in decodes.items()] == [("z", True), ("a", False)]


@pytest.mark.parametrize("attributes", [{}, {"test_set": "PRM"}])
def test_a_store_of_an_unknown_set(tmp_path: Path, attributes: dict[str, str]) -> None:
    write_store(tmp_path, "part", members=["a"], **attributes)
    with pytest.raises(DataError, match=r"must be one of MED, L-FR \(got '(PRM)?'\)\. Run"):
        read_decodes(tmp_path, ["part"], "nmt_ende", SETS)


def test_why_no_sentence_can_be_scored(measured) -> None:
    decode: Decode = measured([1, 2], ["a", None], [None, "b"]).decode
    assert decode.scorable.tolist() == [False, False]
    assert decode.why_not_scorable == "no sentence has both a hypothesis and a reference"
    for change, reason in (
        ({"references": [None, None]}, "no reference"),
        ({"texts": [None, None]}, "no hypothesis"),
        ({"texts": [None, None], "references": [None, None]}, "no reference"),
        ({"texts": [], "references": []}, "the test set has no sentence"),
    ):
        assert replace(decode, **change).why_not_scorable == reason


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
    # The logarithm stands for the variance, which underflows.
    assert small.values["var_p"].tolist() == [-2, -1]
    np.testing.assert_array_equal(large.values["u"], [0.5, np.nan])
    assert small.reason("u") == "no member"
    assert small.reason("var_p") == "no scored sentence has a value of this measure"


@pytest.mark.parametrize("sentence_id", [[0], [0, 0], [0, 2], [0, 1, 2], [1, 2]])
def test_measures_of_other_sentences(tmp_path: Path, sentence_id: list[int]) -> None:
    path = tmp_path / "sequence.parquet"
    frame(sentence_id, u=1.0).to_parquet(path)
    words = rf"each of the 2 sentences .* B = 1, T = 10\.0 \(got {len(sentence_id)} rows\)"
    with pytest.raises(DataError, match=words):
        read_measures(path, 2)


def test_measures_that_cannot_be_read(tmp_path: Path) -> None:
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


def test_the_first_measures_of_one_hypothesis() -> None:
    grid = [
        SentenceMeasures(beam, temperature, length_norm, {}, {})
        for beam in (5, 1)
        for temperature in (10.0, 1.0)
        for length_norm in (False, True)
    ]
    first = first_of_each_length_norm(grid)
    assert {norm: one.setting for norm, one in first.items()} == {
        False: (1, 10.0, False),
        True: (1, 10.0, True),
    }
    assert first_of_each_length_norm(grid[:4]) == {}
