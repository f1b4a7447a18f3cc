"""Published text corpora that the user has: Khresmoi, sacrebleu's test sets, LibriSpeech."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from pipeline.data.folders import matching
from pipeline.data.lines import iterate_lines
from pipeline.data.text.corpus import Corpus, Paragraph
from pipeline.data.text.user_files import read_side_by_side
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig, TaskConfig, TestSetConfig

Pair = tuple[str, str]
_KHRESMOI_PARTS = ("dev", "test")


def read_khresmoi(folder: Path, languages: Sequence[str]) -> Corpus:
    """Read the dev and test parts of Khresmoi-Summary as one corpus.

    The files are khresmoi-summary-{part}.{language}, with one sentence per line. Raises DataError
    if a file is missing or empty, or if files differ in their number of lines.
    """
    parts = []
    for part in _KHRESMOI_PARTS:
        paths = {language: folder / f"khresmoi-summary-{part}.{language}" for language in languages}
        for path in paths.values():
            if not path.is_file():
                raise DataError(
                    f"{path}: no such file. Set data.khresmoi to the folder of Khresmoi-Summary."
                )
        parts.append(read_side_by_side(f"Khresmoi-Summary, {part}", paths, None))

    def paragraphs() -> Iterator[Paragraph]:
        return chain.from_iterable(part.paragraphs() for part in parts)

    return Corpus(
        "Khresmoi-Summary, dev and test",
        "CC BY-NC: see its publisher",
        "medical",
        {},
        frozenset(languages),
        paragraphs,
        counts=sum((Counter(part.counts) for part in parts), Counter()),
    )


# Test sets of WMT in the cache of sacrebleu


def is_cached(name: str, pair: Pair) -> bool:
    """Tell whether sacrebleu's cache holds a test set such as `wmt14` for a language pair."""
    return _cached_files(name, pair) is not None


def read_sacrebleu(name: str, pair: Pair) -> Corpus:
    """Read source and first reference of a test set such as `wmt14` from sacrebleu's cache.

    The cache is $SACREBLEU or ~/.sacrebleu. It also holds the documents of most sets. Raises
    DataError, with the command that fetches the set, if it is not there.
    """
    paths = _cached_files(name, pair)
    if paths is None:
        raise DataError(
            f"{_cache() / name}: no {_stem(name, pair)}.src and .ref. Run "
            f"{fetching_command(name, pair)}."
        )
    documents = _cache() / name / f"{_stem(name, pair)}.docid"
    return read_side_by_side(
        f"sacrebleu {name} {'-'.join(pair)}",
        dict(zip(pair, paths, strict=True)),
        documents if documents.is_file() else None,
    )


def fetching_command(name: str, pair: Pair) -> str:
    """Return the command that puts a test set into sacrebleu's cache."""
    return f"sacrebleu -t {name} -l {'-'.join(pair)} --echo src ref"


def other_pairs(data: DataConfig, task: TaskConfig) -> Iterator[tuple[str, Pair]]:
    """Yield the test sets whose language only another pair of sacrebleu's `data.test` has."""
    for name, test_set in task.test_sets.items():
        language = _foreign_language(test_set, (task.source_language, task.target_language))
        if data.source == "sacrebleu" and test_set.kind == "other_side" and language is not None:
            yield str(name), (task.source_language, language)


def read_other_pair(data: DataConfig, pair: Pair) -> Corpus | str:
    """Read `data.test` of another language pair, or return the reason why it is absent."""
    assert data.test is not None  # ensured by the checks of the configuration
    if is_cached(data.test, pair):
        return read_sacrebleu(data.test, pair)
    return (
        f"sacrebleu's cache holds no {data.test} of {'-'.join(pair)}: "
        f"run {fetching_command(data.test, pair)}"
    )


def _foreign_language(test_set: TestSetConfig, pair: Pair) -> str | None:
    for language in (test_set.language, test_set.reference_language):
        if language is not None and language not in pair:
            return language
    return None


def _cached_files(name: str, pair: Pair) -> tuple[Path, Path] | None:
    """Return the files of source and first reference; None if one of them is missing."""
    folder, stem = _cache() / name, _stem(name, pair)
    source = folder / f"{stem}.src"
    references = [folder / f"{stem}.ref", *sorted(folder.glob(f"{stem}.ref-*"))]
    reference = next((path for path in references if path.is_file()), None)
    return (source, reference) if source.is_file() and reference is not None else None


def _cache() -> Path:
    return Path(os.environ.get("SACREBLEU") or Path.home() / ".sacrebleu")


def _stem(name: str, pair: Pair) -> str:
    return f"{name.replace('/', '_')}.{'-'.join(pair)}"


# Transcripts of LibriSpeech, which is read English; they have no punctuation


def read_transcripts(folder: Path, subset: str) -> Corpus:
    """Read the transcripts below {folder}/{subset} in lower case, in the order of their files.

    Raises DataError if there is none, or if one is malformed.
    """
    root = folder / subset
    paths = matching(root, "*/*/*.trans.txt")
    if not paths:
        raise DataError(
            f"{root}: no transcripts (speaker/chapter/*.trans.txt). Set data.librispeech to a "
            f"folder with parts of LibriSpeech."
        )
    return Corpus(
        name=f"LibriSpeech {subset}, transcripts",
        licence="CC-BY-4.0",
        domain="spoken, story books",
        packages={},
        languages=frozenset({"en"}),
        paragraphs=lambda: _transcript_paragraphs(paths),
        has_documents=True,
    )


def iterate_transcripts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield utterance id and words of each line of a .trans.txt file.

    Raises DataError for a line without an utterance id of the chapter, or without words.
    """
    chapter = path.name.removesuffix(".trans.txt")
    for number, line in enumerate(iterate_lines(path), 1):
        utterance, _, text = line.partition(" ")
        is_of_chapter = utterance.startswith(f"{chapter}-") and "/" not in utterance
        if not is_of_chapter or not text.strip():
            raise DataError(
                f"{path}, line {number}: must be an utterance id of {chapter} and its words "
                f"(got {line[:60]!r}). Unpack LibriSpeech again."
            )
        yield utterance, text.strip()


def _transcript_paragraphs(paths: list[Path]) -> Iterator[Paragraph]:
    for path in paths:
        chapter = path.name.removesuffix(".trans.txt")
        for _, text in iterate_transcripts(path):
            yield Paragraph(chapter, {"en": [text.lower()]})
