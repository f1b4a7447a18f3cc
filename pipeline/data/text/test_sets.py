"""The test and dev sets of a task: rows of text and pieces, each set made by its kind."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.data.subwords import SubwordModel
from pipeline.data.text.corpus import AlignedSentence
from pipeline.errors import ConfigError, DataError
from pipeline.run.settings import TaskConfig, TestSetConfig

_FINAL_PUNCTUATION = frozenset(".!?…:;。")
_TYPO_SHARE = 0.1
_LEAST_KEPT_SHARE, _MOST_KEPT_SHARE = 0.25, 0.75


def permute(pieces: Sequence[str], seed: int, sentence: int) -> list[str] | None:
    """[token]: the sub-word pieces of a sentence in another order; None where there is no other.

    The order depends on `seed`, the number of the sentence and its pieces, and always differs from
    the given one. Punctuation at the end stays where it is. (Paper, section 5: 'PRM'.)
    """
    end = _end_of_text(pieces)
    original, tail = list(pieces[:end]), list(pieces[end:])
    if len(set(original)) < 2:
        return None
    chance = _chance(seed, sentence, *pieces)
    permuted = list(original)
    while permuted == original:
        chance.shuffle(permuted)
    return permuted + tail


def misspell(text: str, seed: int, sentence: int) -> str | None:
    """The text with typing errors: about one letter in ten dropped, doubled or swapped.

    At least one letter of every text is changed; None where none can be. White space, digits and
    punctuation stay. Depends on `seed`, the number of the sentence and its text.
    """
    places = [place for place, character in enumerate(text) if character.isalpha()]
    if not places:
        return None
    chance = _chance(seed, sentence, text)
    n_typo = max(1, round(_TYPO_SHARE * len(places)))
    misspelt = text
    while misspelt == text or not misspelt.strip():
        misspelt = _with_typos(text, chance.sample(places, n_typo), chance)
    return misspelt


def cut_short(text: str, seed: int, sentence: int) -> str | None:
    """The first words of a text, between a quarter and three quarters; None where it has only one.

    How many depends on `seed`, the number of the sentence and its text.
    """
    words = text.split()
    if len(words) < 2:
        return None
    share = _chance(seed, sentence, text).uniform(_LEAST_KEPT_SHARE, _MOST_KEPT_SHARE)
    return " ".join(words[: max(1, min(len(words) - 1, round(share * len(words))))])


def _with_typos(text: str, places: Sequence[int], chance: random.Random) -> str:
    characters = list(text)
    # From the right, so that places further left stay where they are.
    for place in sorted(places, reverse=True):
        edit = chance.choice(("drop", "double", "swap"))
        following = characters[place + 1 : place + 2]
        if edit == "drop":
            del characters[place]
        elif edit == "swap" and following and following[0].isalpha():
            characters[place : place + 2] = [*following, characters[place]]
        else:
            characters.insert(place, characters[place])
    return "".join(characters)


def _chance(seed: int, sentence: int, *content: str) -> random.Random:
    # Hashed, since Python's own seeding of sequences is not promised to stay the same.
    key = hashlib.sha256("\n".join([str(seed), str(sentence), *content]).encode()).digest()
    return random.Random(int.from_bytes(key))


def _end_of_text(pieces: Sequence[str]) -> int:
    """Number of pieces before the punctuation that closes the sentence."""
    end = len(pieces)
    while end and pieces[end - 1].removeprefix("▁") in _FINAL_PUNCTUATION:
        end -= 1
    return end


@dataclass(frozen=True)
class Row:
    """One sentence of a set; `reference` and its pieces are None where there is no translation."""

    id: int
    source: str
    reference: str | None
    source_pieces: list[str]
    reference_pieces: list[str] | None


@dataclass(frozen=True)
class HeldOutText:
    """What a set is made from: sentences apart from training, the task, its units, the seed.

    `units`: language -> what cuts its text.
    """

    sentences: Sequence[AlignedSentence]
    task: TaskConfig
    units: Mapping[str, SubwordModel]
    seed: int


def languages_needed(task: TaskConfig) -> set[str]:
    """The languages that the sides and the test sets of a task are in.

    Raises ConfigError where a test set that is another language's side names no language.
    """
    languages = {task.source_language, task.target_language}
    for role, test_set in task.test_sets.items():
        sides = (test_set.language, test_set.reference_language)
        languages.update(side for side in sides if side is not None)
        if test_set.kind == "other_side" and test_set.language is None:
            raise ConfigError(
                f"task.test_sets.{role}.language must be given for kind other_side, got null"
            )
    return languages


def make_set(role: str, test_set: TestSetConfig, held_out: HeldOutText) -> list[Row]:
    """The rows of one test set; DataError where no sentence is left."""
    rows = list(_KINDS[test_set.kind](test_set, held_out))
    if not rows:
        raise DataError(
            f"test set {role} ({test_set.kind}) must hold a sentence, got none of "
            f"{len(held_out.sentences)} sentences"
        )
    return rows


def why_absent(test_set: TestSetConfig, languages: frozenset[str], corpus: str) -> str | None:
    """Why a set cannot be made of sentences in `languages`; None: it can."""
    lacking = {test_set.language, test_set.reference_language} - languages - {None}
    return f"{corpus} has no side in {sorted(map(str, lacking))[0]}" if lacking else None


def parallel_rows(
    held_out: HeldOutText, source_language: str, reference_language: str
) -> Iterator[Row]:
    """Rows with one side as source and another as reference, which is None where it is missing."""
    units = held_out.units
    for number, sentence in enumerate(held_out.sentences):
        source = sentence.text[source_language]
        reference = sentence.text.get(reference_language)
        pieces = None if reference is None else units[reference_language].subwords(reference)
        yield Row(number, source, reference, units[source_language].subwords(source), pieces)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write a set, one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def in_task_languages(held_out: HeldOutText) -> Iterator[Row]:
    """Rows with source and reference in the languages of the task."""
    task = held_out.task
    return parallel_rows(held_out, task.source_language, task.target_language)


def _as_it_is(_: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    return in_task_languages(held_out)


def _other_side(test_set: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    assert test_set.language is not None  # languages_needed has checked it
    reference_language = test_set.reference_language or held_out.task.target_language
    return parallel_rows(held_out, test_set.language, reference_language)


def _permuted(_: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    number = 0
    units = held_out.units[held_out.task.source_language]
    for row in in_task_languages(held_out):
        pieces = permute(row.source_pieces, held_out.seed, row.id)
        if pieces is not None:
            yield Row(number, units.text(pieces), None, pieces, None)
            number += 1


def _typos(_: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    # What was meant is still there: the translation of the clean text is the reference.
    return _changed(misspell, held_out, keep_reference=True)


def _truncated(_: TestSetConfig, held_out: HeldOutText) -> Iterator[Row]:
    return _changed(cut_short, held_out, keep_reference=False)


def _changed(
    change: Callable[[str, int, int], str | None], held_out: HeldOutText, *, keep_reference: bool
) -> Iterator[Row]:
    """Rows with another source text; those that cannot be changed are left out."""
    number = 0
    units = held_out.units[held_out.task.source_language]
    for row in in_task_languages(held_out):
        source = change(row.source, held_out.seed, row.id)
        if source is not None:
            pieces = units.subwords(source)
            changed = replace(row, id=number, source=source, source_pieces=pieces)
            yield (
                changed
                if keep_reference
                else replace(changed, reference=None, reference_pieces=None)
            )
            number += 1


_KINDS: dict[str, Callable[[TestSetConfig, HeldOutText], Iterator[Row]]] = {
    "held_out": _as_it_is,
    "permuted": _permuted,
    "typos": _typos,
    "truncated": _truncated,
    "other_side": _other_side,
    "debian_reference": _as_it_is,
    "spoken": _as_it_is,
    "files": _as_it_is,
}
