"""Hypotheses of a search are ordered best first and distinct; samples need not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.store import Hypothesis, StoreWriter, validate
from pipeline.store.ranking import first_ranks, ranking_fault

Make = Callable[..., Hypothesis]
Write = Callable[..., Path]

UNORDERED = {
    "reversed": lambda a, b: [b, a],
    "repeated": lambda a, b: [a, b, replace(a, score=-2.0)],
}


@pytest.mark.parametrize("regime", ["beam", "greedy"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("reversed", r"hypothesis 1, /hypothesis/score: must be in desc.* \(got 0 after -1\)"),
        ("repeated", r"hypothesis 2, /token/id: must differ .* \(got the 2 tokens of hypothesis 0"),
    ],
)
def test_the_writer_refuses_hypotheses_that_no_search_returns(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    regime: str,
    kind: str,
    message: str,
) -> None:
    sentence = UNORDERED[kind](make_hypothesis(2), make_hypothesis(2, 1))
    with StoreWriter(tmp_path / "s.h5", **attributes | {"regime": regime}) as store:
        with pytest.raises(StoreError, match=f"sentence 0, {message}"):
            store.add_sentence(0, "s", "r", sentence)
        store.add_sentence(0, "s", "r", sentence[:1])
        store.add_sentence(1, "s", "r", sentence[:1])  # as in another sentence
    assert validate(tmp_path / "s.h5") == []


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
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", UNORDERED[kind](a, b))
    assert validate(tmp_path / "s.h5") == []


@pytest.mark.parametrize("at_a_time", [1, 2, 2**10])
def test_validate_names_the_row(
    write_store: Write, monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    """Sentences have 0, 1, 2, 0, 1, 2, 0 hypotheses: rows 4 and 5 are those of sentence 5."""
    # `pipeline.store.validate` is also the name of the function.
    monkeypatch.setattr(import_module("pipeline.store.validate"), "_SENTENCES", at_a_time)
    path = write_store()
    assert validate(path) == []
    with h5py.File(path, "r+") as file:
        file["/hypothesis/score"][5] = file["/hypothesis/score"][4] + 1
    (fault,) = validate(path)
    assert fault.startswith(f"{path}: dataset /hypothesis/score, row 5: must be in descending")
    assert fault.endswith("(got -49 after -50; toy, toy, sentence 5, hypothesis 1).")


def test_validate_names_the_tokens_that_are_repeated(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
) -> None:
    path, (a, b) = tmp_path / "s.h5", (make_hypothesis(3, seed) for seed in range(2))
    with StoreWriter(path, **attributes) as store:
        store.add_sentence(0, "s", "r", [a])
        store.add_sentence(1, "s", "r", [a, b])
    with h5py.File(path, "r+") as file:
        file["/token/id"][6:] = a.token_id
    (fault,) = validate(path)
    assert f"{path}: dataset /token/id, row 6: must differ from" in fault
    assert "(got the 3 tokens of hypothesis 0; toy, toy, sentence 1, hypothesis 1, " in fault


@pytest.mark.parametrize(
    ("score", "wrong"),
    [
        ([-1.0, -1.0, -2.0], None),
        ([-1.0, -1.0 + 2**-23], None),  # one unit of rounding of float32
        ([-100.0, -100.0 + 2**-17], None),
        ([-1.0, -1.0 + 1e-5], 1),
        ([-1.0, -2.0, -1.5], 2),
        ([-1.0, -np.inf, -np.inf], None),
        ([-np.inf, -1.0], 1),
        ([], None),
    ],
)
def test_equal_scores_and_rounding_are_allowed(score: list[float], wrong: int | None) -> None:
    fault = ranking_fault(score, [np.array([rank]) for rank in range(len(score))])
    assert (fault and fault.rank) == wrong


def test_sorted_scores_stay_sorted_in_float32() -> None:
    random = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        score = -np.sort(scale * random.random(2_000)).astype(np.float32)
        assert ranking_fault(score.tolist(), [np.array([rank]) for rank in range(2_000)]) is None


def test_a_prefix_is_another_hypothesis() -> None:
    assert list(first_ranks([[1, 2], [1], [1, 2, 3], [1], [1, 2]])) == [0, 1, 2, 1, 0]
