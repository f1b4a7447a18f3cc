"""The user's own parallel text: one file per language, plain or gzipped, or one TMX file."""

from __future__ import annotations

import glob
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pipeline.data.lines import has_byte_order_mark, iterate_lines
from pipeline.data.text.corpus import Corpus, Paragraph
from pipeline.data.text.tmx import iterate_translation_units, languages_in
from pipeline.data.text.words import count_words
from pipeline.errors import DataError
from pipeline.text_traces import Traces, traces_of, unescaped

_log = logging.getLogger(__name__)

# Two lines look misaligned if one has this many times the words of the other, and a few more.
_SUSPICIOUS_RATIO = 3
_SUSPICIOUS_ALLOWANCE_WORDS = 5
# Neighbouring lines may belong to one document and are held out together, as a page.
_MIN_PAGES = 1000
_MAX_LINES_PER_PAGE = 100
_LICENCE = "the user's own text: see its source"
_DOMAIN = "not stated"
_TMX = (".tmx", ".tmx.gz")
# A memory has a further language if this share of its units has it. The other units are then left
# out of the sets that need it, and counted.
_FREQUENT = 0.9
_MOST_NAMES = 10  # of files in a message
_DOCUMENTS = "docid"  # stands in the place of the language, as in sacrebleu's cache


def read_user_files(name: str, where: str, needed: list[str], wanted: list[str]) -> Corpus:
    """Read the text at `where` in the `needed` languages, and in `wanted` languages if it has them.

    `where` is a prefix (PREFIX.en or PREFIX.en.gz, PREFIX.de ...), a path with `{lang}` in place of
    the language, or a TMX file. Each line is a sentence. PREFIX.docid or PREFIX.docid.gz (or the
    path with `docid` in place of the language) names the document of each line. Raises DataError,
    before anything is yielded, if a needed language is missing or empty, if files differ in their
    number of lines, or if a line has no document.
    """
    if where.endswith(_TMX):
        return _read_tmx(name, Path(where), needed, wanted)
    paths = {language: _find(where, language) for language in dict.fromkeys([*needed, *wanted])}
    for language in needed:
        if paths[language] is None:
            if (ending := _ending(where, needed)) is not None:
                prefix = where.removesuffix(ending)
                raise DataError(
                    f"{where}: the file of one language (found {', '.join(_similar(prefix))}). "
                    f"Leave out {ending}, since {prefix} stands for the files of all languages."
                )
            found = ", ".join(_similar(where)) or "nothing"
            raise DataError(
                f"{where}: no text in {language} (found {found}). "
                f"Provide {' or '.join(map(str, _candidates(where, language)))}, since a language "
                f"has the same code in the task and in the names of files."
            )
    present = {language: path for language, path in paths.items() if path is not None}
    return read_side_by_side(name, present, _find(where, _DOCUMENTS))


def is_empty(where: str, languages: Iterable[str]) -> bool:
    """Tell whether the text at `where` exists, and has no line or unit in any language."""
    if where.endswith(_TMX):
        return next(iterate_translation_units(Path(where), ()), None) is None
    found = [path for language in languages if (path := _find(where, language))]
    return bool(found) and all(next(iterate_lines(path), None) is None for path in found)


def read_side_by_side(name: str, paths: Mapping[str, Path], documents: Path | None) -> Corpus:
    """Read files whose lines correspond to each other: language -> file.

    The lines of `documents` name the documents of the sentences, if they are known. Raises
    DataError if a file is empty, if two differ in their number of lines, or if a line of
    `documents` is blank.
    """
    n_line, traces = check_parallel(paths)
    if documents is not None:
        _check_documents(documents, next(iter(paths.values())), n_line)

    def rows() -> Iterator[dict[str, str]]:
        sides = zip(*map(iterate_lines, paths.values()), strict=True)
        return (dict(zip(paths, row, strict=True)) for row in sides)

    n_mark = sum(map(has_byte_order_mark, paths.values()))
    counts = _reported(traces, {language: str(path) for language, path in paths.items()})
    if n_mark:
        counts["byte_order_marks_removed"] = n_mark
    return _corpus(name, frozenset(paths), rows, n_line, documents, counts)


def _reported(traces: Mapping[str, Traces], names: Mapping[str, str]) -> dict[str, int]:
    """Log what preprocessing left in the text of each language, and return the counts."""
    counts: dict[str, int] = {}
    for language, found in traces.items():
        counts |= {f"texts_{trace}_{language}": n for trace, n in found.counts().items()}
        for warning in replace(found, escaped=0).warnings(names[language]):
            _log.warning("%s", warning)
        if found.escaped:
            _log.warning(
                "%s: Moses' escapes, such as &apos;, are undone in %d of %d texts",
                *(names[language], found.escaped, found.texts),
            )
    return counts


def _check_documents(documents: Path, text: Path, n_line: int) -> None:
    n_document = 0
    for n_document, name in enumerate(iterate_lines(documents), 1):
        if not name.strip():
            raise DataError(
                f"{documents}, line {n_document}: names no document. Complete the file, or remove "
                f"it if the documents are not known."
            )
    if n_document != n_line:
        raise DataError(
            f"{documents}: must name the document of each line of {text} (got {n_document} lines "
            f"for {n_line}). Correct the file, or remove it if the documents are not known."
        )


def check_parallel(paths: Mapping[str, Path]) -> tuple[int, dict[str, Traces]]:
    """Check files that must correspond line by line: language -> file.

    Returns the number of lines, and language -> what preprocessing left in them. Raises DataError
    if a file is empty, or if two differ in their number of lines; the message has both counts and
    the first line that looks misaligned.
    """
    traces = {language: traces_of(iterate_lines(path)) for language, path in paths.items()}
    first, n_line = next((paths[language], found.texts) for language, found in traces.items())
    for language, path in paths.items():
        count = traces[language].texts
        if not count:
            raise DataError(f"{path}: the file is empty. Each line must be a sentence.")
        if count != n_line:
            raise DataError(
                f"{first} and {path}: must have equally many lines (got {n_line} and {count}). "
                f"{_first_suspicious_line(first, path)}"
            )
    return n_line, traces


def _first_suspicious_line(first: Path, second: Path) -> str:
    first_lines, second_lines = iterate_lines(first), iterate_lines(second)
    number = 0
    while True:
        number += 1
        first_text, second_text = next(first_lines, None), next(second_lines, None)
        if first_text is None or second_text is None:
            text = first_text or second_text or ""
            return f"Line {number} has no counterpart ({text[:40]!r})."
        n_fewer, n_more = sorted(map(count_words, (first_text, second_text)))
        is_blank = n_fewer == 0 < n_more
        if is_blank or n_more > _SUSPICIOUS_RATIO * n_fewer + _SUSPICIOUS_ALLOWANCE_WORDS:
            return (
                f"Line {number} is the first suspicious one ({first_text[:40]!r} and "
                f"{second_text[:40]!r})."
            )


def _read_tmx(name: str, path: Path, needed: list[str], wanted: list[str]) -> Corpus:
    n_unit = n_usable = 0
    n_with: Counter[str] = Counter()
    traces: dict[str, Traces] = {}
    for unit in iterate_translation_units(path, {*needed, *wanted}):
        n_unit += 1
        if unit.keys() >= {*needed}:
            n_usable += 1
            n_with.update(unit.keys())
        for language, text in unit.items():
            traces.setdefault(language, Traces()).add(text)
    if not n_unit:
        raise DataError(f"{path}: no translation unit. Export the memory again.")
    if not n_usable:
        raise DataError(
            f"{path}: no translation unit has text in {' and '.join(needed)} (the file has "
            f"{', '.join(languages_in(path)) or 'no text'}). Give a memory of the task's languages."
        )
    frequent = (language for language in n_with if n_with[language] >= _FREQUENT * n_usable)
    languages = frozenset({*needed, *frequent})
    traces = {language: traces[language] for language in sorted(languages)}
    counts = _reported(traces, {language: f"{path}, {language}" for language in traces})
    corpus = _corpus(
        name, languages, lambda: iterate_translation_units(path, languages), n_unit, None, counts
    )
    rare = {
        language: f"{language} is in {n_with[language]} of {n_usable} units with "
        f"{' and '.join(needed)}; nine in ten are needed"
        for language in wanted
        if language not in languages
    }
    return replace(corpus, too_rare=rare)


def _corpus(
    name: str,
    languages: frozenset[str],
    rows: Callable[[], Iterator[dict[str, str]]],
    n_row: int,
    documents: Path | None,
    counts: Mapping[str, int],
) -> Corpus:
    rows_per_page = max(1, min(_MAX_LINES_PER_PAGE, n_row // _MIN_PAGES))

    def pages() -> Iterator[str]:
        if documents is None:
            return (str(number // rows_per_page) for number in range(n_row))
        return (line.strip() for line in iterate_lines(documents))

    def paragraphs() -> Iterator[Paragraph]:
        for page, row in zip(pages(), rows(), strict=True):
            yield Paragraph(page, {language: [unescaped(text)] for language, text in row.items()})

    has_documents = documents is not None
    return Corpus(name, _LICENCE, _DOMAIN, {}, languages, paragraphs, has_documents, counts)


def _candidates(where: str, language: str) -> list[Path]:
    if "{lang}" in where:
        return [Path(where.replace("{lang}", language))]
    return [Path(f"{where}.{language}"), Path(f"{where}.{language}.gz")]


def _similar(where: str) -> list[str]:
    """Return the names of files that begin like `where`, to show which codes there are."""
    begin = Path(where.partition("{lang}")[0] + "x")  # so that a folder is one, and not a name
    if not begin.parent.is_dir():
        return []
    paths = sorted(begin.parent.glob(f"{glob.escape(begin.name[:-1])}*"))
    return [path.name for path in paths[:_MOST_NAMES]]


def _ending(where: str, languages: list[str]) -> str | None:
    """Return the code, with .gz, that ends the path of a file; None if there is no such file."""
    endings = [f".{language}{gz}" for language in languages for gz in ("", ".gz")]
    is_file = "{lang}" not in where and Path(where).is_file()
    return next((ending for ending in endings if is_file and where.endswith(ending)), None)


def _find(where: str, language: str) -> Path | None:
    return next((path for path in _candidates(where, language) if path.is_file()), None)
