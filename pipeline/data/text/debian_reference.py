"""Debian Reference (GPL-2 or later), a handbook in several languages, from its Debian packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from pipeline.data.debian_packages import Package, origin, package_files, packages_of
from pipeline.data.text.corpus import Corpus, Paragraph, cached_paragraphs, split_sentences
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig

_BOOK = "usr/share/debian-reference/"
_TEXT_TAGS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "dt"})
_SKIPPED_TAGS = frozenset({"pre", "script", "style", "head"})
_SKIPPED_CLASSES = frozenset({"toc", "navheader", "navfooter", "list-of-tables"})
# '2.1.3. ' before a heading, 'Table 2.4. ' before a caption in any language.
_NUMBERING = re.compile(r"^(?:\w+\xa0|\w+ )?\d+(?:\.\d+)*\.\s*")


class Block(NamedTuple):
    """One element with text."""

    tag: str
    text: str


def read_debian_reference(data: DataConfig, languages: list[str]) -> Corpus:
    """Paragraphs, headings and table cells that exist in all `languages`, in a fixed order.

    Sections are joined by their id, and what stands in them by its place, where every language has
    the same elements in the section. What was parsed is kept in `data.downloads`. Raises
    MachineError where a package cannot be had, DataError where the packages share nothing.
    """
    downloads = Path(data.downloads)
    packages = packages_of(data, [f"debian-reference-{language}" for language in languages])
    parsed = cached_paragraphs(
        Path(__file__), downloads, packages, lambda: _joined(packages, languages)
    )
    return Corpus(
        name="Debian Reference",
        licence="GPL-2+",
        domain="system administration",
        packages=origin(packages),
        languages=frozenset(languages),
        paragraphs=parsed,
    )


def parse_sections(html: str) -> dict[str, list[Block]]:
    """Section id -> its blocks in order; tables of contents, listings and navigation left out."""
    parser = _BookParser()
    parser.feed(html)
    parser.close()
    return parser.sections


class _BookParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sections: dict[str, list[Block]] = {}
        self._section = ""
        self._tag: str | None = None
        self._pieces: list[str] = []
        self._skipped_tag: str | None = None
        self._skipped_depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if self._skipped_tag is not None:
            self._skipped_depth += tag == self._skipped_tag
            return
        if tag in _SKIPPED_TAGS or attributes.get("class") in _SKIPPED_CLASSES:
            self._finish()
            self._skipped_tag, self._skipped_depth = tag, 1
        elif tag == "a" and attributes.get("id"):
            self._section = str(attributes["id"])
        elif tag in _TEXT_TAGS:
            self._finish()
            self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        if self._skipped_tag is not None:
            self._skipped_depth -= tag == self._skipped_tag
            if not self._skipped_depth:
                self._skipped_tag = None
        elif tag in _TEXT_TAGS:
            self._finish()

    def handle_data(self, data: str) -> None:
        if self._tag is not None and self._skipped_tag is None:
            self._pieces.append(data)

    def _finish(self) -> None:
        text = " ".join("".join(self._pieces).split())
        if self._tag is not None and text:
            text = _NUMBERING.sub("", text) if self._tag.startswith("h") else text
            self.sections.setdefault(self._section, []).append(Block(self._tag, text))
        self._tag, self._pieces = None, []


def _joined(packages: list[Package], languages: list[str]) -> Iterator[Paragraph]:
    chapters: dict[str, dict[str, dict[str, list[Block]]]] = {}
    for package, language in zip(packages, languages, strict=True):
        suffix = f".{language}.html"
        for path, content in package_files(package, _BOOK, suffix):
            sections = parse_sections(content.decode("utf-8"))
            chapters.setdefault(path.removesuffix(suffix), {})[language] = sections
    found = False
    for chapter, sides in sorted(chapters.items()):
        if len(sides) < len(languages):
            continue
        for section in sides[languages[0]]:
            blocks = [sides[language].get(section, []) for language in languages]
            if len({tuple(block.tag for block in side) for side in blocks}) != 1:
                continue
            for row in zip(*blocks, strict=True):
                found = True
                texts = [split_sentences(block.text) for block in row]
                yield Paragraph(f"{chapter}#{section}", dict(zip(languages, texts, strict=True)))
    if not found:
        raise DataError(
            f"{', '.join(package.path.name for package in packages)} must share sections below "
            f"{_BOOK}, got none"
        )
