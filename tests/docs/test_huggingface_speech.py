"""Run the commands of docs/huggingface_speech.md on tiny models and tones, without a network."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline.run.artifacts import Artifact
from pipeline.run.settings import ROOT
from tests.docs.pages import SHELL, blocks, split
from tests.docs.runs import OFFLINE, run_python
from tests.pipeline.huggingface.speech_folders import save_whisper, write_audio_folder

PAGE = ROOT / "docs" / "huggingface_speech.md"
# So that the page needs seconds: few decodes, of few tokens.
_TINY = (
    *("tracking=off", "decode.also=[teacher_forcing]", "decode.parts_per_job=8"),
    *("decode.max_length_ratio=0", "decode.subsets_per_size=0"),
    *("metrics.resamples=0", "~report.figures"),
)


@pytest.mark.slow
def test_two_whisper_models_and_audio_give_the_tables_of_the_page(tmp_path: Path) -> None:
    for seed, name in enumerate("ab", 1):
        save_whisper(tmp_path / "whisper" / name, seed)
    write_audio_folder(tmp_path / "speech" / "calls", 6, seed=8)
    write_audio_folder(tmp_path / "speech" / "news", 4, seed=9, suffix=".flac")
    (block,) = (block for block in blocks(PAGE) if block.title)
    task = tmp_path / block.title
    task.parent.mkdir(parents=True)
    task.write_text(block.text, encoding="utf-8")
    shell = [block.text for block in blocks(PAGE) if block.language in SHELL]
    install, *commands = [words for text in shell for words in split(text)]
    assert install[:2] == ["pip", "install"]
    for words in commands:
        tiny = _TINY if words[2] == "stages.compose" else ()
        # With an empty PATH, the page can need neither apt nor espeak-ng.
        run_python([*words[1:], *tiny], tmp_path, **OFFLINE, PATH="")
    outputs = tmp_path / "outputs"
    assert "huggingface.prex.news" in Artifact(outputs / "decode" / "calls", "decode").parts()
    with (outputs / "metrics/calls/cells.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [cell for cell in cells if cell["metric"] == "wer_percent" and cell["value"]]
    performance = (outputs / "tables/beyond_performance.md").read_text(encoding="utf-8")
    assert "WER" in performance
    assert "case:lc|transcripts:words" in performance.replace("\\", "")
    assert (outputs / "report" / "index.html").is_file()
