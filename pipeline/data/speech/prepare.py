"""Prepare a speech task: subwords of the transcripts, features and test sets."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.data.card import speech_card, speech_sizes
from pipeline.data.speech.prepared import (
    PreparedSet,
    learn_speech_subwords,
    write_test_set,
    write_training_set,
)
from pipeline.data.speech.sets import SpeechSource, make_speech_sets
from pipeline.data.task_subwords import OwnSubwords, Words, write_learnt_model
from pipeline.run.settings import PipelineConfig, TaskConfig

_log = logging.getLogger(__name__)


def prepare_speech(config: PipelineConfig, folder: Path) -> tuple[str, dict[str, Any]]:
    """Fill the folder of a speech task; returns its data card, and facts for its manifest.

    With `data.units` own, there are neither subwords nor a training set, and sets hold waveforms.
    """
    task, speech, copies = config.task, config.data.speech, config.data.copies
    if copies.source or copies.target or copies.third:
        _log.info("data.copies has no effect: a spoken source is no text that could be copied")
    source = SpeechSource(config.data, config.seed, task.source_language)
    # Before the test sets are downloaded or synthesised, so that an unsuitable size stops early.
    model = learn_speech_subwords(speech, source.train) if source.is_trained_on else Words()
    sets = make_speech_sets(source, task)
    training = []
    if isinstance(model, Words):
        OwnSubwords().write(folder)
    if sets.dev is not None:
        if not isinstance(model, Words):
            transcripts = (model.subwords(row.reference or "") for row in source.train.utterances)
            write_learnt_model(folder, model, [task.target_language], transcripts)
            training = [
                write_training_set(folder / "fairseq" / f"{split}.h5", name, corpus, speech, model)
                for split, name, corpus in (
                    ("train", "train", source.train), ("valid", "dev", sets.dev)
                )
            ]  # fmt: skip
        dev = write_test_set(folder, "dev", sets.dev, speech, model)
        training = training or [dev]
    test = {
        name: write_test_set(folder / "test", name, corpus, speech, model, keep_sound=True)
        for name, corpus in sets.test.items()
    }
    card = speech_card(task, training, test, sets.absent)
    return card, _facts(task, training, test, sets.absent)


def _facts(
    task: TaskConfig,
    training: Sequence[PreparedSet],
    test: Mapping[str, PreparedSet],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    sets = [*training, *test.values()]
    corpora = [subset.corpus for subset in sets]
    return {
        "task": task.name,
        "corpus": corpora[0].name,
        "licence": corpora[0].licence,
        "packages": {name: row for corpus in corpora for name, row in corpus.packages.items()},
        "absent_sets": dict(absent),
        "counts": {subset.name: subset.counts for subset in sets},
        "subsets": list(speech_sizes(sets)),
        "faults": {subset.name: subset.faults for subset in sets if subset.faults},
    }
