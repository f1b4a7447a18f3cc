"""The speech synthesiser espeak-ng, from the system or unpacked from its Debian packages."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.data.debian_packages import missing_libraries, origin, packages_of, unpack
from pipeline.errors import DataError, MachineError
from pipeline.run.files import complete_folder, digest, file_sha256
from pipeline.run.progress import progress
from pipeline.run.settings import DataConfig

_PACKAGES = ["espeak-ng", "espeak-ng-data", "libespeak-ng1", "libpcaudio0", "libsonic0"]
# The WAV header that espeak-ng writes to a pipe; its size fields are invalid.
_HEADER_BYTES, _RATE_FIELD = 44, slice(24, 28)


class Voice(NamedTuple):
    """How a text is read; `pitch` is 0 to 99, `speed` is in words per minute."""

    name: str
    speed: int
    pitch: int


@dataclass(frozen=True)
class Espeak:
    """The program, the environment variables that it needs, and its origin."""

    program: str
    environment: dict[str, str]
    packages: dict[str, dict[str, str]]

    def speak(self, text: str, voice: Voice) -> tuple[NDArray[np.int16], int]:
        """Synthesise a text; returns samples and their rate in Hz, the same at every call.

        Raises DataError if espeak-ng produces no sound.
        """
        command = [self.program, "-v", voice.name, "-s", str(voice.speed), "-p", str(voice.pitch)]
        result = subprocess.run(
            [*command, "--stdin", "--stdout"],
            input=text.encode(),
            capture_output=True,
            env={**os.environ, **self.environment},
            check=False,
        )
        sound = result.stdout
        if result.returncode or len(sound) <= _HEADER_BYTES:
            raise DataError(
                f"espeak-ng: no sound for {text!r} in the voice {voice.name} "
                f"({_last_line(result.stderr)}). Install another version of espeak-ng."
            )
        samples = np.frombuffer(sound[_HEADER_BYTES:], dtype="<i2").astype(np.int16)
        return samples, int.from_bytes(sound[_RATE_FIELD], "little")


def find_espeak(data: DataConfig) -> Espeak:
    """Find the system's espeak-ng, or unpack its packages in data.downloads.

    With `data.pin` the packages are always used. Raises MachineError, naming the package to
    install, if there is neither.
    """
    system = shutil.which("espeak-ng")
    if system is not None and not data.pin:
        version = _version(Espeak(system, {}, {}))
        return Espeak(
            system, {}, {"espeak-ng": {"version": version, "sha256": file_sha256(Path(system))}}
        )
    downloads = Path(data.downloads)
    try:
        packages = packages_of(data, _PACKAGES)
    except MachineError as error:
        raise MachineError(f"{error} Or install espeak-ng (apt-get install espeak-ng).") from None
    tree = downloads / f"espeak-ng-{digest([package.sha256 for package in packages])[:16]}"
    if not tree.is_dir():
        with complete_folder(tree) as new:
            unpack(packages, new)
    espeak = _unpacked(tree, origin(packages))
    try:
        _version(espeak)
    except MachineError:
        if data.packages is not None:
            raise
        with complete_folder(tree) as new:
            unpack(packages, new)
            unpack(missing_libraries("espeak-ng", downloads), new)
        _version(espeak := _unpacked(tree, origin(packages)))
    return espeak


def _unpacked(tree: Path, packages: dict[str, dict[str, str]]) -> Espeak:
    tree = tree.resolve()
    libraries = sorted({path.parent for path in tree.glob("usr/lib/**/*.so*")})
    data = next(iter(sorted(tree.glob("usr/**/espeak-ng-data"))), tree)
    environment = {
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "ESPEAK_DATA_PATH": str(data.parent),
    }
    return Espeak(str(tree / "usr" / "bin" / "espeak-ng"), environment, packages)


def _version(espeak: Espeak) -> str:
    """Return the version that the program reports; raises MachineError if it does not run."""
    try:
        result = subprocess.run(
            [espeak.program, "--version"],
            capture_output=True,
            env={**os.environ, **espeak.environment},
            check=False,
        )
    except OSError as error:
        raise MachineError(_not_running(str(error))) from None
    if result.returncode:
        raise MachineError(_not_running(_last_line(result.stderr)))
    words = result.stdout.decode(errors="replace").split()
    return next((word for word in words if word[:1].isdigit()), "unknown")


def _not_running(reason: str) -> str:
    return f"espeak-ng: does not run ({reason}). Install it (apt-get install espeak-ng)."


def _last_line(message: bytes) -> str:
    return next(iter(reversed(message.decode(errors="replace").strip().splitlines())), "no message")


_LOUDEST = 32767


class Prompt(NamedTuple):
    """A text to read in a voice, and seeded white noise at a ratio (None for no noise)."""

    text: str
    voice: Voice
    signal_to_noise_db: float | None = None
    noise_seed: int = 0


def synthesise(
    name: str, prompts: list[Prompt], espeak: Espeak, rate_hz: int, downloads: Path
) -> Path:
    """Synthesise each prompt as `{number:05d}.wav`, 16 bit at `rate_hz`; returns the folder.

    The name of the folder has a digest of the prompts, the rate, espeak-ng and this code. Existing
    files are kept, so that an interrupted run resumes. Equal prompts give equal bytes.
    """
    key = digest(prompts, rate_hz, espeak.packages, file_sha256(Path(__file__)))
    folder = downloads / f"espeak-{name}-{key[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    prompts_left = [
        (prompt, path)
        for number, prompt in enumerate(prompts)
        if not (path := folder / f"{number:05d}.wav").exists()
    ]
    # espeak-ng runs in processes of its own, for which threads wait.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = pool.map(partial(_synthesise, espeak, rate_hz), prompts_left)
        for _ in progress(results, len(prompts_left), f"synthesising {name}"):
            pass
    return folder


def _synthesise(espeak: Espeak, rate_hz: int, target: tuple[Prompt, Path]) -> None:
    import soundfile
    import soxr

    prompt, path = target
    samples, spoken_rate_hz = espeak.speak(prompt.text, prompt.voice)
    sound = soxr.resample(samples.astype(np.float64) / _LOUDEST, spoken_rate_hz, rate_hz)
    if prompt.signal_to_noise_db is not None:
        sound = _noisy(sound, prompt.signal_to_noise_db, prompt.noise_seed)
    rounded = np.clip(np.rint(sound * _LOUDEST), -_LOUDEST, _LOUDEST).astype(np.int16)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    soundfile.write(temporary, rounded, rate_hz, subtype="PCM_16", format="WAV")
    temporary.replace(path)


def _noisy(sound: NDArray[np.float64], signal_to_noise_db: float, seed: int) -> NDArray[np.float64]:
    noise = np.random.Generator(np.random.PCG64(seed)).standard_normal(len(sound))
    loudness = float(np.sqrt(np.mean(sound**2)))
    return sound + noise * (loudness * 10 ** (-signal_to_noise_db / 20))
