"""Real speech of the telephone system Asterisk: its recorded prompts, without transcripts."""

from __future__ import annotations

from pathlib import Path

from pipeline.config import DataConfig
from pipeline.data.packages import Package, origin, package_files, packages_of
from pipeline.data.speech.corpus import SpeechCorpus, Utterance
from pipeline.errors import DataError
from pipeline.parts import whole_folder

LANGUAGES = ("en", "fr")
_SOUNDS = "usr/share/asterisk/sounds/"
_SILENCE = "silence"


def read_prompts(data: DataConfig, language: str, name: str) -> SpeechCorpus:
    """The prompts in one of `LANGUAGES`, unpacked in the cache; recordings of silence left out.

    Raises MachineError where the package cannot be had, DataError where it holds no prompt.
    """
    downloads = Path(data.downloads)
    (package,) = packages_of(data, [f"asterisk-core-sounds-{language}-wav"])
    unpacked = downloads / f"{package.name}-{package.sha256[:16]}"
    if not unpacked.is_dir():
        _unpack(package, unpacked)
    files = sorted(path.relative_to(unpacked) for path in unpacked.rglob("*.wav"))
    spoken = [path for path in files if _SILENCE not in path.parts]
    if not spoken:
        raise DataError(f"{package.path} must hold prompts below {_SOUNDS}, got none")
    return SpeechCorpus(
        name,
        licence="CC-BY-SA-3.0",
        domain="telephone prompts",
        folder=unpacked,
        utterances=[Utterance(path.as_posix(), None) for path in spoken],
        packages=origin([package]),
        left_out={path.as_posix(): "silence" for path in files if path not in spoken},
    )


def _unpack(package: Package, target: Path) -> None:
    with whole_folder(target) as folder:
        for path, content in package_files(package, _SOUNDS, ".wav"):
            _, *below_voice = Path(path).parts  # of which there is one
            if not below_voice or ".." in below_voice:
                raise DataError(f"{package.path} must hold plain paths, got {path}")
            file = folder.joinpath(*below_voice)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
