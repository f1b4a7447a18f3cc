"""The data card of a task: its corpora, sets, filters and samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from pipeline.data.speech.audio import FAULTS, NOTES
from pipeline.data.speech.corpus import SpeechCorpus
from pipeline.data.speech.nist import TRANSCRIPT_NOTES
from pipeline.data.speech.prepared import PreparedSet
from pipeline.data.text.cleaning import RULES
from pipeline.data.text.corpus import AlignedSentence, Corpus
from pipeline.data.text.parallel import ParallelData
from pipeline.data.text.test_sets import Row, count_groups
from pipeline.data.text.words import count_words
from pipeline.run.settings import TaskConfig
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

_SAMPLES = 3
_MAX_SAMPLE_CHARACTERS = 160
# Beginning of the name of a count -> what the card says if there is such a count.
_NOTES = {
    "synthetic_copies_of": "Copies are SYNTHETIC noise (data.copies): training sentences that are "
    "repeated with one of their sides, or their side in a third language, as source and target. "
    "They are trained on in addition to the sentences of train. Subwords are learnt without them.",
    "train_untranslated": "Training pairs with the same text on both sides are kept "
    "(data.untranslated), unless another such pair has the same text. train_untranslated counts "
    "those that are trained on.",
}
_CORPUS_COLUMNS = ("Corpus", "Licence", "Domain", "Packages")


@dataclass(frozen=True)
class TextSubset:
    """A row of the paper's table of data sets. `words_per_sentence`: language -> mean."""

    corpus: Corpus
    name: str
    n_sentence: int
    words_per_sentence: Mapping[str, float]


def text_subsets(parallel: ParallelData) -> list[TextSubset]:
    """Measure the training text (if any), dev and test set, and the sets with their own corpora."""
    text = parallel.text
    subsets = []
    if text.train and parallel.train:
        subsets.append(_subset(text.train, "train", parallel.train))
        for kind, copies in parallel.copies.items():
            subsets.append(
                _subset(text.train, f"train, copies of the {kind} side (SYNTHETIC)", copies)
            )
    subsets.append(_subset(text.dev or text.main, "dev", parallel.dev))
    if parallel.test:
        subsets.append(_subset(text.test or text.main, "test", parallel.test))
    for name, own in parallel.own.items():
        subsets.append(_subset(own.corpus, name, own.sentences))
    return subsets


def _subset(corpus: Corpus, name: str, sentences: Iterable[AlignedSentence]) -> TextSubset:
    n_sentence = 0
    n_word: dict[str, int] = {}
    for sentence in sentences:
        n_sentence += 1
        for language, side in sentence.text.items():
            n_word[language] = n_word.get(language, 0) + count_words(side)
    means = {language: number / n_sentence for language, number in n_word.items()}
    return TextSubset(corpus, name, n_sentence, means)


def text_sizes(subsets: Iterable[TextSubset]) -> Iterator[dict[str, str]]:
    """Yield the rows of the paper's table of data sets, one per subset and language."""
    for subset in subsets:
        for language, words in subset.words_per_sentence.items():
            yield {
                "dataset": subset.corpus.name,
                "subset": subset.name,
                "language": language,
                "sentences": str(subset.n_sentence),
                "words_a_sentence": f"{words:.1f}",
                "domain": subset.corpus.domain,
            }


def speech_sizes(sets: Sequence[PreparedSet]) -> Iterator[dict[str, str]]:
    """Yield the rows of the paper's table of speech corpora."""
    for subset in sets:
        words = subset.words_per_utterance
        yield {
            "dataset": subset.corpus.name,
            "subset": subset.name,
            "hours": f"{subset.hours:.2f}",
            "utterances": str(subset.n_utterance),
            "words_an_utterance": "no transcripts" if words is None else f"{words:.1f}",
            "distinct_texts": "no transcripts" if subset.n_text is None else str(subset.n_text),
            "groups": "not known" if subset.n_group is None else str(subset.n_group),
            "domain": subset.corpus.domain,
        }


def text_card(
    task: TaskConfig,
    subsets: Sequence[TextSubset],
    sets: Mapping[str, Sequence[Row]],
    absent: Mapping[str, str],
    counts: Mapping[str, Mapping[str, int]],
) -> str:
    """Write the card of a translation task as Markdown.

    `sets`: name -> rows. `absent`: name -> reason. `counts`: step -> counts.
    """
    blocks = [
        f"# Data card: {task.name}",
        f"From {task.source_language} to {task.target_language}. Made by `stages.prepare`; hashes "
        "of every file and package are in `manifest.json`.",
        "## Corpora",
        _table(_CORPUS_COLUMNS, _corpus_rows(subset.corpus for subset in subsets)),
        "## Sizes",
        "In the layout of the paper's table of data sets (Table 7). Words are split at white "
        "space. In scripts without spaces between words, two letters (East Asia) or three (South "
        "East Asia, Tibet) count as a word.",
        _table(
            ("Dataset", "Subset", "LNG", "Sentences", "Words / Sent.", "Domain"),
            [tuple(row.values()) for row in text_sizes(subsets)],
        ),
        "## Test sets",
        "The role is the name that the paper's tables give to such a set. Groups are the documents "
        "that sentences are from, such as pages.",
        _table(
            ("Test set", "Role", "Corpus", "How it is made", "Used in", "Sentences", "Groups"),
            [
                (
                    *_test_set_cells(task, name),
                    ", ".join(task.test_sets[name].regimes).replace("_", " "),
                    len(rows),
                    count_groups(rows) or "not known",
                )
                for name, rows in sets.items()
            ],
        ),
        *(f"{name} is absent: {reason}." for name, reason in absent.items()),
        "## Filters",
        "A sentence is counted under the first rule that it breaks. The rules:",
        "\n".join(f"- {name}: {rule}" for name, rule in RULES.items()),
        "What each rule dropped, by the text that passed through it: all text of the pair (train), "
        "the text that dev and test sentences are drawn from (held_out), and the corpora of test "
        "sets. Of the user's own text, texts_escaped_LANGUAGE counts the texts whose Moses escapes "
        "are undone, and texts_subwords_LANGUAGE and texts_tokenised_LANGUAGE those that are cut "
        "into subwords or tokenised.",
        *(
            note
            for count, note in _NOTES.items()
            if any(name.startswith(count) for name in counts.get("split", ()))
        ),
        _text_counts(counts),
        "## Samples",
    ]
    for name, rows in sets.items():
        samples = [(row.source, row.reference) for row in rows[:_SAMPLES]]
        blocks += [f"### {name}", _sample_table(samples)]
    return "\n\n".join(blocks) + "\n"


def speech_card(
    task: TaskConfig,
    training: Sequence[PreparedSet],
    test: Mapping[str, PreparedSet],
    absent: Mapping[str, str],
) -> str:
    """Write the card of a speech task as Markdown.

    `training`: train and dev, as far as there are such sets. `test`: name -> set. `absent`: name ->
    reason.
    """
    sets = [*training, *test.values()]
    count_names = dict.fromkeys(name for subset in sets for name in subset.counts)
    blocks = [
        f"# Data card: {task.name}",
        f"Speech recognition, language {task.source_language}. Made by `stages.prepare`; hashes of "
        "every file and package, and the name of every faulty file, are in `manifest.json`.",
        "## Corpora",
        "A corpus marked SYNTHETIC is no recording of a person.",
        _table(_CORPUS_COLUMNS, _corpus_rows(subset.corpus for subset in sets)),
        "## Sizes",
        "In the layout of the paper's table of speech corpora (Table 6), of the utterances "
        "that have sound. Utterances of one group, such as those of one speaker, tend to share "
        "errors.",
        _table(
            (
                *("Dataset", "Subset", "Hours", "Utterances", "Words / Utterance"),
                *("Distinct texts", "Groups", "Domain"),
            ),
            [tuple(row.values()) for row in speech_sizes(sets)],
        ),
        "## Test sets",
        _table(
            ("Test set", "Role", "Corpus", "How it is made", "With reference"),
            [
                (
                    *_test_set_cells(task, name),
                    subset.counts["utterances_read"] - subset.counts["without_reference"],
                )
                for name, subset in test.items()
            ],
        ),
        *(f"{name} is absent: {reason}." for name, reason in absent.items()),
        "## Faults",
        "Faulty files are not trained on; in a test set their rows stay, without sound.",
        "\n".join(
            f"- {name}: {rule}"
            for name, rule in (FAULTS | NOTES | TRANSCRIPT_NOTES).items()
            if name in count_names
        ),
        _table(
            ("Count", *(subset.name for subset in sets)),
            [(name, *(subset.counts.get(name, "") for subset in sets)) for name in count_names],
        ),
        "## Samples",
    ]
    for subset in sets:
        samples = [(utterance.source, utterance.reference) for utterance in subset.samples]
        blocks += [f"### {subset.name}", _sample_table(samples)]
    return "\n\n".join(blocks) + "\n"


def _corpus_rows(corpora: Iterable[Corpus | SpeechCorpus]) -> Iterator[tuple[str, ...]]:
    """Yield name, licence, domain and packages of each corpus, once per name."""
    for corpus in {corpus.name: corpus for corpus in corpora}.values():
        packages = (f"{name} {origin['version']}" for name, origin in corpus.packages.items())
        yield corpus.name, corpus.licence, corpus.domain, ", ".join(packages) or "none"


def _test_set_cells(task: TaskConfig, name: str) -> tuple[str, str, str, str]:
    """Return the name of a test set, its role in the paper, its corpus, and how it is made."""
    test_set = task.test_sets[name]
    kind = KINDS_OF_TEST_SETS[task.family, test_set.kind]
    description = kind.description.format(
        language=test_set.language,
        reference_language=test_set.reference_language or task.target_language,
    )
    if kind.is_synthetic:
        description = f"SYNTHETIC: {description}"
    return name, next(iter(test_set.roles), "none"), test_set.corpus, description


def _text_counts(counts: Mapping[str, Mapping[str, int]]) -> str:
    """Make a table with one row per count and one column per text."""
    columns: dict[str, dict[str, int]] = {}
    for step, numbers in counts.items():
        text = re.sub("^(read|align|clean|set)_", "", step)
        columns.setdefault("train" if text == "split" else text, {}).update(numbers)
    names = dict.fromkeys(name for numbers in columns.values() for name in numbers)
    rows = [(name, *(numbers.get(name, "") for numbers in columns.values())) for name in names]
    return _table(("Count", *columns), rows)


def _sample_table(samples: Iterable[tuple[str, str | None]]) -> str:
    rows = [
        (_shortened(source), "(none)" if reference is None else _shortened(reference))
        for source, reference in samples
    ]
    return _table(("Source", "Reference"), rows)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_SAMPLE_CHARACTERS:
        return text
    return f"{text[:_MAX_SAMPLE_CHARACTERS]}…"


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a Markdown table in which no text breaks the layout."""
    cells = [[_escaped(str(value)) for value in row] for row in rows]
    return tabulate(cells, list(map(_escaped, header)), tablefmt="github", disable_numparse=True)


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
