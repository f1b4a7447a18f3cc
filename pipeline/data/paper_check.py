"""Whether the folders that the user points to hold the paper's corpora."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.config import DataConfig, SpeechDataConfig, TaskConfig
from pipeline.data.other_pair import other_pairs
from pipeline.data.paper_sizes import DEV, TEST_SETS, TRAINING, PaperCorpus
from pipeline.data.sacrebleu_cache import is_cached
from pipeline.data.task_units import is_imported
from pipeline.errors import DataError

_TOLERANCE = 0.01
_TRAINING_TOLERANCE = 0.25  # the paper counts before its cleaning, or after: it does not say


@dataclass(frozen=True)
class _Needed:
    """A key, the path that it gives (or a set of sacrebleu's), and the corpus to be found there.

    pair: of languages, where the place is a set of sacrebleu's cache.
    """

    key: str
    place: str | None
    corpus: PaperCorpus
    pair: tuple[str, str] | None = None


def check_present(data: DataConfig, task: TaskConfig) -> None:
    """Raise DataError, naming key, path, corpus and publisher, of every corpus that is missing.

    A key that is null or empty names no corpus, so its corpus is missing too.
    """
    missing = [
        f"{one.key} ({got}): {one.corpus.name}, {one.corpus.sentences:,} sentences, "
        f"of {one.corpus.published}"
        for one in _needed(data, task)
        if (got := _got_instead(one, task)) is not None
    ]
    if missing:
        raise DataError(
            f"data.check_paper_sizes needs the paper's corpora, missing are {'; '.join(missing)}"
        )


def size_differences(task_name: str, counts: Mapping[str, Any]) -> list[str]:
    """A sentence for each set whose size is not the paper's; counts: those of a manifest."""
    found = []
    for name, size, corpus, tolerance in _sizes(task_name, counts):
        if abs(size - corpus.sentences) > tolerance * corpus.sentences:
            found.append(
                f"{name} has {size:,} sentences where the paper's {corpus.name} has "
                f"{corpus.sentences:,}: see {corpus.published}"
            )
    return found


def _needed(data: DataConfig, task: TaskConfig) -> Iterator[_Needed]:
    if task.family == "speech":
        yield from _speech_needed(data.speech)
        return
    is_cached_set = data.source == "sacrebleu"
    pair = (task.source_language, task.target_language) if is_cached_set else None
    if not is_imported(data):
        yield _Needed("data.train", data.train, TRAINING[task.name])
    yield _Needed("data.dev", data.dev, DEV["translation"], pair)
    yield _Needed("data.test", data.test, TEST_SETS["newstest14"], pair)
    for other in dict.fromkeys(one for _, one in other_pairs(data, task)):
        yield _Needed("data.test", data.test, TEST_SETS["newstest14"], other)
    for role, subset in (("LTC", "test-clean"), ("LTO", "test-other")):
        place = None if data.librispeech is None else f"{data.librispeech}/{subset}"
        yield _Needed("data.librispeech", place, TEST_SETS[role])
    yield _Needed("data.khresmoi", data.khresmoi, TEST_SETS["MED"])


def _speech_needed(speech: SpeechDataConfig) -> Iterator[_Needed]:
    lists = (("train", speech.train, TRAINING["asr"]), ("dev", speech.dev, DEV["speech"]))
    for name, places, corpus in lists:
        if not places:
            yield _Needed(f"data.speech.{name}", None, corpus)
        for place in places:
            yield _Needed(f"data.speech.{name}", place, corpus)
    yield _Needed("data.speech.test", speech.test, TEST_SETS["LTC"])
    yield _Needed("data.speech.test_other", speech.test_other, TEST_SETS["LTO"])
    yield _Needed("data.speech.ami", speech.ami, TEST_SETS["AMI"])
    yield _Needed("data.speech.common_voice", speech.common_voice, TEST_SETS["C-FR"])


def _got_instead(needed: _Needed, task: TaskConfig) -> str | None:
    """What there is instead of a corpus, in words; None where something stands in its place."""
    place = needed.place
    if place is None:
        return "got null"
    if needed.pair is not None:
        is_there = is_cached(place, needed.pair)
        languages = "-".join(needed.pair)
        return None if is_there else f"got no {place} of {languages} in the sacrebleu cache"
    return None if any(one.exists() for one in _paths(place, task)) else f"got no {place}"


def _paths(place: str, task: TaskConfig) -> list[Path]:
    """The path itself, or the source side of parallel text."""
    language = task.source_language
    texts = (
        place,
        place.replace("{lang}", language),
        f"{place}.{language}",
        f"{place}.{language}.gz",
    )
    return [Path(text) for text in texts]


def _sizes(
    task_name: str, counts: Mapping[str, Any]
) -> Iterator[tuple[str, int, PaperCorpus, float]]:
    """Set, its size as prepared, the paper's, and how far apart they may be."""
    if "test_sets" in counts:
        sizes = {role: one["rows"] for role, one in counts["test_sets"].items()}
        if "train" in counts["split"]:
            sizes["train"] = counts["split"]["train"]
    else:
        sizes = {name: one["utterances_read"] for name, one in counts.items()}
    for name, size in sizes.items():
        if name == "train":
            yield name, size, TRAINING[task_name], _TRAINING_TOLERANCE
        elif name in TEST_SETS:
            yield name, size, TEST_SETS[name], _TOLERANCE
