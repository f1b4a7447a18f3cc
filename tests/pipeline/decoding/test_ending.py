"""The rules of ending a beam, on searches that can be followed by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline.decoding.ending import FinishedScores

NOTHING = -torch.inf


def scores_of(ending: str, length_penalty: float = 1.0) -> FinishedScores:
    settings: Any = SimpleNamespace(ending=ending, length_penalty=length_penalty, beam=2)
    return FinishedScores(settings, 1, torch.tensor([10]))


@pytest.mark.parametrize("ending", ["fairseq", "early", "heuristic", "never"])
def test_a_sentence_with_less_than_a_full_beam_is_never_done(ending: str) -> None:
    scores = scores_of(ending)
    scores.add([0], torch.tensor([[-1.0, NOTHING]]), 1)
    assert not scores.is_done([0], torch.tensor([-1000.0]), 1)


def test_a_full_beam_ends_the_first_two_rules_at_once() -> None:
    for ending, done in (("fairseq", True), ("early", True), ("heuristic", False)):
        scores = scores_of(ending)
        scores.add([0], torch.tensor([[-4.0, -6.0]]), 2)  # scores -2 and -3
        assert bool(scores.is_done([0], torch.tensor([-5.0]), 2)) is done  # -2.5 is better than -3


def test_the_heuristic_takes_the_present_length_and_never_the_longest_one() -> None:
    for ending, done in (("heuristic", True), ("never", False)):
        scores = scores_of(ending)
        scores.add([0], torch.tensor([[-4.0, -6.0]]), 2)
        # -8 / 2 is worse than -3, but -8 / 10 is better.
        assert bool(scores.is_done([0], torch.tensor([-8.0]), 2)) is done


def test_without_a_length_penalty_both_are_the_same() -> None:
    for ending in ("heuristic", "never"):
        scores = scores_of(ending, length_penalty=0.0)
        scores.add([0], torch.tensor([[-4.0, -6.0]]), 2)
        assert scores.is_done([0], torch.tensor([-6.5]), 2)
        assert not scores.is_done([0], torch.tensor([-5.5]), 2)


def test_the_best_scores_are_kept() -> None:
    scores = scores_of("heuristic")
    scores.add([0], torch.tensor([[-1.0, -9.0]]), 1)
    scores.add([0], torch.tensor([[-4.0, NOTHING]]), 2)  # score -2 replaces -9
    assert scores.is_done([0], torch.tensor([-6.0]), 2)
