from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text import debian_corpora
from pipeline.data.text.debian_corpora import (
    Element,
    parse_book_sections,
    parse_dialogue,
    parse_help_page,
    read_debian_reference,
    read_game_dialogue,
    read_libreoffice,
)
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig
from tests.conftest import build_deb


def _data(packages: Path, downloads: Path) -> DataConfig:
    return DataConfig(downloads=str(downloads), packages=str(packages), pin=False)


def test_elements_of_a_book_section_are_read_in_order() -> None:
    page = """<head><title>no</title></head><div class="navheader"><p>no</p></div>
      <h2><a id="one"></a>Chapter\u00a01. Basics</h2><div class="toc"><div><dt>no</dt></div></div>
      <p>Use <code>apt</code>
        now.</p><pre><p>no</p></pre>
      <table><tr><td><p>cell &amp; more</p></td><td> </td></tr></table>
      <h3><a id="two"></a>1.2.3. Further</h3><p class="x">End.</p>"""
    assert parse_book_sections(page) == {
        "one": [Element("h2", "Basics"), Element("p", "Use apt now."), Element("p", "cell & more")],
        "two": [Element("h3", "Further"), Element("p", "End.")],
    }


def test_book_is_joined_on_section_and_position(help_packages: Path, tmp_path: Path) -> None:
    corpus = read_debian_reference(_data(help_packages, tmp_path), ["de", "en", "fr"])
    paragraphs = list(corpus.paragraphs())
    assert len(paragraphs) == 2 * 24
    assert paragraphs[1].page == "ch01#0-one"
    assert paragraphs[1].sentences == {
        "de": ["Binden jede langsame Platte Nummer one heute."],
        "en": ["Mount every slow disk number one tonight."],
        "fr": ["Montez chaque disque lent numéro one ensuite."],
    }
    assert corpus.licence == "GPL-2+"
    assert set(corpus.packages) == {f"debian-reference-{name}" for name in ("de", "en", "fr")}


@pytest.mark.slow
def test_section_with_different_elements_is_left_out(tmp_path: Path) -> None:
    for language, last in (("en", "<p>B.</p>"), ("de", "")):
        page = f'<a id="one"></a><p>A.</p>{last}<a id="two"></a><p>C.</p>'
        path = f"usr/share/debian-reference/ch01.{language}.html"
        build_deb(tmp_path, f"debian-reference-{language}", {path: page})
    corpus = read_debian_reference(_data(tmp_path, tmp_path), ["de", "en"])
    assert [paragraph.page for paragraph in corpus.paragraphs()] == ["ch01#two"]


@pytest.mark.slow
def test_books_that_share_no_section_are_refused(tmp_path: Path) -> None:
    for language in ("en", "de"):
        path = f"usr/share/debian-reference/{language}.{language}.html"
        build_deb(tmp_path, f"debian-reference-{language}", {path: "<p>A.</p>"})
    with pytest.raises(DataError, match="no text in all languages"):
        read_debian_reference(_data(tmp_path, tmp_path), ["de", "en"])


LANGUAGES = ["de", "en", "fr"]


def test_text_of_a_help_page_is_read_by_element_id() -> None:
    page = """<h1 id="head">A &amp; B</h1><p>no id</p><div id="not_text">x</div>
      <p id="one"><a name="x"></a>Use <span class="emph">the
        filter</span>. <img src="x"></p>
      <p id="two">Choose <span class="switch"><span class="MAC"><span>Preferences</span></span>
        <span id="d">Options</span></span>.</p>
      <p id="empty"> </p><p id="one">again</p><script>ignored()</script>"""
    assert parse_help_page(page) == {
        "head": "A & B",
        "one": "Use the filter.",
        "two": "Choose Options.",
    }


def test_help_is_joined_on_page_and_element(help_packages: Path, tmp_path: Path) -> None:
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

    monkeypatch.setattr(debian_corpora, "parse_help_page", not_again)
    again = read_libreoffice(_data(help_packages, tmp_path), LANGUAGES)
    assert list(again.paragraphs()) == first


def test_help_that_shares_no_page_is_refused(help_packages: Path, tmp_path: Path) -> None:
    (tmp_path / "mixed").mkdir()
    for name, content in (("de", "de"), ("en-us", "fr"), ("fr", "fr")):
        content_of = next(help_packages.glob(f"libreoffice-help-{content}_*.deb"))
        copy = tmp_path / "mixed" / f"libreoffice-help-{name}_1.0_all.deb"
        copy.write_bytes(content_of.read_bytes())
    with pytest.raises(DataError, match="no text in all languages"):
        read_libreoffice(_data(tmp_path / "mixed", tmp_path), LANGUAGES)
    assert not list(tmp_path.glob("*.jsonl"))


def test_lines_are_read_with_their_escapes() -> None:
    script = r"""
      dialogId("a", "font_big", "Say \"now\", \\ then
        go.")
      dialogStr("Sag, (jetzt)")
      dialogId("b", "font_big", "no translation")
      dialogId("a", "font_big", "again")
      dialogStr("noch einmal")
    """
    assert parse_dialogue(script) == {"a": ('Say "now", \\ then go.', "Sag, (jetzt)")}


def test_dialogue_is_joined_on_level_and_line(help_packages: Path, tmp_path: Path) -> None:
    corpus = read_game_dialogue(_data(help_packages, tmp_path), ["de", "en", "fr"])
    paragraphs = list(corpus.paragraphs())
    assert len(paragraphs) == 24
    assert {paragraph.page for paragraph in paragraphs} == {"cave"}
    assert paragraphs[0].sentences == {
        "de": ["Warum schwimmt Anna denn eight?"],
        "en": ["So why is Anna swimming eight?"],
        "fr": ["Pourquoi Anna nage-t-il eight ?"],
    }


def test_language_without_a_translation_is_refused(help_packages: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no dialogue in all of en, it"):
        read_game_dialogue(_data(help_packages, tmp_path), ["en", "it"])
