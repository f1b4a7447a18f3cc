from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text.published_corpora import read_transcripts
from pipeline.errors import DataError


def _chapter(root: Path, lines: str) -> Path:
    path = root / "test-clean" / "84" / "121" / "84-121.trans.txt"
    path.parent.mkdir(parents=True)
    path.write_text(lines, encoding="utf-8")
    return path


def test_transcripts_of_a_subset_in_lower_case(tmp_path: Path) -> None:
    _chapter(tmp_path, "84-121-0000 GO DO YOU HEAR\n84-121-0001 HE'S GONE\n")
    corpus = read_transcripts(tmp_path, "test-clean")
    assert [(one.page, one.sentences) for one in corpus.paragraphs()] == [
        ("84-121", {"en": ["go do you hear"]}),
        ("84-121", {"en": ["he's gone"]}),
    ]
    assert corpus.name == "LibriSpeech test-clean, transcripts"


def test_folder_without_transcripts_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"test-other must hold transcripts .*data\.librispeech"):
        read_transcripts(tmp_path, "test-other")


@pytest.mark.parametrize("line", ["", "84-121-0000", "84-122-0000 NOT OF THIS CHAPTER"])
def test_line_of_another_form_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = _chapter(tmp_path, f"84-121-0000 FINE\n{line}\n")
    with pytest.raises(DataError, match=rf"{path.name}, line 2 must be an utterance id"):
        list(read_transcripts(tmp_path, "test-clean").paragraphs())
