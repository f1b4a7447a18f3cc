"""Speech without a synthesiser: noise in audio files, and a stand-in for espeak-ng."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

WriteAudio = Callable[[Path, float], Path]

_FAKE_ESPEAK = """#!/usr/bin/env python3
import struct, sys, zlib
if "--version" in sys.argv:
    print("eSpeak NG text-to-speech: 9.9  Data at: nowhere")
    raise SystemExit
text = sys.stdin.read()
voice = sys.argv[sys.argv.index("-v") + 1]
if voice == "mute":
    sys.exit("no such voice")
pitch = 20 + zlib.crc32((text + voice).encode()) % 50
samples = [(i * pitch * 97) % 9000 - 4500 for i in range(22050 // 2)]
rate = struct.pack("<I", 22050)
header = b"RIFF" + bytes([255] * 4) + b"WAVEfmt " + bytes(8) + rate + bytes(12) + bytes(4)
sys.stdout.buffer.write(header + struct.pack(f"<{len(samples)}h", *samples))
"""


@pytest.fixture
def write_audio() -> WriteAudio:
    """Return a function that writes seconds of noise at 16 kHz in the format of the suffix."""

    def write(path: Path, seconds: float) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        chance = np.random.default_rng(len(path.name))
        sound = 0.1 * chance.standard_normal(round(16000 * seconds))
        container = "NIST" if path.suffix == ".sph" else None
        soundfile.write(path, sound, 16000, format=container)
        return path

    return write


@pytest.fixture
def fake_espeak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an espeak-ng on the PATH whose voice is a sawtooth."""
    program = tmp_path / "bin" / "espeak-ng"
    program.parent.mkdir()
    program.write_text(_FAKE_ESPEAK, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program
