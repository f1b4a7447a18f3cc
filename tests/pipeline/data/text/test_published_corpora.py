from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text.published_corpora import read_sacrebleu, read_transcripts
from pipeline.errors import DataError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    return tmp_path


def _write(cache: Path, name: str, file: str, text: str) -> None:
    (cache / name).mkdir(parents=True, exist_ok=True)
    (cache / name / file).write_text(text)


@pytest.mark.parametrize(
    ("name", "stem", "ending"),
    [("wmt14", "wmt14", "ref"), ("wmt21", "wmt21", "ref-A"), ("wmt14/full", "wmt14_full", "ref")],
)
def test_source_and_first_reference_are_read(
    cache: Path, name: str, stem: str, ending: str
) -> None:
    _write(cache, name, f"{stem}.en-de.src", "a\nb\n")
    _write(cache, name, f"{stem}.en-de.{ending}", "A\nB\n")
    corpus = read_sacrebleu(name, ("en", "de"))
    rows = [paragraph.sentences for paragraph in corpus.paragraphs()]
    assert rows == [{"en": ["a"], "de": ["A"]}, {"en": ["b"], "de": ["B"]}]
    assert corpus.name == f"sacrebleu {name} en-de"
    assert not corpus.has_documents
    _write(cache, name, f"{stem}.en-de.docid", "bbc.1\nbbc.2\n")
    corpus = read_sacrebleu(name, ("en", "de"))
    assert corpus.has_documents
    assert [paragraph.page for paragraph in corpus.paragraphs()] == ["bbc.1", "bbc.2"]


@pytest.mark.usefixtures("cache")
def test_missing_sacrebleu_set_is_named_with_the_command() -> None:
    with pytest.raises(DataError, match=r"wmt14\.en-de\.src .*Run sacrebleu -t wmt14 -l en-de"):
        read_sacrebleu("wmt14", ("en", "de"))


def _chapter(root: Path, lines: str) -> Path:
    path = root / "test-clean" / "84" / "121" / "84-121.trans.txt"
    path.parent.mkdir(parents=True)
    path.write_text(lines, encoding="utf-8")
    return path


def test_transcripts_of_a_subset_are_in_lower_case(tmp_path: Path) -> None:
    _chapter(tmp_path, "84-121-0000 GO DO YOU HEAR\n84-121-0001 HE'S GONE\n")
    corpus = read_transcripts(tmp_path, "test-clean")
    assert [(paragraph.page, paragraph.sentences) for paragraph in corpus.paragraphs()] == [
        ("84-121", {"en": ["go do you hear"]}),
        ("84-121", {"en": ["he's gone"]}),
    ]
    assert corpus.name == "LibriSpeech test-clean, transcripts"


def test_transcripts_ignore_files_of_macos(tmp_path: Path) -> None:
    chapter = tmp_path / "test-clean" / "1" / "2"
    chapter.mkdir(parents=True)
    (chapter / "1-2.trans.txt").write_text("1-2-0000 A WORD\n")
    (chapter / "._1-2.trans.txt").write_bytes(b"\0\5\x16\7\xff")
    (paragraph,) = read_transcripts(tmp_path, "test-clean").paragraphs()
    assert paragraph.sentences == {"en": ["a word"]}


def test_folder_without_transcripts_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"test-other: no transcripts .*data\.librispeech"):
        read_transcripts(tmp_path, "test-other")


@pytest.mark.parametrize("line", ["", "84-121-0000", "84-122-0000 NOT OF THIS CHAPTER"])
def test_malformed_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = _chapter(tmp_path, f"84-121-0000 FINE\n{line}\n")
    with pytest.raises(DataError, match=rf"{path.name}, line 2: must be an utterance id"):
        list(read_transcripts(tmp_path, "test-clean").paragraphs())
