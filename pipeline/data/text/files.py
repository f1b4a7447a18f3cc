"""The user's own parallel text: a file a side, plain or gzipped, or one TMX file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from pipeline.data.lines import iterate_lines, open_bytes
from pipeline.data.text.corpus import Corpus, Paragraph
from pipeline.errors import DataError

# A pair is suspicious where one side has this many times the words of the other, and some more.
_SUSPICIOUS_RATIO = 3
_SUSPICIOUS_ALLOWANCE_WORDS = 5


def check_parallel(paths: Sequence[Path]) -> int:
    """The number of lines of several files that stand side by side; blank lines count.

    Raises DataError where a file is empty, and where two differ in their number of lines: with both
    counts and the first line at which they look out of step.
    """
    counts = [sum(1 for _ in iterate_lines(path)) for path in paths]
    for path, count in zip(paths, counts, strict=True):
        if not count:
            raise DataError(f"{path} must hold a line, got an empty file")
        if count != counts[0]:
            raise DataError(
                f"{paths[0]} and {path} must have equally many lines, got {counts[0]} and {count}: "
                f"{_first_suspicious_line(paths[0], path)}"
            )
    return counts[0]


def _first_suspicious_line(one: Path, other: Path) -> str:
    lines, other_lines = iterate_lines(one), iterate_lines(other)
    number = 0
    while True:
        number += 1
        text, other_text = next(lines, None), next(other_lines, None)
        if text is None or other_text is None:
            return f"line {number} has no counterpart ({(text or other_text or '')[:40]!r})"
        words = sorted((len(text.split()), len(other_text.split())))
        blank = words[0] == 0 < words[1]
        if blank or words[1] > _SUSPICIOUS_RATIO * words[0] + _SUSPICIOUS_ALLOWANCE_WORDS:
            return (
                f"line {number} is the first suspicious one ({text[:40]!r} beside "
                f"{other_text[:40]!r})"
            )


_CHUNK_BYTES = 1 << 16
_MOST_UNIT_CHARACTERS = 1_000_000
_MOST_TAG_BYTES = 1_000_000
# Inside a segment these hold codes of the program that wrote it, not text.
_CODE_TAGS = frozenset({"bpt", "ept", "ph", "it", "ut"})


def iterate_units(path: Path, languages: Collection[str]) -> Iterator[dict[str, str]]:
    """Language -> text of each translation unit, for those of `languages` that the unit has.

    `en` answers to `en-US` too; of a repeated language the first stands. White space is one space.
    Nothing outside the file is read. Raises DataError, naming file and line, where the file is
    missing or no XML, where it declares entities or uses others than XML's own, or where a unit or
    a tag is longer than a million characters.
    """
    parser = _UnitParser(path, languages)
    try:
        with open_bytes(path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield from parser.units(chunk, last=False)
        yield from parser.units(b"", last=True)
    except FileNotFoundError:
        raise DataError(f"{path} must exist, got no such file") from None
    except (expat.ExpatError, LookupError, ValueError) as error:
        # The last two: an encoding that Python does not know, or that is not of single bytes.
        raise DataError(f"{path} must be a TMX file, got: {error}") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} must be a whole gzip file, got a damaged one ({error})") from None


class _UnitParser:
    def __init__(self, path: Path, languages: Collection[str]) -> None:
        self._path = path
        self._languages = frozenset(languages)
        self._finished: list[dict[str, str]] = []
        self._unit: dict[str, str] = {}
        self._language = ""
        self._pieces: list[str] | None = None
        self._code_depth = 0
        self._characters = 0
        self._bytes = 0
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._entity
        self._parser.SkippedEntityHandler = self._skipped

    def units(self, chunk: bytes, *, last: bool) -> list[dict[str, str]]:
        """The units that end in this chunk of the file."""
        self._parser.Parse(chunk, last)
        self._bytes += len(chunk)
        # What the parser keeps of a tag or comment that has not ended yet.
        if self._bytes - self._parser.CurrentByteIndex > _MOST_TAG_BYTES:
            self._refuse(f"tags of at most {_MOST_TAG_BYTES} bytes, got a longer one")
        finished, self._finished = self._finished, []
        return finished

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._unit, self._characters = {}, 0
        elif tag == "tuv":
            name = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._language = name.replace("_", "-").partition("-")[0].lower()
        elif tag == "seg":
            self._pieces, self._code_depth = [], 0
        elif tag in _CODE_TAGS:
            self._code_depth += 1

    def _end(self, tag: str) -> None:
        if tag == "tu":
            self._finished.append(self._unit)
        elif tag == "seg" and self._pieces is not None:
            text = " ".join("".join(self._pieces).split())
            if self._language in self._languages:
                self._unit.setdefault(self._language, text)
            self._pieces = None
        elif tag in _CODE_TAGS:
            self._code_depth -= 1

    def _text(self, text: str) -> None:
        if self._pieces is None or self._code_depth:
            return
        self._characters += len(text)
        if self._characters > _MOST_UNIT_CHARACTERS:
            self._refuse(f"units of at most {_MOST_UNIT_CHARACTERS} characters, got a longer one")
        self._pieces.append(text)

    def _entity(self, name: str, *_: object) -> None:
        self._refuse(f"no entity declarations, got one of {name!r}")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        # Of a document type in another file, which is not read.
        if not is_parameter:
            self._refuse(f"no entities but those of XML itself, got &{name};")

    def _refuse(self, rule: str) -> NoReturn:
        raise DataError(f"{self._path}, line {self._parser.CurrentLineNumber} must have {rule}")


# Neighbouring lines are often of one document: they are held out together, as a page.
_LEAST_PAGES = 1000
_MOST_LINES_A_PAGE = 100
_LICENCE = "the user's own text: see its source"
_DOMAIN = "not stated"
_TMX = (".tmx", ".tmx.gz")


def read_user_files(name: str, where: str, needed: list[str], wanted: list[str]) -> Corpus:
    """The text at `where`, in the `needed` languages and those of `wanted` that it has.

    `where` is PREFIX (for PREFIX.en or PREFIX.en.gz beside PREFIX.de ...), or a path with `{lang}`
    in place of the language, or a .tmx file. A line is a sentence; `name` is what the corpus is
    called. Raises DataError before any work where a needed side is missing or empty, or where
    sides differ in their number of lines.
    """
    if where.endswith(_TMX):
        return _tmx(name, Path(where), needed, wanted)
    sides = {language: _side(where, language) for language in dict.fromkeys([*needed, *wanted])}
    for language in needed:
        if sides[language] is None:
            raise DataError(
                f"{where} must have a side in {language}, got neither "
                f"{' nor '.join(map(str, _candidates(where, language)))}"
            )
    return side_by_side(name, {one: path for one, path in sides.items() if path is not None})


def side_by_side(name: str, paths: Mapping[str, Path]) -> Corpus:
    """A corpus of files whose lines belong together: language -> file.

    Raises DataError where a file is empty, or where two differ in their number of lines.
    """
    n_line = check_parallel(list(paths.values()))

    def rows() -> Iterator[dict[str, str]]:
        sides = zip(*map(iterate_lines, paths.values()), strict=True)
        return (dict(zip(paths, row, strict=True)) for row in sides)

    return _corpus(name, frozenset(paths), rows, n_line)


def _tmx(name: str, path: Path, needed: list[str], wanted: list[str]) -> Corpus:
    first = next(iterate_units(path, {*needed, *wanted}), None)
    if first is None:
        raise DataError(f"{path} must hold a translation unit, got none")
    for language in needed:
        if language not in first:
            raise DataError(
                f"{path} must have units in {language}, got in the first one "
                f"{', '.join(first) or 'other languages'}"
            )
    languages = frozenset(first)
    n_unit = sum(1 for _ in iterate_units(path, languages))
    return _corpus(name, languages, lambda: iterate_units(path, languages), n_unit)


def _corpus(
    name: str,
    languages: frozenset[str],
    rows: Callable[[], Iterator[dict[str, str]]],
    n_row: int,
) -> Corpus:
    rows_a_page = max(1, min(_MOST_LINES_A_PAGE, n_row // _LEAST_PAGES))

    def paragraphs() -> Iterator[Paragraph]:
        for number, row in enumerate(rows()):
            sentences = {language: [text] for language, text in row.items()}
            yield Paragraph(str(number // rows_a_page), sentences)

    return Corpus(name, _LICENCE, _DOMAIN, {}, languages, paragraphs)


def _candidates(where: str, language: str) -> list[Path]:
    if "{lang}" in where:
        return [Path(where.replace("{lang}", language))]
    return [Path(f"{where}.{language}"), Path(f"{where}.{language}.gz")]


def _side(where: str, language: str) -> Path | None:
    return next((path for path in _candidates(where, language) if path.is_file()), None)
