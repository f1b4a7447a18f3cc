from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text import libreoffice
from pipeline.data.text.libreoffice import parse_page, read_libreoffice
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig

LANGUAGES = ["de", "en", "fr"]


def _data(packages: Path, downloads: Path) -> DataConfig:
    return DataConfig(downloads=str(downloads), packages=str(packages), pin=False)


def test_page_gives_text_by_element_id() -> None:
    page = """<h1 id="head">A &amp; B</h1><p>no id</p><div id="not_text">x</div>
      <p id="one"><a name="x"></a>Use <span class="emph">the
        filter</span>. <img src="x"></p>
      <p id="two">Choose <span class="switch"><span class="MAC"><span>Preferences</span></span>
        <span id="d">Options</span></span>.</p>
      <p id="empty"> </p><p id="one">again</p><script>ignored()</script>"""
    assert parse_page(page) == {
        "head": "A & B",
        "one": "Use the filter.",
        "two": "Choose Options.",
    }


def test_corpus_joins_languages_on_page_and_element(help_packages: Path, tmp_path: Path) -> None:
    corpus = read_libreoffice(_data(help_packages, tmp_path), LANGUAGES)
    paragraphs = list(corpus.paragraphs())
    assert len(paragraphs) == 81
    assert paragraphs[0].page == "page00.html"
    assert paragraphs[0].sentences == {
        "de": ["Öffnen den roten Deckel hinter: Garten."],
        "en": ["Open the red door beyond the garden."],
        "fr": ["Ouvrez la rouge porte derrière jardin."],
    }
    assert corpus.packages["libreoffice-help-de"]["version"] == "1.0"
    assert corpus.licence == "MPL-2.0"


def test_second_read_comes_from_the_cache(
    help_packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = list(read_libreoffice(_data(help_packages, tmp_path), LANGUAGES).paragraphs())

    def not_again(_: str) -> dict[str, str]:
        raise AssertionError("parsed again")

    monkeypatch.setattr(libreoffice, "parse_page", not_again)
    again = read_libreoffice(_data(help_packages, tmp_path), LANGUAGES)
    assert list(again.paragraphs()) == first


def test_packages_that_share_nothing_are_refused(help_packages: Path, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    for name, content in (("de", "de"), ("en-us", "fr"), ("fr", "fr")):
        content_of = next(help_packages.glob(f"libreoffice-help-{content}_*.deb"))
        copy = tmp_path / "mixed" / f"libreoffice-help-{name}_1.0_all.deb"
        copy.write_bytes(content_of.read_bytes())
    with pytest.raises(DataError, match="must share help pages"):
        read_libreoffice(_data(tmp_path / "mixed", tmp_path), LANGUAGES)
    assert not list(tmp_path.glob("*.jsonl"))
