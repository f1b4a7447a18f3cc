from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text.published_corpora import read_sacrebleu
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
def test_source_and_first_reference(cache: Path, name: str, stem: str, ending: str) -> None:
    _write(cache, name, f"{stem}.en-de.src", "a\nb\n")
    _write(cache, name, f"{stem}.en-de.{ending}", "A\nB\n")
    corpus = read_sacrebleu(name, ("en", "de"))
    rows = [one.sentences for one in corpus.paragraphs()]
    assert rows == [{"en": ["a"], "de": ["A"]}, {"en": ["b"], "de": ["B"]}]
    assert corpus.name == f"sacrebleu {name}"


@pytest.mark.usefixtures("cache")
def test_set_that_was_not_fetched_is_named_with_the_command() -> None:
    with pytest.raises(DataError, match=r"wmt14\.en-de\.src .*run sacrebleu -t wmt14 -l en-de"):
        read_sacrebleu("wmt14", ("en", "de"))
