from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text.debian_reference import Block, parse_sections, read_debian_reference
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig
from tests.conftest import build_deb


def _data(packages: Path, downloads: Path) -> DataConfig:
    return DataConfig(downloads=str(downloads), packages=str(packages), pin=False)


def test_section_gives_its_elements_in_order() -> None:
    page = """<head><title>no</title></head><div class="navheader"><p>no</p></div>
      <h2><a id="one"></a>Chapter\u00a01. Basics</h2><div class="toc"><div><dt>no</dt></div></div>
      <p>Use <code>apt</code>
        now.</p><pre><p>no</p></pre>
      <table><tr><td><p>cell &amp; more</p></td><td> </td></tr></table>
      <h3><a id="two"></a>1.2.3. Further</h3><p class="x">End.</p>"""
    assert parse_sections(page) == {
        "one": [Block("h2", "Basics"), Block("p", "Use apt now."), Block("p", "cell & more")],
        "two": [Block("h3", "Further"), Block("p", "End.")],
    }


def test_corpus_joins_languages_on_section_and_place(help_packages: Path, tmp_path: Path) -> None:
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


def test_section_with_other_elements_in_one_language_is_left_out(tmp_path: Path) -> None:
    for language, last in (("en", "<p>B.</p>"), ("de", "")):
        page = f'<a id="one"></a><p>A.</p>{last}<a id="two"></a><p>C.</p>'
        path = f"usr/share/debian-reference/ch01.{language}.html"
        build_deb(tmp_path, f"debian-reference-{language}", {path: page})
    corpus = read_debian_reference(_data(tmp_path, tmp_path), ["de", "en"])
    assert [paragraph.page for paragraph in corpus.paragraphs()] == ["ch01#two"]


def test_packages_that_share_nothing_are_refused(tmp_path: Path) -> None:
    for language in ("en", "de"):
        path = f"usr/share/debian-reference/{language}.{language}.html"
        build_deb(tmp_path, f"debian-reference-{language}", {path: "<p>A.</p>"})
    with pytest.raises(DataError, match="must share sections"):
        read_debian_reference(_data(tmp_path, tmp_path), ["de", "en"])
