"""The user's own parallel text: a file a side, plain or gzipped, or one TMX file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pipeline.data.corpus import Corpus, Paragraph
from pipeline.data.text import check_parallel, iterate_lines
from pipeline.data.tmx import iterate_units
from pipeline.errors import DataError

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
