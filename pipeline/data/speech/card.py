"""The data card of a speech task: what its sets are, their origin, and what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.data.markdown import markdown_table, short
from pipeline.data.speech.audio import FAULTS, NOTES
from pipeline.data.speech.prepared import PreparedSet
from pipeline.data.text.card import corpus_rows
from pipeline.run.settings import TaskConfig


def speech_card(
    task: TaskConfig,
    training: Sequence[PreparedSet],
    test: Mapping[str, PreparedSet],
    absent: Mapping[str, str],
) -> str:
    """The card as Markdown: `training` is train and dev, `test`: role -> set, `absent`: -> why."""
    sets = [*training, *test.values()]
    blocks = [
        f"# Data card: {task.name}",
        f"Speech recognition, language {task.source_language}. Made by `stages.prepare`; hashes of "
        "every file and package, and the name of every faulty file, are in `manifest.json`.",
        "## Corpora",
        "What is called SYNTHETIC is no recording of a person.",
        markdown_table(
            ("Corpus", "Licence", "Domain", "Packages"),
            corpus_rows(one.corpus for one in sets),
        ),
        "## Sizes",
        "In the layout of the paper's table of speech corpora (apn-tab:asr), of the utterances "
        "that have features.",
        markdown_table(
            ("Dataset", "Subset", "Hours", "Utterances", "Words / Utterance", "Domain"),
            [tuple(row.values()) for row in sizes(sets)],
        ),
        "## Test sets",
        markdown_table(
            ("Role", "What stands for it", "With reference"),
            [(role, task.test_sets[role].corpus, _referenced(one)) for role, one in test.items()],
        ),
        *(f"{role} is absent: {reason}." for role, reason in absent.items()),
        "## Faults",
        "A faulty file is not trained on; in a test set its row stays, without sound.",
        "\n".join(f"- {name}: {rule}" for name, rule in (FAULTS | NOTES).items()),
        _counts(sets),
        "## Samples",
    ]
    for one in sets:
        blocks += [f"### {one.name}", markdown_table(("Source", "Reference"), _samples(one))]
    return "\n\n".join(blocks) + "\n"


def speech_manifest(
    task: TaskConfig,
    training: Sequence[PreparedSet],
    test: Mapping[str, PreparedSet],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    """The manifest but for the hashes of files; `faults`: set -> source -> what is wrong."""
    sets = [*training, *test.values()]
    corpora = [one.corpus for one in sets]
    return {
        "task": task.name,
        "corpus": corpora[0].name,
        "licence": corpora[0].licence,
        "packages": {name: one for corpus in corpora for name, one in corpus.packages.items()},
        "absent_sets": dict(absent),
        "counts": {one.name: one.counts for one in sets},
        "subsets": list(sizes(sets)),
        "faults": {one.name: one.faults for one in sets if one.faults},
    }


def sizes(sets: Sequence[PreparedSet]) -> Iterator[dict[str, str]]:
    """The rows of the paper's table of speech corpora."""
    for one in sets:
        words = one.words_an_utterance
        yield {
            "dataset": one.corpus.name,
            "subset": one.name,
            "hours": f"{one.hours:.2f}",
            "utterances": str(one.n_utterance),
            "words_an_utterance": "no transcripts" if words is None else f"{words:.1f}",
            "domain": one.corpus.domain,
        }


def _referenced(one: PreparedSet) -> str:
    """How many utterances have a reference."""
    return str(one.counts["utterances_read"] - one.counts["without_reference"])


def _samples(one: PreparedSet) -> Iterator[tuple[str, str]]:
    for said in one.samples:
        yield short(said.source), "(none)" if said.reference is None else short(said.reference)


def _counts(sets: Sequence[PreparedSet]) -> str:
    names = dict.fromkeys(name for one in sets for name in one.counts)
    rows = [(name, *(str(one.counts.get(name, "")) for one in sets)) for name in names]
    return markdown_table(("Count", *(one.name for one in sets)), rows)
