"""Hypotheses of a search are ordered best first and distinct; samples need not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.store import Hypothesis, StoreWriter, open_own_store
from pipeline.store.ranking import first_ranks, is_descending, ranking_warning
from pipeline.store.validate import store_faults

Make = Callable[..., Hypothesis]

UNORDERED = {
    "reversed": lambda a, b: [b, a],
    "repeated": lambda a, b: [a, b, replace(a, score=-2.0)],
}


def written(path: Path, sentences: list[list[Hypothesis]], **attributes: Any) -> str | None:
    """Write a valid store, and return the warning about the order of its hypotheses."""
    with StoreWriter(path, **attributes) as store:
        for number, hypotheses in enumerate(sentences):
            store.add_sentence(number, "s", "r", hypotheses)
    assert store_faults(path) == []
    with open_own_store(path) as store:
        return ranking_warning(store)


@pytest.mark.parametrize("regime", ["beam", "greedy"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("reversed", "2 of 4 sentences have scores that are not in descending order"),
        ("repeated", "2 of 4 sentences have hypotheses with the same tokens"),
    ],
)
@pytest.mark.parametrize("at_a_time", [1, 2, 2**10])
def test_hypotheses_that_no_search_returns_are_counted(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    monkeypatch: pytest.MonkeyPatch,
    regime: str,
    kind: str,
    message: str,
    at_a_time: int,
) -> None:
    monkeypatch.setattr("pipeline.store.ranking._SENTENCES", at_a_time)
    a, b = make_hypothesis(2), make_hypothesis(2, 1)
    wrong = UNORDERED[kind](a, b)
    path = tmp_path / "s.h5"
    warning = written(path, [[a], [], wrong, wrong], **attributes | {"regime": regime})
    assert warning is not None
    assert warning.startswith(f"{path}: {message} (first: sentence 2). ")


def test_both_faults_are_named(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
) -> None:
    a, b = make_hypothesis(2), make_hypothesis(2, 1)
    warning = written(tmp_path / "s.h5", [[b, a, b]], **attributes)
    assert warning is not None
    assert "not in descending order (first: sentence 0) and 1 of 1 sentences have hyp" in warning


def test_hypotheses_in_order_give_no_warning(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
) -> None:
    a, b = make_hypothesis(2), make_hypothesis(2, 1)
    assert written(tmp_path / "s.h5", [[a, b], [a], []], **attributes) is None


@pytest.mark.parametrize("kind", UNORDERED)
@pytest.mark.parametrize(
    ("regime", "combination"),
    [("sample", "prex"), ("sample", "member"), ("beam", "member"), ("teacher_forcing", "prex")],
)
def test_samples_and_hypotheses_of_members_need_no_order(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    regime: str,
    combination: str,
    kind: str,
) -> None:
    a, b = (replace(make_hypothesis(2, seed), member=0) for seed in range(2))
    attributes |= {"regime": regime, "combination": combination}
    assert written(tmp_path / "s.h5", [UNORDERED[kind](a, b)], **attributes) is None


@pytest.mark.parametrize(
    ("score", "is_right"),
    [
        ([-1.0, -1.0, -2.0], True),
        ([-1.0, -1.0 + 2**-23], True),  # one unit of rounding of float32
        ([-100.0, -100.0 + 2**-17], True),
        ([-1.0, -1.0 + 1e-5], False),
        ([-1.0, -2.0, -1.5], False),
        ([-1.0, -np.inf, -np.inf], True),
        ([-np.inf, -1.0], False),
        ([], True),
    ],
)
def test_equal_scores_and_rounding_are_allowed(score: list[float], is_right: bool) -> None:
    assert is_descending(score) == is_right


def test_sorted_scores_stay_sorted_in_float32() -> None:
    random = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        score = -np.sort(scale * random.random(2_000)).astype(np.float32)
        assert is_descending(score.tolist())


def test_a_prefix_is_another_hypothesis() -> None:
    assert list(first_ranks([[1, 2], [1], [1, 2, 3], [1], [1, 2]])) == [0, 1, 2, 1, 0]
