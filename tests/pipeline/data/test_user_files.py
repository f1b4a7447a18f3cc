from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from pipeline.data.text.corpus import align
from pipeline.data.text.files import read_user_files
from pipeline.errors import DataError


def _texts(where: str, *languages: str) -> list[dict[str, str]]:
    corpus = read_user_files("mine", where, ["en", "de"], ["fr"])
    assert corpus.languages == set(languages)
    return [one.text for one in align(corpus.paragraphs(), sorted(languages), Counter())]


def test_prefix_finds_plain_and_gzipped_sides(tmp_path: Path) -> None:
    (tmp_path / "news: 日本.en").write_text("a b\nc\n", encoding="utf-8")
    (tmp_path / "news: 日本.de.gz").write_bytes(gzip.compress(b"A B\nC\n"))
    expected = [{"en": "a b", "de": "A B"}, {"en": "c", "de": "C"}]
    assert _texts(str(tmp_path / "news: 日本"), "en", "de") == expected


def test_a_path_may_hold_the_language_anywhere(tmp_path: Path) -> None:
    for language in ("en", "de", "fr"):
        folder = tmp_path / language
        folder.mkdir()
        (folder / "text.txt").write_text(f"{language} 1\n")
    where = str(tmp_path / "{lang}" / "text.txt")
    assert _texts(where, "en", "de", "fr") == [{"en": "en 1", "de": "de 1", "fr": "fr 1"}]


def test_translation_memory(tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    unit = '<tu><tuv lang="en"><seg>a</seg></tuv><tuv lang="de"><seg>A</seg></tuv></tu>'
    path.write_text(f"<tmx><body>{unit}</body></tmx>")
    assert _texts(str(path), "en", "de") == [{"en": "a", "de": "A"}]
    with pytest.raises(DataError, match="must have units in it, got in the first one en"):
        read_user_files("mine", str(path), ["en", "it"], [])
    path.write_text("<tmx><body/></tmx>")
    with pytest.raises(DataError, match="must hold a translation unit, got none"):
        read_user_files("mine", str(path), ["en", "de"], [])


def test_missing_side_is_named_with_where_it_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "news.en").write_text("a\n")
    with pytest.raises(DataError, match=r"must have a side in de, got neither .*news\.de nor"):
        read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])


def test_case_11_unequal_sides_are_refused_before_any_line_is_given(tmp_path: Path) -> None:
    (tmp_path / "news.en").write_text("a\nb\n")
    (tmp_path / "news.de").write_text("A\n")
    with pytest.raises(DataError, match=r"got 2 and 1: line 2 has no counterpart"):
        read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])


@pytest.mark.parametrize(("n_line", "n_page"), [(250, 250), (5000, 1000), (250_000, 2500)])
def test_neighbouring_lines_of_long_files_are_of_one_page(
    tmp_path: Path, n_line: int, n_page: int
) -> None:
    for language in ("en", "de"):
        (tmp_path / f"news.{language}").write_text("x\n" * n_line)
    corpus = read_user_files("mine", str(tmp_path / "news"), ["en", "de"], [])
    pages = Counter(one.page for one in corpus.paragraphs())
    assert set(pages.values()) == {n_line // n_page}
    assert len(pages) == n_page
