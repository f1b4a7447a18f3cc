"""Search scores are compared with ln P / length ** length_penalty."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.statistics.posterior import sequence_logprob
from pipeline.store import Hypothesis, StoreWriter, open_own_store
from pipeline.store.scores import score_warning

Make = Callable[..., Hypothesis]


def _write(
    path: Path, attributes: dict[str, Any], sentences: list[Hypothesis], score: list[float]
) -> Path:
    with StoreWriter(path, **attributes) as store:
        for index, (hypothesis, value) in enumerate(zip(sentences, score, strict=True)):
            store.add_sentence(index, "s", "r", [replace(hypothesis, score=value)])
    return path


def _warning(path: Path) -> str | None:
    with open_own_store(path) as store:
        return score_warning(store)


@pytest.mark.parametrize("read_bytes", [1, 100, 2**25])
@pytest.mark.parametrize("combination", ["prex", "expr"])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
def test_scores_of_the_posterior_are_right(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    monkeypatch: pytest.MonkeyPatch,
    read_bytes: int,
    combination: str,
    length_penalty: float,
) -> None:
    monkeypatch.setattr("pipeline.store.scores._READ_BYTES", read_bytes)
    attributes |= {"combination": combination, "length_penalty": length_penalty}
    sentences = [make_hypothesis(1 + seed % 4, seed) for seed in range(9)]
    right, other = [], []
    for hypothesis in sentences:
        n_token = len(hypothesis.token_id)
        both = sequence_logprob(hypothesis.statistics.logprob, np.array([0, n_token]))
        pair = both.prex[0], both.expr[0]
        right.append(pair[combination == "expr"] / n_token**length_penalty)
        other.append(pair[combination == "prex"] / n_token**length_penalty)
    assert _warning(_write(tmp_path / "right.h5", attributes, sentences, right)) is None
    warning = _warning(_write(tmp_path / "other.h5", attributes, sentences, other))
    # The posteriors agree on the three hypotheses of one token.
    assert warning is not None
    assert "/hypothesis/score: 6 of 9 scores differ from ln P / length ** length" in warning


def test_the_extent_by_hand(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
) -> None:
    """ln P = -8 for two tokens; divided by 2 it is -4, and -5 is a quarter more."""
    plain = make_hypothesis(2)
    statistics = replace(plain.statistics, logprob=np.full((2, 3), -4.0))
    sentences = [replace(plain, statistics=statistics)] * 3
    path = _write(tmp_path / "s.h5", attributes, sentences, [-4.0, -5.0, -np.inf])
    assert _warning(path) == (
        f"{path}: /hypothesis/score: 2 of 3 scores differ from ln P / length ** length_penalty by "
        "up to 25 % under combination=prex with length_penalty=1.0. Correct these attributes or "
        "the scores; if the search adds penalties to its scores, leave out length_penalty."
    )
    far = _warning(_write(tmp_path / "far.h5", attributes, sentences, [-4.0, -8.0, -104.0]))
    assert " by up to 2500 % under" in str(far)
    infinite = _warning(_write(tmp_path / "i.h5", attributes, sentences, [-4.0, -4.0, -np.inf]))
    assert "1 of 3 scores differ from ln P / length ** length_penalty under" in str(infinite)


@pytest.mark.parametrize(
    "changes", [{"length_penalty": None}, {"regime": "sample", "combination": "member"}]
)
def test_scores_are_not_compared_without_length_penalty_or_posterior(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make, changes: dict[str, Any]
) -> None:
    drawn = replace(make_hypothesis(2), member=0)
    assert _warning(_write(tmp_path / "s.h5", attributes | changes, [drawn], [-99.0])) is None
    assert _warning(_write(tmp_path / "none.h5", attributes, [], [])) is None


@pytest.mark.slow
def test_the_command_line_warns_of_scores(write_store: Callable[..., Path]) -> None:
    path = write_store()
    command = [sys.executable, "-m", "pipeline.store", "validate", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"warning: {path}: /hypothesis/score: 6 of 6 scores differ from" in done.stderr
