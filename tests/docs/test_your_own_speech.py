"""Compose and prepare the task of docs/your_own_speech.md from small recordings, without a network.

The recordings are noise. The commands are those of docs/your_own_language_pair.md.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from pipeline.run.artifacts import Artifact
from pipeline.run.settings import ROOT
from tests.docs.pages import SHELL, blocks, split
from tests.docs.runs import OFFLINE, run_python
from tests.docs.test_your_own_language_pair import PAGE as LANGUAGE_PAIR
from tests.pipeline.data.speech.conftest import WriteAudio, write_audio

__all__ = ["write_audio"]
PAGE = ROOT / "docs" / "your_own_speech.md"
_WORDS = ("rood", "groen", "deur", "één", "twee")


def _write_calls(folder: Path, write: WriteAudio) -> None:
    """Write a recording of all combinations of three words, and a segment that is not scored."""
    write(folder / "call.wav", 63)
    texts = map(" ".join, itertools.permutations(_WORDS, 3))
    lines = [
        f"call 1 ann {second}.0 {second}.5 {text} (call_{second})\n"
        for second, text in enumerate(texts)
    ]
    ignored = "call 1 ann 62 63 ignore_time_segment_in_scoring\n"
    (folder / "call.stm").write_text("".join(lines) + ignored, encoding="utf-8")


def test_task_of_the_page_needs_only_its_own_speech(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    _write_calls(tmp_path / "speech" / "calls", write_audio)
    write_audio(tmp_path / "speech" / "news" / "monday.wav", 1)
    (tmp_path / "speech" / "news" / "monday.txt").write_text("rood", encoding="utf-8")
    (block,) = (block for block in blocks(PAGE) if block.title)
    task = tmp_path / block.title
    task.parent.mkdir(parents=True)
    task.write_text(block.text, encoding="utf-8")
    shell = [block.text for block in blocks(LANGUAGE_PAIR) if block.language in SHELL]
    for words in [words for text in shell for words in split(text)][:2]:
        stage, *arguments = (word.replace("en_es", "calls") for word in words[2:])
        if stage == "stages.compose":
            arguments += ["experiment=smoke", "tracking=off", "data.speech.vocabulary_size=50"]
        # With an empty PATH, the page can need neither apt nor espeak-ng.
        done = run_python(["-m", stage, *arguments], tmp_path, **OFFLINE, PATH="")
    folder = tmp_path / "outputs" / "prepare" / "calls"
    counts = Artifact(folder, "prepare").description["counts"]
    assert {*counts} == {"train", "dev", "calls", "news"}
    assert (folder / "fairseq" / "dict.nl.txt").is_file()
    drawn = [counts[name] for name in ("train", "dev", "calls")]
    assert sum(count["utterances"] for count in drawn) == 60
    assert sum(count.get("utterance_names", 0) for count in drawn) == 60
    assert [count.get("not scored", 0) for count in drawn] == [1, 0, 0]
    log = done.stdout + done.stderr
    assert log.count("segments that the corpus excludes from scoring") == 1
    assert "left out or without sound" not in log
