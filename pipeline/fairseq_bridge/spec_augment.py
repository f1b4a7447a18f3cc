"""Masks over frequencies and over time, drawn anew for each utterance and epoch of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pipeline.config import unknown_key_message
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.utterances import Features


@dataclass(frozen=True)
class SpecAugment:
    """How many masks there are, and the most that one covers: bins, frames, share of frames."""

    frequency_masks: int = 0
    frequency_mask_bins: int = 0
    time_masks: int = 0
    time_mask_frames: int = 0
    time_mask_share: float = 0.2

    def masked(self, features: Features, seed: Sequence[int]) -> Features:
        """A copy of features [frame, bin] with masks of 0, the mean of normalised features.

        seed: of one utterance in one epoch; nothing else enters the draw.
        """
        random = np.random.default_rng(seed)
        masked = features.copy()
        n_frame, n_bin = features.shape
        for _ in range(self.frequency_masks):
            width = random.integers(0, min(self.frequency_mask_bins, n_bin) + 1)
            start = random.integers(0, n_bin - width + 1)
            masked[:, start : start + width] = 0.0
        for _ in range(self.time_masks):
            most = min(self.time_mask_frames, int(self.time_mask_share * n_frame))
            width = random.integers(0, most + 1)
            start = random.integers(0, n_frame - width + 1)
            masked[start : start + width] = 0.0
        return masked


def spec_augment(settings: Mapping[str, Any]) -> SpecAugment:
    """The masks of `train.settings.spec_augment`; without settings there are none.

    Raises ConfigError naming a key that is unknown or a value that is not a number >= 0.
    """
    where = "train.settings.spec_augment"
    known = [one.name for one in fields(SpecAugment)]
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(unknown_key_message(f"{where}.{name}", known, where))
        whole = name != "time_mask_share"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            kind = "a whole number" if whole else "a number"
            raise ConfigError(f"{where}.{name} must be {kind} >= 0, got {value!r}")
        if value < 0:
            raise ConfigError(f"{where}.{name} must be >= 0, got {value}")
    return SpecAugment(**settings)
