from __future__ import annotations

from pipeline.statistics.subsets import subsets


def test_few_subsets_are_listed_in_order() -> None:
    three = [(0, 1), (0, 2), (1, 2)]
    assert subsets(3, 2, 3, 0) == subsets(3, 2, 9, 0) == three
    assert subsets(4, 2, 6, 1) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_many_subsets_are_seeded_draws_without_repetition() -> None:
    drawn = subsets(10, 5, 20, 0)
    assert len(drawn) == len(set(drawn)) == 20
    assert all(list(subset) == sorted(set(subset)) and len(subset) == 5 for subset in drawn)
    assert drawn == subsets(10, 5, 20, 0)
    assert drawn != subsets(10, 5, 20, 1)
