"""Measures of the user: called once, averaged like those of the paper, and refused by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import ConfigError
from pipeline.run.measure_rules import MeasureRules
from pipeline.store import Hypothesis, Store
from pipeline.uncertainty.blocks import HypothesisSummation, token_blocks
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from pipeline.uncertainty.token import token_statistics

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
SIZE = {"n_member": 2, "vocab_size": 2}


def hypothesis(text: str, first: float, second: float, member: int = -1) -> Hypothesis:
    """Return one token with probability `first` under member 0 and `second` under member 1."""
    logprob = np.log([[[first, 1 - first], [second, 1 - second]]])
    statistics = token_statistics(logprob, np.array([0]))
    return Hypothesis(np.array([0]), text, 0.0, True, statistics, member=member)


@pytest.fixture
def store(store_of: StoreOf) -> Store:
    """Return sentences of 3, 0 and 1 hypotheses; those of the first have P = 0.4, 0.2 and 0.1."""
    first = [hypothesis("ab", 0.5, 0.3), hypothesis("c", 0.2, 0.2), hypothesis("ab", 0.1, 0.1)]
    return store_of([first, [], [hypothesis("d", 0.5, 0.5)]], **SIZE)


def values(_: Store) -> list[float]:
    return [1, 2, 10, -3]


def measured(store: Store, folder: Path, grid: Grid) -> tuple[pd.DataFrame, dict[str, Any]]:
    report = write_measures(store, folder, grid)
    return pd.read_parquet(folder / "sequence.parquet"), report


def of_first_sentence(store: Store, folder: Path, grid: Grid) -> list[float]:
    table, _ = measured(store, folder, grid)
    column: list[float] = table.loc[table.sentence_id == 0, "mine"].tolist()
    return column


def test_functions_are_called_once_per_value_of_their_settings(store: Store, tmp_path: Path):
    calls: Counter[str] = Counter()

    def counted(name: str) -> np.ndarray:
        calls[name] += 1
        return np.arange(float(store.n_sentence))

    def of_all(store: Store, **settings: Any) -> np.ndarray:
        assert {*settings} == {"beam", "temperature", "length_norm"}
        return counted("all") + settings["temperature"]

    def of_hypotheses(store: Store, length_norm: bool) -> np.ndarray:
        counted("of_hypotheses")
        return np.full(store.n_hypothesis, float(length_norm))

    extra: dict[str, Any] = {
        "one": lambda store: counted("one"),
        "beams": lambda store, beam: counted("beams") + beam,
        "two": lambda store, *, temperature, beam: counted("two"),
        "all": of_all,
    }
    grid = Grid([1, 3], [1, 10, 5], [True, False], MeasureRules(), extra, {"own": of_hypotheses})
    table, _ = measured(store, tmp_path, grid)
    assert calls == {"one": 1, "beams": 2, "two": 6, "all": 12, "of_hypotheses": 2}
    last = table[table.sentence_id == 2]
    assert (last["one"] == 2).all()
    assert (last["beams"] == 2 + last["beam"]).all()
    assert (last["all"] == 2 + last["temperature"]).all()
    assert (last["own"] == last["length_norm"]).all()


@pytest.mark.parametrize(
    ("beam", "temperature", "weights"),
    [
        (1, 1, [1]),
        (2, 1, [2 / 3, 1 / 3]),
        (3, 1, [4 / 7, 2 / 7, 1 / 7]),
        (3, 2, np.sqrt([4, 2, 1]) / np.sqrt([4, 2, 1]).sum()),
    ],
)
def test_values_of_hypotheses_have_importance_weights_by_hand(
    store: Store, tmp_path: Path, beam: int, temperature: float, weights: list[float]
):
    grid = Grid([beam], [temperature], [True], hypothesis_measures={"mine": values})
    expected = np.dot(weights, [1, 2, 10][:beam])
    assert of_first_sentence(store, tmp_path, grid) == pytest.approx([expected], rel=1e-6)
    table = pd.read_parquet(tmp_path / "sequence.parquet")
    assert table["mine"].isna().tolist() == [False, True, False]
    assert table["mine"].iloc[2] == -3


def test_weights_come_from_the_posterior_of_the_settings(store_of: StoreOf, tmp_path: Path):
    """Two tokens: PrEx has 0.2 * 0.5 = 0.1, and ExPr (0.3 * 0.9 + 0.1 * 0.1) / 2 = 0.14."""
    two = np.log([[[0.3, 0.7], [0.1, 0.9]], [[0.9, 0.1], [0.1, 0.9]]])
    token = np.array([0, 0])
    long = Hypothesis(token, "b", 0.0, True, token_statistics(two, token))
    store = store_of([[hypothesis("a", 0.5, 0.3), long]], **SIZE)
    for posterior, probability in (("decoding", 0.1), ("prex", 0.1), ("expr", 0.14)):
        grid = Grid(
            [2], [1], [True], MeasureRules(posterior), {}, {"mine": lambda store: [0.0, 1.0]}
        )
        expected = probability / (0.4 + probability)
        assert of_first_sentence(store, tmp_path, grid) == pytest.approx([expected], rel=1e-6)


def test_equal_texts_are_merged_like_in_the_measures_of_the_paper(
    store_of: StoreOf, tmp_path: Path
):
    """`ab` has P = 0.4 + 0.1 in two token sequences, with the shares 0.8 and 0.2."""
    other = np.log([[[0.5, 0.5], [0.5, 0.5]], [[0.2, 0.8], [0.2, 0.8]]])
    token = np.array([0, 0])
    longer = Hypothesis(token, "ab", 0.0, True, token_statistics(other, token))
    sentence = [hypothesis("ab", 0.5, 0.3), hypothesis("c", 0.2, 0.2), longer]
    store = store_of([sentence], **SIZE)
    own = {"mine": lambda store: [1.0, 2.0, 10.0]}
    grid = Grid([2, 3], [1], [True], MeasureRules(equal_texts="merge"), {}, own)
    of_ab = 0.8 * 1 + 0.2 * 10
    expected = [(2 * 1 + 2) / 3, (0.5 * of_ab + 0.2 * 2) / 0.7]
    assert of_first_sentence(store, tmp_path, grid) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("equal_texts", ["keep", "merge"])
def test_score_as_own_measure_equals_the_chain_of_the_paper(
    store_of: StoreOf, random_hypothesis: Make, tmp_path: Path, equal_texts: str
):
    """The sum of the entropies of the tokens, computed by the user, is `prex_entropy_c`."""

    def entropy(store: Store, length_norm: bool) -> np.ndarray:
        summation = HypothesisSummation(store)
        for block in token_blocks(store):
            summation.add(block)
        sums = summation.sums()
        total = sums.chain["prex_entropy"]
        return total / sums.length if length_norm else total

    texts = ["a", "b", "a", "c", "b"]
    sentence = [random_hypothesis(rank, 3, n_member=3) for rank in range(5)]
    sentence = [
        Hypothesis(h.token_id, text, 0.0, True, h.statistics)
        for h, text in zip(sentence, texts, strict=True)
    ]
    store = store_of([sentence, []], n_member=3, vocab_size=8)
    rules = MeasureRules(equal_texts=equal_texts)
    grid = Grid([1, 2, 5], [1, 10], [True, False], rules, {}, {"mine": entropy})
    table, _ = measured(store, tmp_path, grid)
    np.testing.assert_allclose(table["mine"], table["prex_entropy_c"], rtol=1e-12)


def test_samples_have_equal_weights(store_of: StoreOf, tmp_path: Path):
    """Of the posterior: a plain mean. Of members: the mean of the members' means."""
    of_posterior = [hypothesis("a", 0.9, 0.9), hypothesis("b", 0.1, 0.1), hypothesis("c", 0.1, 0.1)]
    store = store_of([of_posterior], regime="sample", combination="prex", **SIZE)
    own = {"mine": lambda store: [1.0, 2.0, 9.0]}
    grid = Grid([2, 9], [1], [True], hypothesis_measures=own)
    assert of_first_sentence(store, tmp_path, grid) == [1.5, 4]
    of_members = [hypothesis(str(member), 0.5, 0.5, member) for member in (0, 0, 1)]
    store = store_of([of_members], regime="sample", combination="member", **SIZE)
    assert of_first_sentence(store, tmp_path, grid) == [(1.5 + 9) / 2, (1.5 + 9) / 2]
    assert of_first_sentence(store, tmp_path, Grid([1], [1], [True], hypothesis_measures=own)) == [
        5
    ]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"combination": "member"}, "importance weights need the posterior that decoded"),
        ({"regime": "sample", "sampling_temperature": 0.5}, "needs samples at temperature 1"),
        ({"regime": "sample", "sampling_top_k": 1}, "not sampling_top_k=1"),
    ],
)
def test_measure_that_a_store_cannot_average_is_absent_with_the_reason(
    store_of: StoreOf, tmp_path: Path, attributes: dict[str, Any], reason: str
):
    def never(store: Store) -> list[float]:
        raise AssertionError("the values are not needed")

    store = store_of([[hypothesis("a", 0.5, 0.5, 0)]], **SIZE, **attributes)
    grid = Grid([1], [1], [True], hypothesis_measures={"mine": never})
    if attributes.get("regime") != "sample":
        by_name = Grid([1], [1], [True], MeasureRules("prex"), {}, {"mine": lambda store: [7.0]})
        assert of_first_sentence(store, tmp_path, by_name) == [7]
    table, report = measured(store, tmp_path, grid)
    assert "mine" not in table
    assert reason in report["absent"]["mine"]


def test_nan_is_null_and_counted(store: Store, tmp_path: Path):
    """A NaN of a hypothesis is null for its sentence where the hypothesis is used: not at B = 1."""
    own = {"mine": lambda store: [1.0, np.nan, 1.0, 4.0]}
    extra = {"whole": lambda store: [np.nan, np.nan, 1.0]}
    grid = Grid([1, 2], [1, 10], [True], MeasureRules(), extra, own)
    table, report = measured(store, tmp_path, grid)
    first = table[table.sentence_id == 0]
    assert first["mine"].isna().tolist() == [False, False, True, True]
    assert report["sentences_without_own_measure"] == {"mine": 1, "whole": 1}


@pytest.mark.parametrize(
    ("setting", "function", "message"),
    [
        ("extra_measures", lambda store: [1.0], r"one number per sentence, 3 in all .got shape"),
        ("extra_measures", lambda store: None, r"one number per sentence, 3 in all .got shape"),
        ("hypothesis_measures", lambda store: [1.0], r"one number per hypothesis, 4 in all .got"),
        (
            "hypothesis_measures",
            lambda store: ["x"] * 4,
            r"one number per hypothesis, 4 in all .could not",
        ),
    ],
)
def test_wrong_results_are_refused(
    store: Store, tmp_path: Path, setting: str, function: Any, message: str
):
    grid = Grid([1], [1], [True], **{setting: {"mine": function}})
    with pytest.raises(ConfigError, match=rf"uncertainty\.{setting}\.mine: must return {message}"):
        write_measures(store, tmp_path, grid)


@pytest.mark.parametrize("setting", ["extra_measures", "hypothesis_measures"])
def test_wrong_functions_and_names_are_refused_before_any_store_is_read(setting: str):
    rule = rf"{setting}\.mine: must be a function of a store and any of beam, temperature, length_"
    for function in (lambda store, width: [], lambda: 1, lambda *, store: [], lambda **_: []):
        with pytest.raises(ConfigError, match=rule):
            Grid([1], [1], [True], **{setting: {"mine": function}})
    for name in ("var_p", "prex_rmi_smc", "xbleu", "sentence_id"):
        with pytest.raises(ConfigError, match=rf"{setting}\.{name}: another column has this name"):
            Grid([1], [1], [True], **{setting: {name: values}})


def test_both_settings_cannot_have_the_same_name():
    with pytest.raises(ConfigError, match=r"hypothesis_measures\.mine: another column has"):
        Grid([1], [1], [True], MeasureRules(), {"mine": values}, {"mine": values})
