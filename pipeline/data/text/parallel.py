"""The sentences of a translation task: cleaned, split by page, nothing held out in training."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace

from pipeline.data.text.cleaning import CleaningRules, HeldOutIndex, clean, languages_of
from pipeline.data.text.corpus import (
    AlignedSentence,
    Corpus,
    HeldOut,
    SpooledSentences,
    align,
    hold_out,
)
from pipeline.data.text.published_corpora import other_pairs
from pipeline.data.text.sources import (
    KINDS,
    SHARED_LANGUAGES,
    OtherSet,
    TaskText,
    as_given,
    make_other_set,
    read_task_text,
    set_of_other_pair,
)
from pipeline.data.text.task_units import is_imported
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig, TaskConfig

_log = logging.getLogger(__name__)

Counts = dict[str, int]


@dataclass(frozen=True)
class ParallelData:
    """The sentences of each set, the corpora that they are from, and the counts of every step.

    `other`: role -> a test set of another corpus; `absent`: role -> why there is no such set.
    """

    text: TaskText
    train: SpooledSentences
    dev: list[AlignedSentence]
    test: list[AlignedSentence]
    other: dict[str, OtherSet]
    absent: dict[str, str]
    counts: dict[str, Counts]


def make_parallel_data(
    data: DataConfig, task: TaskConfig, languages: set[str], seed: int, train: SpooledSentences
) -> ParallelData:
    """Fill `train` with sentences of the pair, and hold out dev and test sentences.

    The latter are in `languages` and the shared ones, as far as the text has them. With imported
    units nothing is trained, and `train` stays empty. Raises DataError where a set would be empty
    or a file breaks a rule; MachineError where a corpus cannot be had.
    """
    pair = (task.source_language, task.target_language)
    text = read_task_text(data, pair, languages)
    counts: dict[str, Counts] = {}
    rules = CleaningRules(
        "en" if "en" in text.main.languages else pair[0],
        data.min_words,
        data.max_words,
        languages_of(text.main),
    )
    held_out = _held_out(data, text, rules, seed, counts)
    other, absent = _other_sets(data, task, rules, seed)
    counts |= {f"set_{role}": one.counts for role, one in other.items()}
    kept_away = [one for made in other.values() for one in made.sentences]
    pair_rules = replace(rules, pivot=rules.pivot if rules.pivot in pair else pair[0])
    sets: dict[str, Sized] = {"test": held_out.test, "dev": held_out.dev}
    if text.train is not None and not is_imported(data):
        sets["train"] = train
        _fill(train, data, text.train, pair_rules, held_out, kept_away, counts)
        distinct = len(train)
        if data.train_sentences is not None:
            train.choose(data.train_sentences, seed)
        counts["split"]["train_dropped_over_train_sentences"] = distinct - len(train)
    split = counts.setdefault("split", {})
    split["held_out_pages"] = len(held_out.pages)
    split |= {name: len(sentences) for name, sentences in sets.items()}
    for step, numbers in counts.items():
        _log.info("%s: %s", step, ", ".join(f"{name} {n}" for name, n in numbers.items()))
    _check_sizes(data, text, sets)
    return ParallelData(text, train, held_out.dev, held_out.test, other, absent, counts)


def _fill(
    train: SpooledSentences,
    data: DataConfig,
    corpus: Corpus,
    rules: CleaningRules,
    held_out: HeldOut,
    kept_away: list[AlignedSentence],
    counts: dict[str, Counts],
) -> None:
    """Write the training sentences: clean, on no held-out page, near no sentence of any set."""
    index = HeldOutIndex(
        [
            sentence.text[rules.pivot]
            for sentence in (*held_out.test, *held_out.dev, *kept_away)
            if rules.pivot in sentence.text
        ],
        data.near_duplicate_jaccard,
    )
    steps: dict[str, Counter[str]] = {
        name: Counter() for name in ("align_train", "clean_train", "split")
    }
    aligned = align(corpus.paragraphs(), train.languages, steps["align_train"])
    cleaned = clean(aligned, rules, steps["clean_train"])
    train.write(_apart(cleaned, held_out.pages, index, rules.pivot, steps["split"]))
    counts |= {step: dict(one) for step, one in steps.items()}


def _held_out(
    data: DataConfig, text: TaskText, rules: CleaningRules, seed: int, counts: dict[str, Counts]
) -> HeldOut:
    """Test and dev sentences: those of sets that were given as they are, others off the corpus."""
    drawn = HeldOut([], [], frozenset())
    if text.test is None or text.dev is None:
        steps: dict[str, Counter[str]] = {"align_held_out": Counter(), "clean_held_out": Counter()}
        languages = sorted(text.main.languages)
        aligned = align(text.main.paragraphs(), languages, steps["align_held_out"])
        drawn = hold_out(
            clean(aligned, rules, steps["clean_held_out"]),
            0 if text.test else data.test_sentences,
            0 if text.dev else data.dev_sentences,
            seed,
        )
        counts |= {step: dict(one) for step, one in steps.items()}
    given = {"test": (text.test, data.test_sentences), "dev": (text.dev, data.dev_sentences)}
    sets = {"test": drawn.test, "dev": drawn.dev}
    for name, (corpus, most) in given.items():
        if corpus is not None:
            step: Counter[str] = Counter()
            sets[name] = as_given(corpus, most, step)
            counts[f"given_{name}"] = dict(step)
    return HeldOut(sets["test"], sets["dev"], drawn.pages)


def _other_sets(
    data: DataConfig, task: TaskConfig, rules: CleaningRules, seed: int
) -> tuple[dict[str, OtherSet], dict[str, str]]:
    made: dict[str, OtherSet] = {}
    absent: dict[str, str] = {}
    pair = [task.source_language, task.target_language]
    languages = [*pair, *sorted(SHARED_LANGUAGES - {*pair})]
    of_other_pair = dict(other_pairs(data, task))
    for role, test_set in task.test_sets.items():
        if test_set.kind in KINDS:
            one = make_other_set(role, test_set, data, languages, rules, seed)
        elif role in of_other_pair:
            one = set_of_other_pair(data, of_other_pair[role])
        else:
            continue
        if isinstance(one, str):
            absent[role] = one
            _log.warning("test set %s is absent: %s", role, one)
        else:
            made[role] = one
    return made, absent


def _apart(
    sentences: Iterable[AlignedSentence],
    held_out_pages: frozenset[str],
    index: HeldOutIndex,
    pivot: str,
    counts: Counter[str],
) -> Iterator[AlignedSentence]:
    """The sentences on other pages, without what is nearly held out; adds to `counts`."""
    for name in ("train_dropped_held_out_page", "train_dropped_near_duplicate"):
        counts[name] += 0
    for sentence in sentences:
        if sentence.page in held_out_pages:
            counts["train_dropped_held_out_page"] += 1
        elif index.is_near(sentence.text[pivot]):
            counts["train_dropped_near_duplicate"] += 1
        else:
            yield sentence


def _check_sizes(data: DataConfig, text: TaskText, sets: Mapping[str, Sized]) -> None:
    for name, sentences in sets.items():
        if not sentences:
            raise DataError(
                f"the {name} set of {text.main.name} must hold a sentence, got none with "
                f"data.min_words={data.min_words}, data.max_words={data.max_words}, "
                f"data.test_sentences={data.test_sentences}, "
                f"data.dev_sentences={data.dev_sentences}"
            )
