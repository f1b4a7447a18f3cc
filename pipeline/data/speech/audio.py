"""Read audio files, and compute and write log-mel features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import h5py


# A recording with a larger share of samples at full scale counts as clipped.
_CLIPPED_SHARE = 0.001
_FULL_SCALE = 0.999
# MP3 encoders and segment annotations give the end of a file only to within this time.
_TOLERATED_SECONDS = 0.1
# A program that streams a WAV file writes at least this size into its header.
_UNKNOWN_SIZE_BYTES = 0x7FFFF000
# libsndfile's length of a FLAC file that was streamed, without its length in the header.
_UNKNOWN_FRAMES = 2**63 - 1
_BLOCK_FRAMES = 2**18
_MAX_HEADER_BYTES = 2**18
_SPHERE = re.compile(rb"NIST_1A\n *(\d+)\n")
_SPHERE_NUMBER = re.compile(rb"^(\w+) -i (\d+)$", re.MULTILINE)

FAULTS = {
    "unreadable": "not an audio file, or damaged",
    "shortened": "NIST Sphere that is compressed by shorten, which libsndfile does not read: "
    "convert it with sph2pipe",
    "empty": "without samples",
    "cut_off": "ends before its header says",
    "no_channel": "the .stm file names a channel that the recording does not have "
    "(1, 2, ... or A, B, ...)",
    "too_short": "shorter than data.speech.shortest_seconds",
    "too_long": "longer than data.speech.longest_seconds",
}
NOTES = {
    "clipped": f"over {_CLIPPED_SHARE:.1%} of samples at full scale: used as they are",
    "mixed_down": "several channels: their mean is used",
    "resampled": "another sampling rate: resampled to data.speech.sampling_rate_hz",
}


class Audio(NamedTuple):
    """Samples in [-1, 1], one of `FAULTS` or None, and all `NOTES` that apply."""

    samples: NDArray[np.float32]
    fault: str | None = None
    notes: tuple[str, ...] = ()


def read_audio(
    path: Path,
    rate_hz: int,
    start_seconds: float = 0.0,
    end_seconds: float | None = None,
    channel: str | None = None,
) -> Audio:
    """Read a segment of a WAV, FLAC, MP3, NIST Sphere or other file as one channel at `rate_hz`.

    A file that cannot be read, or ends too early, gives no samples and a fault. A FLAC file that
    does not state its length ends where its frames end, so that it is not known to be cut off.
    channel: 1, 2, ... or A, B, ...; if None, the mean of all channels is used. A recording of one
    channel is used whatever the channel is called.
    """
    import soundfile
    import soxr

    try:
        with soundfile.SoundFile(path) as file:
            own_rate_hz = file.samplerate
            is_streamed = file.frames == _UNKNOWN_FRAMES
            first = min(round(start_seconds * own_rate_hz), file.frames)
            last = file.frames
            if end_seconds is not None:
                last = round(end_seconds * own_rate_hz)
            if not is_streamed:
                file.seek(first)
                channels = file.read(last - first, dtype="float32", always_2d=True)
        if is_streamed:
            channels = _read_stream(path, first, last)
            last = last if end_seconds is not None else first + len(channels)
    except (soundfile.LibsndfileError, OSError):
        return _without_samples(_fault(path))
    missing_seconds = (last - first - len(channels)) / own_rate_hz
    if missing_seconds > _TOLERATED_SECONDS or _is_cut_wav(path) or _is_cut_sphere(path):
        return _without_samples("cut_off")
    if not len(channels):
        return _without_samples("empty")
    if channel is not None and channels.shape[1] > 1:
        index = _channel_index(channel)
        if not 0 <= index < channels.shape[1]:
            return _without_samples("no_channel")
        channels = channels[:, [index]]
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


def _read_stream(path: Path, first: int, last: int) -> NDArray[np.float32]:
    """Read frames [first, last) of a file of unknown length, or those that it has of them.

    Returns [frame, channel]. soundfile would seek after each read, which fails at the end.
    """
    import soundfile

    class Stream(soundfile.SoundFile):  # type: ignore[misc]  # soundfile has no types
        def seekable(self) -> bool:
            return False

    with Stream(path) as file:
        blocks = [np.zeros((0, file.channels), np.float32)]
        try:
            place = file.seek(first)
        except soundfile.LibsndfileError:  # there is no such frame
            return blocks[0]
        while len(block := file.read(min(_BLOCK_FRAMES, last - place), "float32", always_2d=True)):
            blocks.append(block)
            place += len(block)
    return np.concatenate(blocks)


def _channel_index(channel: str) -> int:
    """Return the place of channel 1, 2, ... or A, B, ...; -1 for any other name."""
    if channel.isdecimal():
        return int(channel[:9]) - 1
    return ascii_uppercase.find(channel.upper()) if len(channel) == 1 else -1


def _without_samples(fault: str) -> Audio:
    return Audio(np.zeros(0, dtype=np.float32), fault)


def _fault(path: Path) -> str:
    """Return why libsndfile does not open a file."""
    if not path.is_file():
        return "unreadable"
    if path.stat().st_size == 0:
        return "empty"
    return "shortened" if b"embedded-shorten" in _sphere_header(path) else "unreadable"


def _is_cut_wav(path: Path) -> bool:
    """Tell whether a file is shorter than its RIFF header says, which libsndfile ignores."""
    with path.open("rb") as file:
        header = file.read(8)
    size = int.from_bytes(header[4:], "little")
    return header[:4] == b"RIFF" and size < _UNKNOWN_SIZE_BYTES and size + 8 > path.stat().st_size


def _is_cut_sphere(path: Path) -> bool:
    """Tell whether a file is shorter than its Sphere header says, which libsndfile ignores."""
    header = _sphere_header(path)
    numbers = {name: int(value) for name, value in _SPHERE_NUMBER.findall(header)}
    names = (b"sample_count", b"channel_count", b"sample_n_bytes")
    if not all(name in numbers for name in names):
        return False
    return len(header) + prod(numbers[name] for name in names) > path.stat().st_size


def _sphere_header(path: Path) -> bytes:
    """Return the header of a NIST Sphere file; empty for other files."""
    with path.open("rb") as file:
        size = _SPHERE.match(file.read(16))
        file.seek(0)
        return file.read(min(int(size[1]), _MAX_HEADER_BYTES)) if size else b""


FRAME_SHIFT_SECONDS = 0.01
_KALDI_SCALE = 32768.0
# Keeps the normalisation from amplifying the noise of a constant bin.
_LEAST_DEVIATION = 1e-3


@dataclass(frozen=True)
class FeatureSettings:
    """Sampling rate of the audio, and number of mel bins."""

    sampling_rate_hz: int
    bins: int


def features(samples: NDArray[np.float32], settings: FeatureSettings) -> NDArray[np.float32]:
    """Compute log-mel features [frame, bin] of samples in [-1, 1], with a frame every 10 ms.

    Each bin has mean 0 and variance 1 over the utterance. There must be at least one frame.
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
    options.frame_opts.snip_edges = False  # as many frames as frame shifts
    options.mel_opts.num_bins = settings.bins
    bank = kaldi_native_fbank.OnlineFbank(options)
    bank.accept_waveform(settings.sampling_rate_hz, samples * _KALDI_SCALE)
    bank.input_finished()
    return np.stack([bank.get_frame(frame) for frame in range(bank.num_frames_ready)])


_BUFFERED_FRAMES = 16384


class FeatureFile:
    """An open file of features, as made by `writing_features`."""

    def __init__(self, file: h5py.File, bins: int, *, with_tokens: bool) -> None:
        chunk = (_BUFFERED_FRAMES // 16, bins)
        self._file = file
        self._frames = file.create_dataset(
            "/frame/feature",
            (0, bins),
            "f4",
            maxshape=(None, bins),
            chunks=chunk,
            track_times=False,
        )
        self._buffer: list[NDArray[np.float32]] = []
        self._tokens: list[int] = []
        self._frame_offset, self._token_offset = [0], [0]
        self._with_tokens = with_tokens

    def add(self, frames: NDArray[np.float32], tokens: Sequence[int] = ()) -> None:
        """Add an utterance: features [frame, bin], possibly none, and its target tokens."""
        self._buffer.append(frames)
        self._frame_offset.append(self._frame_offset[-1] + len(frames))
        self._tokens += tokens
        self._token_offset.append(len(self._tokens))
        if self._frame_offset[-1] - len(self._frames) >= _BUFFERED_FRAMES:
            self._flush()

    def finish(self) -> None:
        """Write buffered frames, and the offsets of the utterances."""
        self._flush()
        self._write("/utterance/frame_offset", self._frame_offset, "i8")
        if self._with_tokens:
            self._write("/utterance/token_offset", self._token_offset, "i8")
            self._write("/token/id", self._tokens, "i4")

    def _write(self, name: str, values: list[int], dtype: str) -> None:
        data = np.array(values, dtype=dtype)
        self._file.create_dataset(name, data=data, track_times=False)

    def _flush(self) -> None:
        if self._buffer:
            written = len(self._frames)
            self._frames.resize(self._frame_offset[-1], axis=0)
            self._frames[written:] = np.concatenate(self._buffer)
            self._buffer.clear()


@contextmanager
def writing_features(
    path: Path, settings: FeatureSettings, *, with_tokens: bool
) -> Iterator[FeatureFile]:
    """Write a new HDF5 file: /frame/feature [frame, bin], /utterance/frame_offset [utterance + 1].

    With tokens also /utterance/token_offset and /token/id. Attributes are feature_bins,
    sampling_rate_hz and frame_shift_seconds. Equal input gives equal bytes.
    """
    import h5py

    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.attrs["feature_bins"] = settings.bins
        file.attrs["frame_shift_seconds"] = FRAME_SHIFT_SECONDS
        file.attrs["sampling_rate_hz"] = settings.sampling_rate_hz
        features = FeatureFile(file, settings.bins, with_tokens=with_tokens)
        yield features
        features.finish()
