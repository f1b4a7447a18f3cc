"""Rows of the test and dev sets of a translation task."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.data.subwords import SubwordModel
from pipeline.data.text.corpus import AlignedSentence, Corpus
from pipeline.run.settings import TaskConfig, TestSetConfig, implementation
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

_FINAL_PUNCTUATION = frozenset(".!?…:;。")
_TYPO_SHARE = 0.1
_MIN_KEPT_SHARE, _MAX_KEPT_SHARE = 0.25, 0.75


@dataclass(frozen=True)
class Row:
    """One sentence of a set. `reference` and its subwords are None without a translation.

    `group`: the document that the sentence is from; None if documents are not known. `original`:
    the sentence that this one is or was made from, which other sets may share.
    """

    id: int
    source: str
    reference: str | None
    source_pieces: list[str]
    reference_pieces: list[str] | None
    group: str | None
    original: str | None


@dataclass(frozen=True)
class HeldOutText:
    """The held-out text from which sets are made. `models`: language -> subword model.

    `name` is that of no other text of the task's test sets, and the same in other tasks that hold
    the same sentences out. `has_documents`: the page of a sentence is its document.
    """

    name: str
    sentences: Sequence[AlignedSentence]
    has_documents: bool
    task: TaskConfig
    models: Mapping[str, SubwordModel]
    seed: int


def make_rows(test_set: TestSetConfig, text: HeldOutText) -> list[Row]:
    """Make the rows of a test set by its kind, from all sentences that can be used for it."""
    kind = KINDS_OF_TEST_SETS["translation", test_set.kind]
    assert kind.rows is not None
    make = implementation(kind.rows, f"rows of kind {kind.name}")
    return list(make(test_set, text))


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a set with one JSON object per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def count_groups(rows: Iterable[Row]) -> int | None:
    """Return the number of groups of a set; None if they are not known."""
    groups = {row.group for row in rows}
    return None if None in groups else len(groups)


def languages_needed(task: TaskConfig) -> set[str]:
    """Return the languages of the task and of its test sets."""
    languages = {task.source_language, task.target_language}
    for test_set in task.test_sets.values():
        sides = (test_set.language, test_set.reference_language)
        languages.update(language for language in sides if language is not None)
    return languages


def reason_absent(test_set: TestSetConfig, corpus: Corpus) -> str | None:
    """Say why a set cannot be made from sentences of a corpus; None if it can."""
    sides = {test_set.language, test_set.reference_language} - corpus.languages - {None}
    if not sides:
        return None
    lacking = min(map(str, sides))
    if lacking in corpus.too_rare:
        return f"{corpus.name}: {corpus.too_rare[lacking]}"
    return f"{corpus.name} has no side in {lacking}"


# The functions that the registry of kinds names. Each makes the rows of a set from sentences.


def task_rows(_: TestSetConfig | None, text: HeldOutText) -> Iterator[Row]:
    """Yield rows with source and reference in the languages of the task."""
    return _rows(text, text.task.source_language, text.task.target_language)


def other_side_rows(test_set: TestSetConfig, text: HeldOutText) -> Iterator[Row]:
    """Yield rows with another language as source, and perhaps as reference."""
    assert test_set.language is not None  # ensured by the checks of the configuration
    reference_language = test_set.reference_language or text.task.target_language
    return _rows(text, test_set.language, reference_language)


def permuted_rows(_: TestSetConfig, text: HeldOutText) -> Iterator[Row]:
    """Yield rows with the subwords of the source permuted, without references."""
    number = 0
    model = text.models[text.task.source_language]
    for row in task_rows(None, text):
        subwords = permute(row.source_pieces, text.seed, row.id)
        if subwords is not None:
            source = model.text(subwords)
            yield replace(
                row,
                id=number,
                source=source,
                reference=None,
                source_pieces=subwords,
                reference_pieces=None,
            )
            number += 1


def typo_rows(_: TestSetConfig, text: HeldOutText) -> Iterator[Row]:
    """Yield rows with typing errors in the source; the reference stays valid."""
    return _changed_rows(misspell, text)


def truncated_rows(_: TestSetConfig, text: HeldOutText) -> Iterator[Row]:
    """Yield rows with the source cut short, without references."""
    rows = _changed_rows(cut_short, text)
    return (replace(row, reference=None, reference_pieces=None) for row in rows)


def _rows(text: HeldOutText, source_language: str, reference_language: str) -> Iterator[Row]:
    """Yield rows of two languages; the reference is None if a sentence lacks its language."""
    models = text.models
    for number, sentence in enumerate(text.sentences):
        source = sentence.text[source_language]
        reference = sentence.text.get(reference_language)
        subwords = None if reference is None else models[reference_language].subwords(reference)
        source_subwords = models[source_language].subwords(source)
        group = f"{text.name}:{sentence.page}" if text.has_documents else None
        original = f"{text.name}:{number}"
        yield Row(number, source, reference, source_subwords, subwords, group, original)


def _changed_rows(
    change: Callable[[str, int, int], str | None], text: HeldOutText
) -> Iterator[Row]:
    """Yield rows with a changed source; sentences that cannot be changed are left out."""
    number = 0
    model = text.models[text.task.source_language]
    for row in task_rows(None, text):
        source = change(row.source, text.seed, row.id)
        if source is not None:
            subwords = model.subwords(source)
            yield replace(row, id=number, source=source, source_pieces=subwords)
            number += 1


# Distortions. Each depends on the seed, the number of the sentence and its content only.


def permute(subwords: Sequence[str], seed: int, sentence: int) -> list[str] | None:
    """Permute the subwords of a sentence; None if there is no other order.

    The order always differs from the given one. Punctuation at the end stays in place. (Paper,
    section 5: "PRM".)
    """
    end = _end_of_text(subwords)
    original, tail = list(subwords[:end]), list(subwords[end:])
    if len(set(original)) < 2:
        return None
    generator = _generator(seed, sentence, *subwords)
    permuted = list(original)
    while permuted == original:
        generator.shuffle(permuted)
    return permuted + tail


def misspell(text: str, seed: int, sentence: int) -> str | None:
    """Drop, double or swap about one letter in ten; None if there is no letter.

    At least one letter is changed. White space, digits and punctuation stay.
    """
    letters = [position for position, character in enumerate(text) if character.isalpha()]
    if not letters:
        return None
    generator = _generator(seed, sentence, text)
    n_typo = max(1, round(_TYPO_SHARE * len(letters)))
    misspelt = text
    while misspelt == text or not misspelt.strip():
        misspelt = _with_typos(text, generator.sample(letters, n_typo), generator)
    return misspelt


def cut_short(text: str, seed: int, sentence: int) -> str | None:
    """Keep between a quarter and three quarters of the words; None if there is only one."""
    words = text.split()
    if len(words) < 2:
        return None
    share = _generator(seed, sentence, text).uniform(_MIN_KEPT_SHARE, _MAX_KEPT_SHARE)
    return " ".join(words[: max(1, min(len(words) - 1, round(share * len(words))))])


def _with_typos(text: str, positions: Sequence[int], generator: random.Random) -> str:
    characters = list(text)
    # From right to left, so that the positions further left stay valid.
    for position in sorted(positions, reverse=True):
        edit = generator.choice(("drop", "double", "swap"))
        following = characters[position + 1 : position + 2]
        if edit == "drop":
            del characters[position]
        elif edit == "swap" and following and following[0].isalpha():
            characters[position : position + 2] = [*following, characters[position]]
        else:
            characters.insert(position, characters[position])
    return "".join(characters)


def _generator(seed: int, sentence: int, *content: str) -> random.Random:
    # Python does not guarantee that its own seeding from sequences stays the same.
    key = hashlib.sha256("\n".join([str(seed), str(sentence), *content]).encode()).digest()
    return random.Random(int.from_bytes(key))


def _end_of_text(subwords: Sequence[str]) -> int:
    """Return the number of subwords before the punctuation that closes the sentence."""
    end = len(subwords)
    while end and subwords[end - 1].removeprefix("▁") in _FINAL_PUNCTUATION:
        end -= 1
    return end
