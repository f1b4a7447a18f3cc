"""Preparing speech: reading, resampling and features on one core, relative to real time."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import soundfile

from pipeline.data.speech.audio import FeatureSettings, features, read_audio
from tests.bench.measurement import Measurement, alternating_seconds

N_FILE, SECONDS, FILE_RATE_HZ = 20, 10, 16000
SIZES = {
    "the demo's model": FeatureSettings(8000, 40),
    "the paper's model": FeatureSettings(16000, 80),
}


def measure() -> list[Measurement]:
    """Measure seconds of audio per second, from FLAC files to normalised log-mel features."""
    with TemporaryDirectory() as name:
        paths = [Path(name) / f"{number}.flac" for number in range(N_FILE)]
        chance = np.random.default_rng(0)
        for path in paths:
            noise = 0.1 * chance.standard_normal(SECONDS * FILE_RATE_HZ)
            soundfile.write(path, noise, FILE_RATE_HZ)
        taken = alternating_seconds(
            *(partial(_prepare, paths, settings) for settings in SIZES.values())
        )
    audio_seconds = N_FILE * SECONDS
    return [
        Measurement(
            f"features for {size}, relative to real time", audio_seconds / seconds, "x", ">= 100"
        )
        for size, seconds in zip(SIZES, taken, strict=True)
    ]


def _prepare(paths: list[Path], settings: FeatureSettings) -> None:
    for path in paths:
        features(read_audio(path, settings.sampling_rate_hz).samples, settings)
