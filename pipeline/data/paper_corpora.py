"""The corpora of the paper: check that they exist, and compare sizes with the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.data.task_subwords import is_imported
from pipeline.data.text.published_corpora import is_cached, other_pairs
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig, SpeechDataConfig, TaskConfig, TestSetConfig


@dataclass(frozen=True)
class PaperCorpus:
    """A corpus and its size in the paper.

    `sentences`: number of sentences or utterances. `words`: language -> mean number per sentence.
    `published`: by whom, and where.
    """

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
# By family. The paper names no dev sets; these are from fairseq's examples and LibriSpeech.
DEV = {
    "translation": PaperCorpus("newstest2013", 3000, published=f"{_WMT}/wmt13"),
    "speech": PaperCorpus("LibriSpeech dev-clean and dev-other", 5567, published=_OPENSLR_12),
}
# By role in the paper. Sets that are made from newstest14 have its size.
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
SPEECH_FRAMES_PER_WORD = (
    5.4 * 3600 * 100 / (2620 * 20.1)
)  # of test-clean: 5.4 hours, frames of 10 ms

_TOLERANCE = 0.01
_TRAINING_TOLERANCE = 0.25  # the paper does not say whether it counts before or after cleaning


@dataclass(frozen=True)
class _Needed:
    """A key, its value, and the corpus that must exist there.

    `location`: a path, or a test set of sacrebleu if `pair` gives the languages.
    """

    key: str
    location: str | None
    corpus: PaperCorpus
    pair: tuple[str, str] | None = None


def paper_corpus(test_set: TestSetConfig) -> PaperCorpus | None:
    """Return the paper's corpus in the role of a test set; None if it has no such role."""
    return next((TEST_SETS[role] for role in test_set.roles if role in TEST_SETS), None)


def check_present(data: DataConfig, task: TaskConfig) -> None:
    """Check that the corpora of the paper exist.

    Raises DataError with key, path, corpus and publisher of every missing corpus. A corpus is also
    missing if its key is null or empty.
    """
    missing = [
        f"{needed.key} ({fault}): {needed.corpus.name}, {needed.corpus.sentences:,} sentences, "
        f"of {needed.corpus.published}"
        for needed in _needed(data, task)
        if (fault := _fault(needed, task)) is not None
    ]
    if missing:
        raise DataError(
            f"data.check_paper_sizes: corpora of the paper are missing. Provide "
            f"{'; '.join(missing)}."
        )


def size_differences(task: TaskConfig, counts: Mapping[str, Any]) -> list[str]:
    """Describe each set whose size differs from the paper's; `counts` as in a manifest."""
    differences = []
    for name, size, corpus, tolerance in _sizes(task, counts):
        if abs(size - corpus.sentences) > tolerance * corpus.sentences:
            differences.append(
                f"{name} has {size:,} sentences where the paper's {corpus.name} has "
                f"{corpus.sentences:,}: see {corpus.published}"
            )
    return differences


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
    for other_pair in dict.fromkeys(pair for _, pair in other_pairs(data, task)):
        yield _Needed("data.test", data.test, TEST_SETS["newstest14"], other_pair)
    for role, subset in (("LTC", "test-clean"), ("LTO", "test-other")):
        folder = None if data.librispeech is None else f"{data.librispeech}/{subset}"
        yield _Needed("data.librispeech", folder, TEST_SETS[role])
    yield _Needed("data.khresmoi", data.khresmoi, TEST_SETS["MED"])


def _speech_needed(speech: SpeechDataConfig) -> Iterator[_Needed]:
    lists = (("train", speech.train, TRAINING["asr"]), ("dev", speech.dev, DEV["speech"]))
    for name, paths, corpus in lists:
        if not paths:
            yield _Needed(f"data.speech.{name}", None, corpus)
        for path in paths:
            yield _Needed(f"data.speech.{name}", path, corpus)
    yield _Needed("data.speech.test", speech.test, TEST_SETS["LTC"])
    yield _Needed("data.speech.test_other", speech.test_other, TEST_SETS["LTO"])
    yield _Needed("data.speech.ami", speech.ami, TEST_SETS["AMI"])
    yield _Needed("data.speech.common_voice", speech.common_voice, TEST_SETS["C-FR"])


def _fault(needed: _Needed, task: TaskConfig) -> str | None:
    """Say why a corpus counts as missing; None if something exists at its location."""
    location = needed.location
    if location is None:
        return "got null"
    if needed.pair is not None:
        if is_cached(location, needed.pair):
            return None
        return f"got no {location} of {'-'.join(needed.pair)} in the sacrebleu cache"
    return None if any(path.exists() for path in _paths(location, task)) else f"got no {location}"


def _paths(location: str, task: TaskConfig) -> list[Path]:
    """Return the possible paths of a corpus, or of the source side of a parallel corpus."""
    language = task.source_language
    texts = (
        location,
        location.replace("{lang}", language),
        f"{location}.{language}",
        f"{location}.{language}.gz",
    )
    return [Path(text) for text in texts]


def _sizes(
    task: TaskConfig, counts: Mapping[str, Any]
) -> Iterator[tuple[str, int, PaperCorpus, float]]:
    """Yield each set, its prepared size, the corpus of the paper, and the tolerance."""
    if "test_sets" in counts:
        sizes = {name: numbers["rows"] for name, numbers in counts["test_sets"].items()}
        if "train" in counts["split"]:
            sizes["train"] = counts["split"]["train"]
    else:
        sizes = {name: numbers["utterances_read"] for name, numbers in counts.items()}
    for name, size in sizes.items():
        if name == "train":
            yield name, size, TRAINING[task.name], _TRAINING_TOLERANCE
        elif name in task.test_sets and (corpus := paper_corpus(task.test_sets[name])):
            yield name, size, corpus, _TOLERANCE
