"""Audio files of any kind as samples at one rate, with what is wrong or unusual about them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Samples at full scale, as a share, from which a recording counts as clipped.
_CLIPPED_SHARE = 0.001
_FULL_SCALE = 0.999
# Encoders of MP3, and people who mark segments, do not know the end of a file more exactly.
_TOLERATED_SECONDS = 0.1
# Sizes that a program writes into the header of a WAV file that it streams.
_UNKNOWN_SIZE_BYTES = 0x7FFFF000

FAULTS = {
    "unreadable": "not an audio file, or a damaged one",
    "empty": "without samples",
    "cut_off": "ends before its header says",
    "too_short": "shorter than data.speech.shortest_seconds",
    "too_long": "longer than data.speech.longest_seconds",
}
NOTES = {
    "clipped": f"over {_CLIPPED_SHARE:.1%} of samples at full scale: used as they are",
    "mixed_down": "several channels: their mean is used",
    "resampled": "another sampling rate: brought to data.speech.sampling_rate_hz",
}


class Audio(NamedTuple):
    """Samples in [-1, 1] at one rate; one of `FAULTS` or None, and those of `NOTES` that hold."""

    samples: NDArray[np.float32]
    fault: str | None = None
    notes: tuple[str, ...] = ()


def read_audio(
    path: Path, rate_hz: int, start_seconds: float = 0.0, end_seconds: float | None = None
) -> Audio:
    """One channel of a stretch of a WAV, FLAC, MP3 or other file, at `rate_hz`.

    A file that cannot be read, or ends too early, gives no samples and a fault.
    """
    import soundfile
    import soxr

    try:
        with soundfile.SoundFile(path) as file:
            own_rate_hz = file.samplerate
            first = min(round(start_seconds * own_rate_hz), file.frames)
            last = file.frames
            if end_seconds is not None:
                last = round(end_seconds * own_rate_hz)
            file.seek(first)
            channels = file.read(last - first, dtype="float32", always_2d=True)
    except (soundfile.LibsndfileError, OSError):
        return _without_samples("empty" if _is_empty(path) else "unreadable")
    missing_seconds = (last - first - len(channels)) / own_rate_hz
    if missing_seconds > _TOLERATED_SECONDS or _is_cut_wav(path):
        return _without_samples("cut_off")
    if not len(channels):
        return _without_samples("empty")
    notes = []
    if np.mean(np.abs(channels) >= _FULL_SCALE) > _CLIPPED_SHARE:
        notes.append("clipped")
    if channels.shape[1] > 1:
        notes.append("mixed_down")
    samples = channels.mean(axis=1)
    if own_rate_hz != rate_hz:
        notes.append("resampled")
        samples = soxr.resample(samples, own_rate_hz, rate_hz)
    return Audio(samples, None, tuple(notes))


def _without_samples(fault: str) -> Audio:
    return Audio(np.zeros(0, dtype=np.float32), fault)


def _is_empty(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == 0


def _is_cut_wav(path: Path) -> bool:
    """Is a file shorter than the size in its RIFF header? libsndfile reads such ones in silence."""
    with path.open("rb") as file:
        header = file.read(8)
    size = int.from_bytes(header[4:], "little")
    return header[:4] == b"RIFF" and size < _UNKNOWN_SIZE_BYTES and size + 8 > path.stat().st_size
