"""The user's own speech, in whichever published layout it lies."""

from __future__ import annotations

from pathlib import Path

from pipeline.data.speech.ami import is_ami, read_ami
from pipeline.data.speech.audio_folder import read_audio_folder
from pipeline.data.speech.common_voice import read_common_voice
from pipeline.data.speech.corpus import SpeechCorpus
from pipeline.data.speech.librispeech import is_librispeech, read_librispeech
from pipeline.data.speech.stm import read_stm
from pipeline.errors import DataError


def read_speech(path: Path, name: str) -> SpeechCorpus:
    """The utterances at a path: a Common Voice .tsv, or a folder.

    A folder is read as LibriSpeech's (speaker/chapter/*.trans.txt), as AMI's (words/ and
    segments/), by its .stm files, else as audio with a .txt beside each. `name` is what the corpus
    is called. Raises DataError where there is no utterance, or a file breaks its layout's rules.
    """
    if not path.exists():
        raise DataError(f"{path} must be a folder of speech or a .tsv of Common Voice, got nothing")
    if path.is_file():
        corpus = read_common_voice(path, name)
    elif is_librispeech(path):
        corpus = read_librispeech(path, name)
    elif is_ami(path):
        corpus = read_ami(path, name)
    elif any(path.rglob("*.stm")):
        corpus = read_stm(path, name)
    else:
        corpus = read_audio_folder(path, name)
    if not corpus.utterances:
        raise DataError(f"{path} must hold an utterance, got {len(corpus.left_out)} left out")
    return corpus
