"""Whether the folders that the user points to hold the paper's corpora."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.data.task_subwords import is_imported
from pipeline.data.text.published_corpora import is_cached, other_pairs
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig, SpeechDataConfig, TaskConfig


@dataclass(frozen=True)
class PaperCorpus:
    """sentences (or utterances); words: mean of one, by language; published: by whom, and where."""

    name: str
    sentences: int
    words: dict[str, float] = field(default_factory=dict)
    published: str = ""


_WMT = "the Conference on Machine Translation, statmt.org"
_OPENSLR_12 = "OpenSLR, openslr.org/12"

TRAINING = {
    "nmt_ende": PaperCorpus("WMT'17 EN-DE", 4_500_000, {"en": 26.2, "de": 24.8}, f"{_WMT}/wmt17"),
    "nmt_enfr": PaperCorpus("WMT'14 EN-FR", 40_800_000, {"en": 29.2, "fr": 33.5}, f"{_WMT}/wmt14"),
    "asr": PaperCorpus("LibriSpeech, 960 hours", 281_200, {"en": 33.4}, _OPENSLR_12),
}
# By family. The paper names none: fairseq's examples/scaling_nmt, and LibriSpeech's own parts.
DEV = {
    "translation": PaperCorpus("newstest2013", 3000, published=f"{_WMT}/wmt13"),
    "speech": PaperCorpus("LibriSpeech dev-clean and dev-other", 5567, published=_OPENSLR_12),
}
# By the paper's name of the role; sets that are made of newstest14 have its size.
TEST_SETS = {
    "newstest14": PaperCorpus(
        "newstest14", 3003, {"en": 27.0, "fr": 32.1, "de": 28.2}, f"{_WMT}/wmt14"
    ),
    "MED": PaperCorpus(
        "Khresmoi-Summary, dev and test",
        1500,
        {"en": 19.0, "fr": 21.8, "de": 17.9},
        "LINDAT/CLARIAH-CZ, lindat.cz (Khresmoi Summary Translation Test Data)",
    ),
    "LTC": PaperCorpus("LibriSpeech test-clean", 2620, {"en": 20.1}, _OPENSLR_12),
    "LTO": PaperCorpus("LibriSpeech test-other", 2939, {"en": 17.8}, _OPENSLR_12),
    "AMI": PaperCorpus(
        "AMI, evaluation part",
        12_643,
        {"en": 7.1},
        "the University of Edinburgh, groups.inf.ed.ac.uk/ami/corpus",
    ),
    "C-FR": PaperCorpus(
        "Common Voice FR, test part", 14_760, {"fr": 9.5}, "Mozilla, commonvoice.mozilla.org"
    ),
}
SPEECH_FRAMES_A_WORD = 5.4 * 3600 * 100 / (2620 * 20.1)  # test-clean: 5.4 hours, frames of 10 ms

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
