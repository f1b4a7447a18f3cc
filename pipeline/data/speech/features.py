"""Log-mel features of an utterance, normalised over it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FRAME_SHIFT_SECONDS = 0.01
_KALDI_SCALE = 32768.0
# A bin that never changes is 0 after normalisation, not noise blown up.
_LEAST_DEVIATION = 1e-3


@dataclass(frozen=True)
class FeatureSettings:
    """Sampling rate of the audio, and bins of a frame."""

    sampling_rate_hz: int
    bins: int


def features(samples: NDArray[np.float32], settings: FeatureSettings) -> NDArray[np.float32]:
    """[frame, bin] of samples in [-1, 1]: a frame every 10 ms, at least one of which must be there.

    A bin is the log energy of a mel band, with mean 0 and variance 1 over the utterance.
    """
    frames = _log_mel(samples, settings)
    frames -= frames.mean(axis=0)
    frames /= np.maximum(frames.std(axis=0), _LEAST_DEVIATION)
    return frames


def _log_mel(samples: NDArray[np.float32], settings: FeatureSettings) -> NDArray[np.float32]:
    import kaldi_native_fbank

    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = settings.sampling_rate_hz
    options.frame_opts.dither = 0.0  # dither is random
    options.frame_opts.snip_edges = False  # as many frames as shifts
    options.mel_opts.num_bins = settings.bins
    bank = kaldi_native_fbank.OnlineFbank(options)
    bank.accept_waveform(settings.sampling_rate_hz, samples * _KALDI_SCALE)
    bank.input_finished()
    return np.stack([bank.get_frame(frame) for frame in range(bank.num_frames_ready)])
