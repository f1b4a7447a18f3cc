"""Prepare a translation task: subwords, binarised training data and test sets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.data.card import text_card, text_sizes, text_subsets
from pipeline.data.subwords import SubwordModel
from pipeline.data.task_subwords import task_subwords
from pipeline.data.text.corpus import AlignedSentence, SpooledSentences
from pipeline.data.text.parallel import ParallelData, make_parallel_data
from pipeline.data.text.test_sets import (
    HeldOutText,
    Row,
    count_groups,
    languages_needed,
    make_rows,
    reason_absent,
    task_rows,
    write_rows,
)
from pipeline.fairseq_bridge.corpus.binarised import write_split
from pipeline.run.settings import PipelineConfig

_log = logging.getLogger(__name__)


def prepare_text(config: PipelineConfig, folder: Path) -> tuple[str, dict[str, Any]]:
    """Fill the folder of a translation task; returns its data card, and facts for its manifest."""
    task, data = config.task, config.data
    pair = (task.source_language, task.target_language)
    languages = languages_needed(task)
    with TemporaryDirectory(dir=data.downloads, prefix=".train-") as spool:
        train = SpooledSentences(Path(spool) / "train.jsonl", sorted(pair))
        parallel = make_parallel_data(data, task, languages, config.seed, train)
        subwords = task_subwords(data, pair, train)
        models = subwords.models(languages)
        sets, absent = _test_sets(config, parallel, models)
        subwords.write(folder)
        if train:
            _write_splits(folder / "fairseq", pair, parallel, models)
        corpus = parallel.text.dev or parallel.text.main
        dev = HeldOutText(
            f"{corpus.name}, dev", parallel.dev, corpus.has_documents, task, models, config.seed
        )
        write_rows(folder / "dev.jsonl", task_rows(None, dev))
        for name, rows in sets.items():
            write_rows(folder / "test" / f"{name}.jsonl", rows)
        subsets = text_subsets(parallel)
    set_counts = _set_counts(sets, parallel, subwords.source_vocabulary())
    corpora = [parallel.text.main, *(own.corpus for own in parallel.own.values())]
    facts = {
        "task": task.name,
        "corpus": corpora[0].name,
        "licence": corpora[0].licence,
        "packages": {name: row for corpus in corpora for name, row in corpus.packages.items()},
        "absent_sets": absent,
        "counts": parallel.counts | {"test_sets": set_counts},
        "subsets": list(text_sizes(subsets)),
    }
    return text_card(task, subsets, sets, absent, parallel.counts), facts


def _test_sets(
    config: PipelineConfig, parallel: ParallelData, models: Mapping[str, SubwordModel]
) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """Return name -> rows for the sets that can be made, and name -> reason for absent sets."""
    corpus = parallel.text.test or parallel.text.main
    held_out = HeldOutText(
        corpus.name, parallel.test, corpus.has_documents, config.task, models, config.seed
    )
    sets: dict[str, list[Row]] = {}
    absent = dict(parallel.absent)
    sentences_of = {corpus.name: parallel.test}
    for name, test_set in config.task.test_sets.items():
        text = held_out
        if name in parallel.own:
            own = parallel.own[name]
            # Sets of the same sentences share the name of their text; other sentences of the corpus
            # add the name of their set.
            text_name = own.corpus.name
            if sentences_of.setdefault(text_name, own.sentences) != own.sentences:
                text_name = f"{text_name} ({name})"
            text = replace(
                held_out,
                name=text_name,
                sentences=own.sentences,
                has_documents=own.corpus.has_documents,
            )
        elif name not in absent and (reason := reason_absent(test_set, corpus)):
            absent[name] = reason
        if name in absent:
            continue
        if rows := make_rows(test_set, text):
            sets[name] = rows
        else:
            # Such as one-word sentences, which cannot be cut short.
            n_sentence = len(text.sentences)
            absent[name] = (
                f"none of the {n_sentence} sentences of {text.name} can be used for {test_set.kind}"
            )
    for name, reason in absent.items():
        _log.warning("test set %s is absent: %s", name, reason)
    return sets, absent


def _write_splits(
    folder: Path, pair: tuple[str, str], parallel: ParallelData, models: Mapping[str, SubwordModel]
) -> None:
    def cut(sentences: Iterable[AlignedSentence], language: str) -> Iterator[list[str]]:
        return (models[language].subwords(sentence.text[language]) for sentence in sentences)

    def copied(language: str) -> Iterator[list[str]]:
        sentences = chain.from_iterable(parallel.copies.values())
        return (models[language].subwords(text) for _, side in sentences for text in side.values())

    source, target = (chain(cut(parallel.train, side), copied(side)) for side in pair)
    write_split(folder, "train", pair, (source, target))
    write_split(folder, "valid", pair, (cut(parallel.dev, pair[0]), cut(parallel.dev, pair[1])))


def _set_counts(
    sets: dict[str, list[Row]], parallel: ParallelData, vocabulary: Sequence[str] | None
) -> dict[str, dict[str, int | None]]:
    """Count the rows, groups, left-out sentences, source subwords and unknown ones of each set.

    The number of groups is None if they are not known, and that of unknown subwords if there is no
    vocabulary.
    """
    known = None if vocabulary is None else {*vocabulary}
    counts = {}
    for name, rows in sets.items():
        subwords = [subword for row in rows for subword in row.source_pieces]
        own = parallel.own.get(name)
        n_sentence = len(own.sentences if own else parallel.test)
        counts[name] = {
            "rows": len(rows),
            "groups": count_groups(rows),
            "left_out": n_sentence - len(rows),
            "source_pieces": len(subwords),
            "unknown_source_pieces": (
                None if known is None else sum(subword not in known for subword in subwords)
            ),
        }
        _log.info("test set %s: %s", name, counts[name])
    return counts
