from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import soundfile

from pipeline.data.speech.espeak import Espeak, Prompt, Voice, find_espeak, synthesise
from pipeline.errors import DataError, MachineError
from pipeline.run.files import file_sha256
from pipeline.run.settings import DataConfig
from tests.conftest import build_deb

pytestmark = pytest.mark.slow  # runs a stand-in of espeak-ng

_VOICE = Voice("en-us", 175, 50)


def _data(downloads: Path, packages: Path | None = None, *, pin: bool = False) -> DataConfig:
    where = None if packages is None else str(packages)
    return DataConfig(downloads=str(downloads), packages=where, pin=pin)


def test_installed_espeak_is_used(fake_espeak: Path, tmp_path: Path) -> None:
    espeak = find_espeak(_data(tmp_path))
    assert espeak.program == str(fake_espeak)
    assert espeak.packages["espeak-ng"] == {"version": "9.9", "sha256": file_sha256(fake_espeak)}
    samples, rate_hz = espeak.speak("turn the lamp on", _VOICE)
    assert (len(samples), rate_hz) == (11025, 22050)


def test_without_espeak_and_apt_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"apt-get install espeak-ng"):
        find_espeak(_data(tmp_path / "downloads"))


def test_espeak_that_does_not_run_is_named(fake_espeak: Path, tmp_path: Path) -> None:
    fake_espeak.write_text("#!/bin/sh\necho libX.so: not found >&2\nexit 127\n")
    with pytest.raises(MachineError, match=r"does not run \(libX\.so: not found\)\. Install it"):
        find_espeak(_data(tmp_path))


def test_packages_are_unpacked_once_with_missing_libraries(
    fake_espeak: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debs, downloads = tmp_path / "debs", tmp_path / "down loads"
    downloads.mkdir()
    runs = '#!/bin/sh\nls "${LD_LIBRARY_PATH%%:*}/libneeded.so.1" >/dev/null && echo espeak 1.0\n'
    files = {
        "espeak-ng": {"usr/bin/espeak-ng": runs},
        "espeak-ng-data": {"usr/lib/arch/espeak-ng-data/phontab": "x"},
        "libespeak-ng1": {"usr/lib/arch/libespeak-ng.so.1": "x"},
        "libpcaudio0": {"usr/lib/arch/libpcaudio.so.0": "x"},
        "libsonic0": {"usr/lib/arch/libsonic.so.0": "x"},
        "libneeded1": {"usr/lib/arch/libneeded.so.1": "x"},
    }
    program = debs / "espeak-ng.tree" / "usr" / "bin" / "espeak-ng"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    for name, content in files.items():
        deb = build_deb(debs, name, content)
        if name != "libneeded1":
            deb.replace(downloads / deb.name)
    apt = fake_espeak.with_name("apt-get")
    apt.write_text(
        '#!/bin/sh\nfor arg in "$@"; do case "$arg" in -oDir::Cache=*) cache="${arg#*=}";; esac; '
        f'done\ncase "$*" in *install*) cp "{debs}"/libneeded1_*.deb "$cache/archives/";; esac\n'
    )
    apt.chmod(0o755)
    fake_espeak.unlink()
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: which(name) if name != "espeak-ng" else None)
    espeak = find_espeak(_data(downloads))
    assert Path(espeak.environment["ESPEAK_DATA_PATH"], "espeak-ng-data").is_dir()
    assert set(espeak.packages) == set(files) - {"libneeded1"}
    apt.unlink()
    assert find_espeak(_data(downloads)) == espeak


def test_text_that_espeak_cannot_read_is_named(fake_espeak: Path) -> None:
    with pytest.raises(DataError, match=r"'no' in the voice mute \(no such voice\)"):
        Espeak(str(fake_espeak), {}, {}).speak("no", Voice("mute", 1, 1))


def test_synthesis_is_cached_and_resumes(fake_espeak: Path, tmp_path: Path) -> None:
    espeak = find_espeak(_data(tmp_path))
    prompts = [Prompt(f"number {number}", _VOICE, 10.0, number) for number in range(4)]
    folder = synthesise("set", prompts, espeak, 8000, tmp_path / "a b")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(files) == [f"{number:05d}.wav" for number in range(4)]
    assert len(set(files.values())) == 4
    assert soundfile.info(folder / "00000.wav").samplerate == 8000
    assert soundfile.info(folder / "00000.wav").frames == 4000
    (folder / "00002.wav").unlink()
    os.utime(folder / "00001.wav", (1, 1))
    assert synthesise("set", prompts, espeak, 8000, tmp_path / "a b") == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert (folder / "00001.wav").stat().st_mtime == 1
    changed = [*prompts[:3], prompts[3]._replace(text="another")]
    assert synthesise("set", changed, espeak, 8000, tmp_path / "a b") != folder


def test_noise_has_the_requested_level(fake_espeak: Path, tmp_path: Path) -> None:
    espeak = find_espeak(_data(tmp_path))
    sounds = []
    for ratio_db in (None, 20.0):
        folder = synthesise("set", [Prompt("x", _VOICE, ratio_db)], espeak, 8000, tmp_path / "d")
        sounds.append(soundfile.read(folder / "00000.wav")[0])
    noise = sounds[1] - sounds[0]
    power = 10 * ((sounds[0] ** 2).mean() / (noise**2).mean())
    assert power == pytest.approx(1000, rel=0.1)
