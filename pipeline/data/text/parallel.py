"""The sentences of a translation task: cleaned, and split into training, dev and test sets."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field, replace

from pipeline.data.task_subwords import is_imported
from pipeline.data.text.cleaning import (
    CleaningRules,
    NearDuplicates,
    clean,
    is_untranslated,
    learn_profile,
    strictest_rule,
    warn_if_most_is_dropped,
)
from pipeline.data.text.copies import ThirdSides, make_copies, third_language
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
    OwnSentences,
    TaskText,
    first_sentences,
    other_pair_sentences,
    own_sentences,
    page_limit,
    read_task_text,
    shared_languages,
)
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig, TaskConfig
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

_log = logging.getLogger(__name__)

Counts = dict[str, int]


@dataclass(frozen=True)
class ParallelData:
    """The sentences of each set, the corpora that they are from, and the counts of each step.

    `own`: name -> sentences of a test set that has a corpus of its own. `absent`: name -> why there
    is no such set. `copies`: kind -> texts that are trained on with the same text on both sides.
    """

    text: TaskText
    train: SpooledSentences
    dev: list[AlignedSentence]
    test: list[AlignedSentence]
    own: dict[str, OwnSentences]
    absent: dict[str, str]
    counts: dict[str, Counts]
    copies: Mapping[str, SpooledSentences] = field(default_factory=dict)


def make_parallel_data(
    data: DataConfig, task: TaskConfig, languages: set[str], seed: int, train: SpooledSentences
) -> ParallelData:
    """Fill `train` with sentences of the language pair, and hold out dev and test sentences.

    Held-out sentences have all of `languages` and of the shared languages that the text has.
    `train` stays empty if subwords are imported, since nothing is trained. Raises DataError if a
    set would be empty or a file is malformed, MachineError if a corpus is not available, and
    ConfigError if the text cannot give the copies of `data.copies`.
    """
    pair = (task.source_language, task.target_language)
    text = read_task_text(data, pair, languages)
    corpus = None if is_imported(data) else text.train
    third = third_language(corpus, pair) if corpus is not None and data.copies.third else None
    copies: dict[str, SpooledSentences] = {}
    counts: dict[str, Counts] = {}
    if text.train and text.train.counts:
        counts["read_train"] = dict(text.train.counts)
    rules = CleaningRules(
        "en" if "en" in text.main.languages else pair[0],
        data.min_words,
        data.max_words,
        data.min_letter_share,
        data.max_length_ratio,
        data.length_allowance_words,
        learn_profile(text.main),
    )
    n_test = data.test_sentences if _has_held_out_set(task) else 0
    held_out = _held_out(data, text, n_test, rules, seed, counts)
    own, absent = _own_sets(data, task, rules, seed)
    counts |= {f"set_{name}": test_set.counts for name, test_set in own.items()}
    sets: dict[str, Sized] = {"test": held_out.test} if n_test else {}
    sets["dev"] = held_out.dev
    if corpus is not None:
        sets["train"] = train
        pair_rules = replace(
            rules,
            pivot=rules.pivot if rules.pivot in pair else pair[0],
            keeps_untranslated=data.untranslated == "keep",
        )
        kept_away = [sentence for test_set in own.values() for sentence in test_set.sentences]
        kept_away += [*held_out.test, *held_out.dev]
        near_duplicates = _near_duplicates(pair, kept_away, data.near_duplicate_jaccard)
        _fill(train, corpus, pair_rules, held_out.pages, near_duplicates, counts)
        n_distinct = len(train)
        if data.train_sentences is not None:
            train.choose(data.train_sentences, seed)
        counts["split"]["train_dropped_over_train_sentences"] = n_distinct - len(train)
        if pair_rules.keeps_untranslated:
            counts["split"]["train_untranslated"] = sum(
                is_untranslated(sentence.text) for sentence in train
            )
        third_sides = None
        if third is not None:
            (held_out_sides,) = _near_duplicates(
                [third], kept_away, data.near_duplicate_jaccard
            ).values()
            third_sides = ThirdSides(third, corpus, train, rules, held_out_sides)
        copies = make_copies(data.copies, pair, train, third_sides, seed)
        counts["split"] |= {
            f"synthetic_copies_of_{kind}": len(sentences) for kind, sentences in copies.items()
        }
    split = counts.setdefault("split", {})
    split["held_out_pages"] = len(held_out.pages)
    split["held_out_over_max_sentences_per_page"] = held_out.n_over_page_limit
    split |= {name: len(sentences) for name, sentences in sets.items()}
    for step, numbers in counts.items():
        _log.info("%s: %s", step, ", ".join(f"{name} {n}" for name, n in numbers.items()))
    _refuse_empty_sets(data, text, sets, rules, counts)
    return ParallelData(text, train, held_out.dev, held_out.test, own, absent, counts, copies)


def _has_held_out_set(task: TaskConfig) -> bool:
    """Whether a test set is made of held-out sentences; others have a corpus of their own."""
    kinds = (
        KINDS_OF_TEST_SETS["translation", test_set.kind] for test_set in task.test_sets.values()
    )
    return any(kind.corpus is None for kind in kinds)


def _held_out(
    data: DataConfig,
    text: TaskText,
    n_test: int,
    rules: CleaningRules,
    seed: int,
    counts: dict[str, Counts],
) -> HeldOut:
    """Return at most `n_test` test sentences, and dev sentences.

    They come from separate sets, unchanged, or are drawn from the corpus.
    """
    drawn = HeldOut([], [], frozenset())
    if text.test is None or text.dev is None:
        steps: dict[str, Counter[str]] = {"align_held_out": Counter(), "clean_held_out": Counter()}
        languages = sorted(text.main.languages)
        aligned = align(text.main.paragraphs(), languages, steps["align_held_out"])
        drawn = hold_out(
            clean(aligned, rules, steps["clean_held_out"]),
            0 if text.test else n_test,
            0 if text.dev else data.dev_sentences,
            page_limit(data, text.main),
            seed,
        )
        counts |= {step: dict(numbers) for step, numbers in steps.items()}
        if text.train is None or is_imported(data):  # else `_fill` warns
            warn_if_most_is_dropped(text.main, languages, rules, _both(counts, "held_out"))
    separate = {"test": (text.test, n_test), "dev": (text.dev, data.dev_sentences)}
    sets = {"test": drawn.test, "dev": drawn.dev}
    for name, (corpus, max_sentences) in separate.items():
        if corpus is not None:
            numbers: Counter[str] = Counter()
            sets[name] = first_sentences(corpus, max_sentences, numbers)
            counts[f"given_{name}"] = {**corpus.counts, **numbers}
    return replace(drawn, test=sets["test"], dev=sets["dev"])


def _own_sets(
    data: DataConfig, task: TaskConfig, rules: CleaningRules, seed: int
) -> tuple[dict[str, OwnSentences], dict[str, str]]:
    """Read test sets that have other text than the held-out sentences, or the reasons for none."""
    own: dict[str, OwnSentences] = {}
    absent: dict[str, str] = {}
    pair = (task.source_language, task.target_language)
    languages = [*pair, *sorted(shared_languages(pair) - {*pair})]
    pair_of_set = dict(other_pairs(data, task))
    for name, test_set in task.test_sets.items():
        if KINDS_OF_TEST_SETS["translation", test_set.kind].corpus is not None:
            sentences = own_sentences(test_set, data, languages, rules, seed)
        elif name in pair_of_set:
            sentences = other_pair_sentences(data, pair_of_set[name])
        else:
            continue
        if isinstance(sentences, str):
            absent[name] = sentences
        else:
            own[name] = sentences
    return own, absent


def _near_duplicates(
    languages: Iterable[str], held_out: list[AlignedSentence], jaccard: float
) -> dict[str, NearDuplicates]:
    """Return an index of the held-out text in each language: sources and references."""
    return {
        language: NearDuplicates(
            [sentence.text[language] for sentence in held_out if language in sentence.text], jaccard
        )
        for language in languages
    }


def _fill(
    train: SpooledSentences,
    corpus: Corpus,
    rules: CleaningRules,
    held_out_pages: frozenset[str],
    near_duplicates: Mapping[str, NearDuplicates],
    counts: dict[str, Counts],
) -> None:
    """Write the training sentences: clean, on no held-out page, and near no held-out sentence."""
    steps: dict[str, Counter[str]] = {
        name: Counter() for name in ("align_train", "clean_train", "split")
    }
    aligned = align(corpus.paragraphs(), train.languages, steps["align_train"])
    cleaned = clean(aligned, rules, steps["clean_train"])
    train.write(_apart(cleaned, held_out_pages, near_duplicates, steps["split"]))
    counts |= {step: dict(numbers) for step, numbers in steps.items()}
    warn_if_most_is_dropped(corpus, train.languages, rules, _both(counts, "train"))


def _both(counts: Mapping[str, Counts], sentences: str) -> Counts:
    """Return the counts of `align` and `clean`."""
    return {**counts[f"align_{sentences}"], **counts[f"clean_{sentences}"]}


def _apart(
    sentences: Iterable[AlignedSentence],
    held_out_pages: frozenset[str],
    near_duplicates: Mapping[str, NearDuplicates],
    counts: Counter[str],
) -> Iterator[AlignedSentence]:
    """Drop sentences on held-out pages, and those with a near-duplicate on any side.

    Adds their numbers to `counts`; a sentence counts once, under the first side that is near.
    """
    counts["train_dropped_held_out_page"] += 0
    for language in near_duplicates:
        counts[f"train_dropped_near_duplicate_{language}"] += 0
    for sentence in sentences:
        if sentence.page in held_out_pages:
            counts["train_dropped_held_out_page"] += 1
            continue
        near = (
            side for side, index in near_duplicates.items() if index.has_near(sentence.text[side])
        )
        if (first := next(near, None)) is not None:
            counts[f"train_dropped_near_duplicate_{first}"] += 1
        else:
            yield sentence


def _refuse_empty_sets(
    data: DataConfig,
    text: TaskText,
    sets: Mapping[str, Sized],
    rules: CleaningRules,
    counts: Mapping[str, Counts],
) -> None:
    for name, sentences in sets.items():
        if not sentences:
            step = "train" if name == "train" else "held_out"
            is_cleaned = f"clean_{step}" in counts
            rule = strictest_rule(rules, _both(counts, step)) if is_cleaned else ""
            raise DataError(
                f"{text.main.name}: no sentence is left for the {name} set"
                f"{f': {rule}' if rule else ''}. Change the settings that are named, or the sizes "
                f"of the sets (data.test_sentences={data.test_sentences}, data.dev_sentences="
                f"{data.dev_sentences}, data.max_sentences_per_page="
                f"{data.max_sentences_per_page}), or give more text."
            )
