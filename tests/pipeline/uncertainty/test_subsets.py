from pipeline.uncertainty.subsets import subsets


def test_subsets_are_all_or_seeded_draws_without_repeat() -> None:
    assert subsets(3, 2, 3, 0) == [(0, 1), (0, 2), (1, 2)]
    drawn = subsets(10, 5, 20, 0)
    assert len(set(drawn)) == 20
    assert drawn == subsets(10, 5, 20, 0)
    assert drawn != subsets(10, 5, 20, 1)
