from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.speech.corpus import Utterance
from pipeline.data.speech.sets import read_prompts
from pipeline.errors import DataError, MachineError
from pipeline.run.settings import DataConfig
from tests.conftest import build_deb
from tests.pipeline.data.speech.conftest import WriteAudio

pytestmark = pytest.mark.slow  # runs dpkg-deb

NAME = "asterisk-core-sounds-fr-wav"


def _data(folder: Path) -> DataConfig:
    return DataConfig(downloads=str(folder / "cache"), packages=str(folder), pin=False)


def test_prompts_are_unpacked_once_without_silence(tmp_path: Path, write_audio: WriteAudio) -> None:
    voice = tmp_path / f"{NAME}.tree" / "usr/share/asterisk/sounds/fr_CA_f_June"
    for name in ("bye.wav", "digits/1.wav", "silence/1.wav"):
        write_audio(voice / name, 0.5)
    build_deb(tmp_path, NAME, {})
    corpus = read_prompts(_data(tmp_path), "fr", "prompts")
    assert corpus.utterances == [
        Utterance(file, None, group=file) for file in ("bye.wav", "digits/1.wav")
    ]
    assert corpus.left_out == {"silence/1.wav": "silence"}
    assert corpus.packages[NAME]["version"] == "1.0"
    assert (corpus.folder / "digits" / "1.wav").is_file()
    (corpus.folder / "bye.wav").unlink()
    assert [
        utterance.file for utterance in read_prompts(_data(tmp_path), "fr", "p").utterances
    ] == ["digits/1.wav"]


def test_missing_package_and_package_without_prompts_have_reasons(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match=rf"has no {NAME}_\*\.deb"):
        read_prompts(_data(tmp_path), "fr", "prompts")
    build_deb(tmp_path, NAME, {"usr/share/doc/copyright": "x"})
    with pytest.raises(DataError, match="no prompts below usr/share/asterisk/sounds/"):
        read_prompts(_data(tmp_path), "fr", "prompts")
