"""Reference transcripts of the user's own copy of LibriSpeech: read English without punctuation."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from pipeline.data.lines import iterate_lines
from pipeline.data.text.corpus import Corpus, Paragraph
from pipeline.data.text.files import side_by_side
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig, TaskConfig, TestSetConfig

_PARTS = ("dev", "test")


def read_khresmoi(folder: Path, languages: Sequence[str]) -> Corpus:
    """Its dev and test parts as one corpus: khresmoi-summary-{part}.{language}, a sentence a line.

    Raises DataError where a file is missing or empty, or where sides differ in their lines.
    """
    parts = []
    for part in _PARTS:
        sides = {one: folder / f"khresmoi-summary-{part}.{one}" for one in languages}
        for path in sides.values():
            if not path.is_file():
                raise DataError(f"{path} must exist, a side of Khresmoi-Summary, got no such file")
        parts.append(side_by_side(f"Khresmoi-Summary, {part}", sides))

    def paragraphs() -> Iterator[Paragraph]:
        return chain.from_iterable(one.paragraphs() for one in parts)

    return Corpus(
        "Khresmoi-Summary, dev and test",
        "CC BY-NC: see its publisher",
        "medical",
        {},
        frozenset(languages),
        paragraphs,
    )


def is_cached(name: str, pair: tuple[str, str]) -> bool:
    """Whether the cache holds source and reference of a test set such as `wmt14`."""
    return _sides(name, pair) is not None


def read_sacrebleu(name: str, pair: tuple[str, str]) -> Corpus:
    """Source and reference of a test set such as `wmt14`, from SACREBLEU or ~/.sacrebleu.

    Of several references the first is taken. Raises DataError where the cache lacks the set, with
    the command that fetches it.
    """
    source_language, target_language = pair
    sides = _sides(name, pair)
    if sides is None:
        stem = _stem(name, pair)
        raise DataError(
            f"the sacrebleu cache must hold {stem}.src and {stem}.ref, got no such files: run "
            f"{fetching_command(name, pair)}"
        )
    source, reference = sides
    return side_by_side(f"sacrebleu {name}", {source_language: source, target_language: reference})


def fetching_command(name: str, pair: tuple[str, str]) -> str:
    """What puts a test set into the cache."""
    return f"sacrebleu -t {name} -l {'-'.join(pair)} --echo src ref"


def _sides(name: str, pair: tuple[str, str]) -> tuple[Path, Path] | None:
    """The files of source and first reference; None where one of them is missing."""
    folder = Path(os.environ.get("SACREBLEU") or Path.home() / ".sacrebleu") / name
    stem = _stem(name, pair)
    source = folder / f"{stem}.src"
    references = [folder / f"{stem}.ref", *sorted(folder.glob(f"{stem}.ref-*"))]
    reference = next((path for path in references if path.is_file()), None)
    return (source, reference) if source.is_file() and reference is not None else None


def _stem(name: str, pair: tuple[str, str]) -> str:
    return f"{name.replace('/', '_')}.{'-'.join(pair)}"


Pair = tuple[str, str]


def other_pairs(data: DataConfig, task: TaskConfig) -> Iterator[tuple[str, Pair]]:
    """Each role whose side is of another pair of sacrebleu's `data.test`, with that pair."""
    for role, test_set in task.test_sets.items():
        language = _lacking(test_set, (task.source_language, task.target_language))
        if data.source == "sacrebleu" and test_set.kind == "other_side" and language is not None:
            yield str(role), (task.source_language, language)


def read_other_pair(data: DataConfig, pair: Pair) -> Corpus | str:
    """The edition of `data.test` for a pair; or the reason why it is absent, in words."""
    assert data.test is not None  # the configuration was checked
    if is_cached(data.test, pair):
        return read_sacrebleu(data.test, pair)
    return (
        f"sacrebleu's cache holds no {data.test} of {'-'.join(pair)}: "
        f"run {fetching_command(data.test, pair)}"
    )


def _lacking(test_set: TestSetConfig, pair: Pair) -> str | None:
    sides = (test_set.language, test_set.reference_language)
    lacking = [one for one in sides if one is not None and one not in pair]
    return lacking[0] if lacking else None


def read_transcripts(folder: Path, subset: str) -> Corpus:
    """The transcripts below {folder}/{subset}, in the order of their files, in lower case.

    Lines of `{speaker}-{chapter}.trans.txt` are an utterance id, a space, and capital letters.
    Raises DataError where there is no such file, or where a line is not of that form.
    """
    root = folder / subset
    files = sorted(root.glob("*/*/*.trans.txt"))
    if not files:
        raise DataError(
            f"{root} must hold transcripts as speaker/chapter/*.trans.txt (data.librispeech), "
            f"got none"
        )
    return Corpus(
        name=f"LibriSpeech {subset}, transcripts",
        licence="CC-BY-4.0",
        domain="spoken, story books",
        packages={},
        languages=frozenset({"en"}),
        paragraphs=lambda: _utterances(files),
    )


def chapter_transcripts(path: Path) -> Iterator[tuple[str, str]]:
    """Utterance id and words of each line of a .trans.txt file; DataError for any other line."""
    chapter = path.name.removesuffix(".trans.txt")
    for number, line in enumerate(iterate_lines(path), 1):
        utterance, _, text = line.partition(" ")
        named = utterance.startswith(f"{chapter}-") and "/" not in utterance
        if not named or not text.strip():
            raise DataError(
                f"{path}, line {number} must be an utterance id of {chapter} and its words, "
                f"got {line[:60]!r}"
            )
        yield utterance, text.strip()


def _utterances(files: list[Path]) -> Iterator[Paragraph]:
    for path in files:
        chapter = path.name.removesuffix(".trans.txt")
        for _, text in chapter_transcripts(path):
            yield Paragraph(chapter, {"en": [text.lower()]})
