"""The VGG-Transformer as a member of an ensemble: its source is frames, not tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipeline.errors import DataError
from pipeline.fairseq_bridge.models import FairseqMember


class SpeechMember(FairseqMember):
    """A MemberModel of sources [sentence, frame, bin], filled up at the right with NaN.

    max_source_tokens counts frames.
    """

    def encoded(self, source: Tensor) -> Any:
        """What the encoder makes of source [sentence, frame, bin].

        Raises DataError where the frames have another number of bins than the model.
        """
        bins = self.model.encoder.feature_bins
        if source.shape[2] != bins:
            raise DataError(f"features must have the model's {bins} bins, got {source.shape[2]}")
        source = source.to(device=self.device, dtype=self.dtype)
        length = source[:, :, 0].isnan().logical_not().sum(dim=1)
        return self.model.encoder(torch.nan_to_num(source, nan=0.0), length)

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        dtype: torch.dtype = next(self.model.parameters()).dtype
        return dtype
