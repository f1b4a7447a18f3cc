"""LibreOffice's help text (MPL-2.0), in several languages, from its Debian packages."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from pipeline.data.debian_packages import Package, origin, package_files, packages_of
from pipeline.data.text.corpus import Corpus, Paragraph, cached_paragraphs, split_sentences
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig

_HELP = "usr/share/libreoffice/help"
_LOCALES = {"en": "en-US"}  # where the folder is not named as the language
_TEXT_TAGS = {"p", "h1", "h2", "h3", "h4", "h5", "h6"}


def read_libreoffice(data: DataConfig, languages: list[str]) -> Corpus:
    """Paragraphs that exist in all `languages`, joined on page and element id, in a fixed order.

    What was parsed is kept in `data.downloads`.
    Raises MachineError where a package cannot be had, DataError where the packages share nothing.
    """
    downloads = Path(data.downloads)
    names = [f"libreoffice-help-{_locale(language).lower()}" for language in languages]
    packages = packages_of(data, names)
    parsed = cached_paragraphs(
        Path(__file__), downloads, packages, lambda: _joined(packages, languages)
    )
    return Corpus(
        name="LibreOffice help",
        licence="MPL-2.0",
        domain="software help",
        packages=origin(packages),
        languages=frozenset(languages),
        paragraphs=parsed,
    )


def parse_page(html: str) -> dict[str, str]:
    """Element id -> text of the paragraphs and headings of a page; of a repeated id, the first."""
    parser = _PageParser()
    parser.feed(html)
    parser.close()
    return parser.elements


class _PageParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: dict[str, str] = {}
        self._id: str | None = None
        self._pieces: list[str] = []
        self._skipped_spans = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _TEXT_TAGS:
            self._finish()
            self._id = dict(attrs).get("id")
        # Beside every variant for macOS stands the one for other systems: only that one is text.
        elif tag == "span" and (self._skipped_spans or ("class", "MAC") in attrs):
            self._skipped_spans += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _TEXT_TAGS:
            self._finish()
        elif tag == "span" and self._skipped_spans:
            self._skipped_spans -= 1

    def handle_data(self, data: str) -> None:
        if self._id is not None and not self._skipped_spans:
            self._pieces.append(data)

    def _finish(self) -> None:
        text = " ".join("".join(self._pieces).split())
        if self._id is not None and text:
            self.elements.setdefault(self._id, text)
        self._id, self._pieces, self._skipped_spans = None, [], 0


def _locale(language: str) -> str:
    return _LOCALES.get(language, language)


def _joined(packages: list[Package], languages: list[str]) -> Iterator[Paragraph]:
    pages: dict[str, list[dict[str, str]]] = {}
    for side, (package, language) in enumerate(zip(packages, languages, strict=True)):
        below = f"{_HELP}/{_locale(language)}/text/"
        for page, content in package_files(package, below, ".html"):
            sides = pages.setdefault(page, [{} for _ in languages])
            sides[side] = parse_page(content.decode("utf-8"))
    found = False
    for page, sides in sorted(pages.items()):
        for element in sides[0]:
            if all(element in one for one in sides):
                found = True
                texts = [split_sentences(one[element]) for one in sides]
                yield Paragraph(page, dict(zip(languages, texts, strict=True)))
    if not found:
        raise DataError(
            f"{', '.join(package.path.name for package in packages)} must share help pages below "
            f"{_HELP}, got none"
        )
