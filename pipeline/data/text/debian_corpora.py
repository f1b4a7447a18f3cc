"""The text corpora that come as Debian packages: two handbooks, and the dialogue of a game."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from pipeline.data.debian_packages import Package, origin, package_files, packages_of
from pipeline.data.text import corpus
from pipeline.data.text.corpus import Corpus, Paragraph, split_sentences
from pipeline.errors import DataError
from pipeline.run.files import digest, file_sha256
from pipeline.run.settings import DataConfig

_log = logging.getLogger(__name__)


def read_libreoffice(data: DataConfig, languages: list[str]) -> Corpus:
    """Read the paragraphs of LibreOffice's help (MPL-2.0) that exist in all languages.

    Paragraphs are matched by page and element id. Raises MachineError if a package is not
    available, and DataError if the packages share no page.
    """
    names = [f"libreoffice-help-{_locale(language).lower()}" for language in languages]
    packages = packages_of(data, names)
    return Corpus(
        name="LibreOffice help",
        licence="MPL-2.0",
        domain="software help",
        packages=origin(packages),
        languages=frozenset(languages),
        paragraphs=_cached(
            "libreoffice", data, packages, lambda: _help_paragraphs(packages, languages)
        ),
        has_documents=True,
    )


def read_debian_reference(data: DataConfig, languages: list[str]) -> Corpus:
    """Read the paragraphs, headings and table cells of Debian Reference (GPL-2 or later).

    Sections are matched by id, and elements by position if a section has the same sequence of
    elements in all languages. Raises MachineError if a package is not available, and DataError if
    the packages share no section.
    """
    packages = packages_of(data, [f"debian-reference-{language}" for language in languages])
    return Corpus(
        name="Debian Reference",
        licence="GPL-2+",
        domain="system administration",
        packages=origin(packages),
        languages=frozenset(languages),
        paragraphs=_cached(
            "debian_reference", data, packages, lambda: _book_paragraphs(packages, languages)
        ),
        has_documents=True,
    )


def read_game_dialogue(data: DataConfig, languages: list[str]) -> Corpus:
    """Read the dialogue of the game Fish Fillets NG (GPL-2), spoken English with translations.

    Paragraphs may lack some of the languages. Raises MachineError if the package is not available,
    and DataError if no line is translated into all languages.
    """
    packages = packages_of(data, ["fillets-ng-data"])
    paragraphs = _cached("game_dialogue", data, packages, lambda: _dialogue_paragraphs(packages[0]))
    translations = [language for language in languages if language != "en"]
    if not any(all(map(row.sentences.get, translations)) for row in paragraphs()):
        raise DataError(
            f"{packages[0].path}: no dialogue in all of {', '.join(languages)}. Choose languages "
            f"of the package."
        )
    return Corpus(
        name="Fish Fillets NG dialogue",
        licence="GPL-2",
        domain="spoken, game dialogue",
        packages=origin(packages),
        languages=frozenset(languages),
        paragraphs=paragraphs,
        has_documents=True,
    )


# Parsing takes long, so that the paragraphs are kept beside the packages.


def _cached(
    name: str, data: DataConfig, packages: list[Package], parse: Callable[[], Iterable[Paragraph]]
) -> Callable[[], Iterator[Paragraph]]:
    """Return a function that reads parsed paragraphs from a file in data.downloads.

    The name of the file has a digest of the packages, in order, and of the parsing code.
    """
    code = [file_sha256(Path(str(path))) for path in (__file__, corpus.__file__)]
    key = digest([(package.name, package.sha256) for package in packages], code)
    path = Path(data.downloads) / f"{name}-{key[:16]}.jsonl"
    if not path.is_file():
        _log.info("parsing %s", ", ".join(package.path.name for package in packages))
        _write_paragraphs(path, parse())
    return lambda: _read_paragraphs(path)


def _write_paragraphs(path: Path, paragraphs: Iterable[Paragraph]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            for paragraph in paragraphs:
                file.write(json.dumps(paragraph, ensure_ascii=False, separators=(",", ":")) + "\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_paragraphs(path: Path) -> Iterator[Paragraph]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield Paragraph(*json.loads(line))


# LibreOffice's help

_HELP = "usr/share/libreoffice/help"
_LOCALES = {"en": "en-US"}  # languages whose folder has another name
_HELP_TAGS = {"p", "h1", "h2", "h3", "h4", "h5", "h6"}


def parse_help_page(html: str) -> dict[str, str]:
    """Parse the paragraphs and headings of a page: element id -> text.

    Of elements with the same id, the first is used.
    """
    parser = _HelpParser()
    parser.feed(html)
    parser.close()
    return parser.elements


class _HelpParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: dict[str, str] = {}
        self._id: str | None = None
        self._text: list[str] = []
        self._skipped_spans = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HELP_TAGS:
            self._finish()
            self._id = dict(attrs).get("id")
        # A variant for macOS is always beside the one for other systems, which is used.
        elif tag == "span" and (self._skipped_spans or ("class", "MAC") in attrs):
            self._skipped_spans += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _HELP_TAGS:
            self._finish()
        elif tag == "span" and self._skipped_spans:
            self._skipped_spans -= 1

    def handle_data(self, data: str) -> None:
        if self._id is not None and not self._skipped_spans:
            self._text.append(data)

    def _finish(self) -> None:
        text = " ".join("".join(self._text).split())
        if self._id is not None and text:
            self.elements.setdefault(self._id, text)
        self._id, self._text, self._skipped_spans = None, [], 0


def _locale(language: str) -> str:
    return _LOCALES.get(language, language)


def _help_paragraphs(packages: list[Package], languages: list[str]) -> Iterator[Paragraph]:
    pages: dict[str, list[dict[str, str]]] = {}
    for place, (package, language) in enumerate(zip(packages, languages, strict=True)):
        folder = f"{_HELP}/{_locale(language)}/text/"
        for page, content in package_files(package, folder, ".html"):
            sides = pages.setdefault(page, [{} for _ in languages])
            sides[place] = parse_help_page(content.decode("utf-8"))
    is_empty = True
    for page, sides in sorted(pages.items()):
        for element in sides[0]:
            if all(element in side for side in sides):
                is_empty = False
                texts = [split_sentences(side[element]) for side in sides]
                yield Paragraph(page, dict(zip(languages, texts, strict=True)))
    if is_empty:
        raise _nothing_shared(packages, _HELP)


def _nothing_shared(packages: list[Package], folder: str) -> DataError:
    names = ", ".join(package.path.name for package in packages)
    return DataError(f"{names}: no text in all languages below {folder}. Use other versions.")


# Debian Reference

_BOOK = "usr/share/debian-reference/"
_BOOK_TAGS = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "dt"})
_SKIPPED_TAGS = frozenset({"pre", "script", "style", "head"})
_SKIPPED_CLASSES = frozenset({"toc", "navheader", "navfooter", "list-of-tables"})
# "2.1.3. " of a heading, or "Table 2.4. " of a caption, in any language.
_NUMBERING = re.compile(r"^(?:\w+\xa0|\w+ )?\d+(?:\.\d+)*\.\s*")


class Element(NamedTuple):
    """An HTML element that contains text."""

    tag: str
    text: str


def parse_book_sections(html: str) -> dict[str, list[Element]]:
    """Parse the elements of each section: section id -> elements in order.

    Tables of contents, listings and navigation are left out.
    """
    parser = _BookParser()
    parser.feed(html)
    parser.close()
    return parser.sections


class _BookParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sections: dict[str, list[Element]] = {}
        self._section = ""
        self._tag: str | None = None
        self._text: list[str] = []
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
        elif tag in _BOOK_TAGS:
            self._finish()
            self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        if self._skipped_tag is not None:
            self._skipped_depth -= tag == self._skipped_tag
            if not self._skipped_depth:
                self._skipped_tag = None
        elif tag in _BOOK_TAGS:
            self._finish()

    def handle_data(self, data: str) -> None:
        if self._tag is not None and self._skipped_tag is None:
            self._text.append(data)

    def _finish(self) -> None:
        text = " ".join("".join(self._text).split())
        if self._tag is not None and text:
            text = _NUMBERING.sub("", text) if self._tag.startswith("h") else text
            self.sections.setdefault(self._section, []).append(Element(self._tag, text))
        self._tag, self._text = None, []


def _book_paragraphs(packages: list[Package], languages: list[str]) -> Iterator[Paragraph]:
    chapters: dict[str, dict[str, dict[str, list[Element]]]] = {}
    for package, language in zip(packages, languages, strict=True):
        suffix = f".{language}.html"
        for path, content in package_files(package, _BOOK, suffix):
            sections = parse_book_sections(content.decode("utf-8"))
            chapters.setdefault(path.removesuffix(suffix), {})[language] = sections
    is_empty = True
    for chapter, sides in sorted(chapters.items()):
        if len(sides) < len(languages):
            continue
        for section in sides[languages[0]]:
            elements = [sides[language].get(section, []) for language in languages]
            if len({tuple(element.tag for element in side) for side in elements}) != 1:
                continue
            for row in zip(*elements, strict=True):
                is_empty = False
                texts = [split_sentences(element.text) for element in row]
                yield Paragraph(f"{chapter}#{section}", dict(zip(languages, texts, strict=True)))
    if is_empty:
        raise _nothing_shared(packages, _BOOK)


# The dialogue of Fish Fillets NG

_SCRIPTS = "usr/share/games/fillets-ng/script/"
_STRING = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    rf"""dialogId\(\s*{_STRING}\s*,\s*{_STRING}\s*,\s*{_STRING}\s*\)\s*dialogStr\(\s*{_STRING}\s*\)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def parse_dialogue(script: str) -> dict[str, tuple[str, str]]:
    """Parse a script: line id -> (English, translation). Of lines with the same id, the first."""
    lines: dict[str, tuple[str, str]] = {}
    for match in _LINE.finditer(script):
        name, _, english, translation = map(_unescaped, match.groups())
        lines.setdefault(name, (english, translation))
    return lines


def _unescaped(text: str) -> str:
    return " ".join(_ESCAPE.sub(r"\1", text).split())


def _dialogue_paragraphs(package: Package) -> Iterator[Paragraph]:
    levels: dict[str, dict[str, dict[str, str]]] = {}
    for path, content in package_files(package, _SCRIPTS, ".lua"):
        level, _, file = path.rpartition("/")
        language = file.removesuffix(".lua").removeprefix("dialogs_")
        if file.startswith("dialogs_") and len(language) == 2:
            parsed = parse_dialogue(content.decode("utf-8"))
            for name, (english, translation) in parsed.items():
                sides = levels.setdefault(level, {}).setdefault(name, {})
                # The English text beside an outdated translation is older than the current line.
                if sides.setdefault("en", english) == english:
                    sides[language] = translation
    for level, lines in sorted(levels.items()):
        for _, sides in sorted(lines.items()):
            texts = {language: split_sentences(text) for language, text in sides.items()}
            yield Paragraph(level, texts)
