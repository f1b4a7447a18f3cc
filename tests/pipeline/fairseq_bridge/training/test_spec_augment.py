from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.training.speech_task import SpecAugment, spec_augment

FEATURES = np.ones((50, 8), dtype=np.float32)
BOTH = SpecAugment(frequency_masks=1, frequency_mask_bins=3, time_masks=2, time_mask_frames=30)


def test_masks_depend_on_the_seed_alone() -> None:
    first = BOTH.masked(FEATURES, (1, 2, 3))
    assert np.array_equal(first, BOTH.masked(FEATURES, (1, 2, 3)))
    later = [BOTH.masked(FEATURES, (1, epoch, 3)) for epoch in range(3, 9)]
    assert any(not np.array_equal(first, masked) for masked in later)
    assert FEATURES.all()


def test_masks_have_at_most_the_configured_size() -> None:
    for seed in range(50):
        masked = BOTH.masked(FEATURES, (seed,))
        assert (masked == 0).all(axis=0).sum() <= 3
        assert (masked == 0).all(axis=1).sum() <= 2 * 10  # a fifth of the frames each
    assert any((BOTH.masked(FEATURES, (seed,)) == 0).all(axis=0).any() for seed in range(50))
    assert any((BOTH.masked(FEATURES, (seed,)) == 0).all(axis=1).any() for seed in range(50))


def test_without_settings_nothing_is_masked() -> None:
    assert spec_augment({}) == SpecAugment()
    assert np.array_equal(spec_augment({}).masked(FEATURES, (0,)), FEATURES)
    assert np.array_equal(BOTH.masked(FEATURES[:0], (0,)), FEATURES[:0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"frequency_mask": 1}, "Did you mean frequency_masks"),
        ({"time_masks": -1}, r"time_masks: must be an integer >= 0 \(got -1\)"),
        ({"time_masks": 1.5}, r"must be an integer >= 0 \(got 1.5\)"),
        ({"time_mask_share": "all"}, r"must be a number >= 0 \(got 'all'\)"),
    ],
)
def test_invalid_settings_are_rejected(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"train\.settings\.spec_augment\..*{message}"):
        spec_augment(settings)
