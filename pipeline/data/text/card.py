"""The data card of a task: what its sets are, where they come from, and what the filters took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.data.markdown import markdown_table, short
from pipeline.data.speech.corpus import SpeechCorpus
from pipeline.data.text.cleaning import RULES
from pipeline.data.text.corpus import AlignedSentence, Corpus
from pipeline.data.text.parallel import ParallelData
from pipeline.data.text.test_sets import Row
from pipeline.run.settings import TaskConfig

_SAMPLES = 3
# How a set is made, in the words of the card.
_KINDS = {
    "held_out": "real sentences of held-out pages",
    "permuted": "SYNTHETIC: sub-word tokens of the in-domain source, permuted",
    "typos": "SYNTHETIC: the in-domain source with typing errors",
    "truncated": "SYNTHETIC: the in-domain source, cut short",
    "other_side": "real sentences, {source} as source and {reference} as reference",
    "debian_reference": "real sentences of another domain",
    "spoken": "real sentences, as spoken",
    "files": "real sentences from the user's own files",
}


@dataclass(frozen=True)
class Subset:
    """A row of the paper's table of data sets: language -> its words a sentence."""

    corpus: Corpus
    name: str
    n_sentence: int
    words_a_sentence: Mapping[str, float]


def subsets(parallel: ParallelData) -> list[Subset]:
    """Training text (where there is), dev, test and other corpora, with their lengths in words."""
    text = parallel.text
    rows = [_subset(text.train, "train", parallel.train)] if text.train and parallel.train else []
    rows += [
        _subset(text.dev or text.main, "dev", parallel.dev),
        _subset(text.test or text.main, "test", parallel.test),
    ]
    return rows + [_subset(one.corpus, role, one.sentences) for role, one in parallel.other.items()]


def data_card(
    task: TaskConfig,
    text_sets: Sequence[Subset],
    sets: Mapping[str, Sequence[Row]],
    absent: Mapping[str, str],
    counts: Mapping[str, Mapping[str, int]],
) -> str:
    """The card as Markdown; `sets`: role -> rows, `absent`: role -> reason, `counts`: by step."""
    blocks = [
        f"# Data card: {task.name}",
        f"From {task.source_language} to {task.target_language}. Made by `stages.prepare`; hashes "
        "of every file and package are in `manifest.json`.",
        "## Corpora",
        markdown_table(
            ("Corpus", "Licence", "Domain", "Packages"),
            corpus_rows(one.corpus for one in text_sets),
        ),
        "## Sizes",
        "In the layout of the paper's table of data sets (apn-tab:nmt). Words are split at white "
        "space.",
        markdown_table(
            ("Dataset", "Subset", "LNG", "Sentences", "Words / Sent.", "Domain"),
            [tuple(row.values()) for row in sizes(text_sets)],
        ),
        "## Test sets",
        markdown_table(
            ("Role", "What stands for it", "How it is made", "Used in", "Rows"),
            [_test_set_row(role, task, len(rows)) for role, rows in sets.items()],
        ),
        *(f"{role} is absent: {reason}." for role, reason in absent.items()),
        "## Filters",
        "A sentence is counted under the first rule that it breaks. The rules:",
        "\n".join(f"- {name}: {rule}" for name, rule in RULES.items()),
        "What each rule took, by the text that passed through it: all text of the pair (train), "
        "the text that dev and test sentences are drawn from (held_out), and what sets are of.",
        _count_table(counts),
        "## Samples",
    ]
    for role, rows in sets.items():
        blocks += [f"### {role}", markdown_table(("Source", "Reference"), _samples(rows))]
    return "\n\n".join(blocks) + "\n"


def _subset(corpus: Corpus, name: str, sentences: Iterable[AlignedSentence]) -> Subset:
    n_sentence = 0
    words: dict[str, int] = {}
    for sentence in sentences:
        n_sentence += 1
        for language, side in sentence.text.items():
            words[language] = words.get(language, 0) + len(side.split())
    return Subset(
        corpus, name, n_sentence, {language: n / n_sentence for language, n in words.items()}
    )


def corpus_rows(corpora: Iterable[Corpus | SpeechCorpus]) -> Iterator[tuple[str, ...]]:
    """Name, licence, domain and packages of each corpus, once a name."""
    for corpus in {one.name: one for one in corpora}.values():
        packages = ", ".join(f"{name} {one['version']}" for name, one in corpus.packages.items())
        yield corpus.name, corpus.licence, corpus.domain, packages or "none"


def sizes(sets: Iterable[Subset]) -> Iterator[dict[str, str]]:
    """The rows of the paper's table of data sets, one a language."""
    for one in sets:
        for language, words in one.words_a_sentence.items():
            yield {
                "dataset": one.corpus.name,
                "subset": one.name,
                "language": language,
                "sentences": str(one.n_sentence),
                "words_a_sentence": f"{words:.1f}",
                "domain": one.corpus.domain,
            }


def _count_table(counts: Mapping[str, Mapping[str, int]]) -> str:
    """A row a count, a column a text; steps of the same text share its column."""
    columns: dict[str, dict[str, int]] = {}
    for step, numbers in counts.items():
        text = step.removeprefix("align_").removeprefix("clean_").removeprefix("set_")
        columns.setdefault("train" if text == "split" else text, {}).update(numbers)
    names = dict.fromkeys(name for numbers in columns.values() for name in numbers)
    rows = [(name, *(str(numbers.get(name, "")) for numbers in columns.values())) for name in names]
    return markdown_table(("Count", *columns), rows)


def _test_set_row(role: str, task: TaskConfig, n_row: int) -> tuple[str, ...]:
    test_set = task.test_sets[role]
    made = _KINDS[test_set.kind].format(
        source=test_set.language, reference=test_set.reference_language or task.target_language
    )
    return role, test_set.corpus, made, ", ".join(test_set.regimes), str(n_row)


def _samples(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    for row in rows[:_SAMPLES]:
        yield short(row.source), "(none)" if row.reference is None else short(row.reference)
