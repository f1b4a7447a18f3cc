"""Folders of synthetic speech, made once and kept beside the downloads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.data.speech.espeak import Espeak, Voice
from pipeline.parts import digest, file_sha256
from pipeline.progress import progress

_LOUDEST = 32767


class Prompt(NamedTuple):
    """A text to read, the voice, and white noise at this ratio (None: none) by this seed."""

    text: str
    voice: Voice
    signal_to_noise_db: float | None = None
    noise_seed: int = 0


def synthesise(
    name: str, prompts: list[Prompt], espeak: Espeak, rate_hz: int, downloads: Path
) -> Path:
    """A folder with `{number:05d}.wav` of each prompt at `rate_hz`, 16 bit, made where missing.

    The folder is known by a digest of the prompts, the rate, espeak-ng and the code that makes
    them; a run that was cut off goes on. Files have the same bytes whoever made them.
    """
    code = [file_sha256(Path(__file__).with_name(one)) for one in ("synthesis.py", "espeak.py")]
    key = digest(prompts, rate_hz, espeak.packages, code)
    folder = downloads / f"espeak-{name}-{key[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (prompt, path)
        for number, prompt in enumerate(prompts)
        if not (path := folder / f"{number:05d}.wav").exists()
    ]
    # The work is espeak-ng's, in processes of its own: threads suffice to wait for them.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        made = pool.map(partial(_make, espeak, rate_hz), jobs)
        for _ in progress(made, len(jobs), f"synthesising {name}"):
            pass
    return folder


def _make(espeak: Espeak, rate_hz: int, job: tuple[Prompt, Path]) -> None:
    import soundfile
    import soxr

    prompt, path = job
    samples, spoken_rate_hz = espeak.speak(prompt.text, prompt.voice)
    sound = soxr.resample(samples.astype(np.float64) / _LOUDEST, spoken_rate_hz, rate_hz)
    if prompt.signal_to_noise_db is not None:
        sound = _noisy(sound, prompt.signal_to_noise_db, prompt.noise_seed)
    whole = np.clip(np.rint(sound * _LOUDEST), -_LOUDEST, _LOUDEST).astype(np.int16)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    soundfile.write(temporary, whole, rate_hz, subtype="PCM_16", format="WAV")
    temporary.replace(path)


def _noisy(sound: NDArray[np.float64], signal_to_noise_db: float, seed: int) -> NDArray[np.float64]:
    noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(len(sound))
    loudness = float(np.sqrt(np.mean(sound**2)))
    return sound + noise * (loudness * 10 ** (-signal_to_noise_db / 20))
