"""The corpora of the paper: check that they exist, and compare sizes with the paper's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
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

# By name of the task.
_TRAINING = {
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


def paper_training(task: TaskConfig) -> PaperCorpus | None:
    """Return the paper's training corpus of a task; None if the paper has no such task."""
    return _TRAINING.get(task.name)


def assumed_training(task: TaskConfig) -> PaperCorpus:
    """Return the paper's training corpus of a task or, failing that, of one of the same family."""
    return paper_training(task) or _TRAINING["asr" if task.family == "speech" else "nmt_ende"]


def paper_corpus(test_set: TestSetConfig) -> PaperCorpus | None:
    """Return the paper's corpus in the role of a test set; None if it has no such role."""
    return next((TEST_SETS[role] for role in test_set.roles if role in TEST_SETS), None)


def check_present(data: DataConfig, task: TaskConfig) -> None:
    """Check that those corpora of the paper exist that the task has a test set or a name for.

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
    """Yield what the task uses: sets in roles of the paper, and training data of its tasks."""
    roles = {role for test_set in task.test_sets.values() for role in test_set.roles}
    training = paper_training(task)
    if task.family == "speech":
        yield from _speech_needed(data.speech, training, roles)
        return
    is_cached_set = data.source == "sacrebleu"
    pair = (task.source_language, task.target_language) if is_cached_set else None
    if training is not None:
        if not is_imported(data):
            yield _Needed("data.train", data.train, training)
        yield _Needed("data.dev", data.dev, DEV["translation"], pair)
    if "newstest14" in roles:
        yield _Needed("data.test", data.test, TEST_SETS["newstest14"], pair)
    for other_pair in dict.fromkeys(pair for _, pair in other_pairs(data, task)):
        yield _Needed("data.test", data.test, TEST_SETS["newstest14"], other_pair)
    for role, subset in (("LTC", "test-clean"), ("LTO", "test-other")):
        folder = None if data.librispeech is None else f"{data.librispeech}/{subset}"
        if role in roles:
            yield _Needed("data.librispeech", folder, TEST_SETS[role])
    if "MED" in roles:
        yield _Needed("data.khresmoi", data.khresmoi, TEST_SETS["MED"])


def _speech_needed(
    speech: SpeechDataConfig, training: PaperCorpus | None, roles: Collection[str]
) -> Iterator[_Needed]:
    if training is not None:
        lists = (("train", speech.train, training), ("dev", speech.dev, DEV["speech"]))
        for name, paths, corpus in lists:
            locations: list[str | None] = [*paths]
            for path in locations or [None]:
                yield _Needed(f"data.speech.{name}", path, corpus)
    sets = {"LTC": "test", "LTO": "test_other", "AMI": "ami", "C-FR": "common_voice"}
    for role, name in sets.items():
        if role in roles:
            yield _Needed(f"data.speech.{name}", speech[name], TEST_SETS[role])  # type: ignore[index]


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
            training = paper_training(task)
            if training is not None:
                yield name, size, training, _TRAINING_TOLERANCE
        elif name in task.test_sets and (corpus := paper_corpus(task.test_sets[name])):
            yield name, size, corpus, _TOLERANCE
