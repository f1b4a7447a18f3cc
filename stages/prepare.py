"""Fetch the text or speech of a task, split it, cut it into units, make its test sets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.data.paper_corpora import check_present, size_differences
from pipeline.data.speech.card import speech_card, speech_manifest
from pipeline.data.speech.prepared import (
    learn_speech_units,
    write_test_set,
    write_training_set,
)
from pipeline.data.speech.sets import make_speech_sets
from pipeline.data.subword_learning import subword_counts
from pipeline.data.subwords import MODEL_FILE, SubwordModel
from pipeline.data.text.card import data_card, sizes, subsets
from pipeline.data.text.corpus import AlignedSentence, SpooledSentences
from pipeline.data.text.parallel import ParallelData, make_parallel_data
from pipeline.data.text.task_units import task_units
from pipeline.data.text.test_sets import (
    HeldOutText,
    Row,
    in_task_languages,
    languages_needed,
    make_set,
    why_absent,
    write_rows,
)
from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split
from pipeline.run.application import run
from pipeline.run.files import complete_folder, file_sha256, write_json
from pipeline.run.settings import PipelineConfig

_log = logging.getLogger(__name__)


def prepare(config: PipelineConfig) -> None:
    """Make {io.root}/prepare/{task.name}/: units, training data, test sets, card, manifest."""
    if config.data.check_paper_sizes:
        check_present(config.data, config.task)
    Path(config.data.downloads).mkdir(parents=True, exist_ok=True)
    _FAMILIES[config.task.family](config)


def _prepare_translation(config: PipelineConfig) -> None:
    task, data = config.task, config.data
    pair = (task.source_language, task.target_language)
    with TemporaryDirectory(dir=data.downloads, prefix=".train-") as spool:
        train = SpooledSentences(Path(spool) / "train.jsonl", sorted(pair))
        parallel = make_parallel_data(data, task, languages_needed(task), config.seed, train)
        units = task_units(data, pair, train)
        by_language = units.of(languages_needed(task))
        sets, absent = _test_sets(config, parallel, by_language)
        dev = list(in_task_languages(HeldOutText(parallel.dev, task, by_language, config.seed)))

        with complete_folder(_target(config)) as folder:
            units.write(folder)
            if train:
                _write_splits(folder / "fairseq", pair, parallel, by_language)
            write_rows(folder / "dev.jsonl", dev)
            for role, rows in sets.items():
                write_rows(folder / "test" / f"{role}.jsonl", rows)
            text_sets = subsets(parallel)
            card = data_card(task, text_sets, sets, absent, parallel.counts)
            known = set(units.source_vocabulary())
            manifest = _manifest(config, parallel, sets, absent, known)
            manifest |= {"subsets": list(sizes(text_sets))}
            _finish(folder, card, manifest | _against_paper(config, manifest))


def _prepare_speech(config: PipelineConfig) -> None:
    task, speech = config.task, config.data.speech
    sets = make_speech_sets(config.data, task, config.seed)
    units = learn_speech_units(speech, sets.train)
    with complete_folder(_target(config)) as folder:
        units.write(folder / MODEL_FILE, folder / "units.vocab")
        texts = (units.subwords(one.reference or "") for one in sets.train.utterances)
        counts = subword_counts(units.vocabulary(), texts)
        write_dictionaries(folder / "fairseq", [task.target_language], counts)
        training = [
            write_training_set(folder / "fairseq" / f"{split}.h5", name, corpus, speech, units)
            for split, name, corpus in (("train", "train", sets.train), ("valid", "dev", sets.dev))
        ]
        write_test_set(folder, "dev", sets.dev, speech, units)
        test = {
            role: write_test_set(folder / "test", role, corpus, speech, units)
            for role, corpus in sets.test.items()
        }
        manifest = speech_manifest(task, training, test, sets.absent)
        manifest |= _against_paper(config, manifest)
        _finish(folder, speech_card(task, training, test, sets.absent), manifest)


_FAMILIES = {"translation": _prepare_translation, "speech": _prepare_speech}


def _target(config: PipelineConfig) -> Path:
    return Path(config.io.root) / "prepare" / config.task.name


def _against_paper(config: PipelineConfig, manifest: dict[str, Any]) -> dict[str, list[str]]:
    """Where sets have another size than the paper's, told too; empty unless that is asked for."""
    if not config.data.check_paper_sizes:
        return {}
    differences = size_differences(config.task.name, manifest["counts"])
    for one in differences:
        _log.warning("not as in the paper: %s", one)
    return {"not_as_in_the_paper": differences}


def _finish(folder: Path, card: str, manifest: dict[str, Any]) -> None:
    """Write the card, and the manifest with the hash of every file."""
    (folder / "data_card.md").write_text(card, encoding="utf-8", newline="\n")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    hashes = {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}
    write_json(folder / "manifest.json", manifest | {"files": hashes})
    _log.info("%s is ready: %d files", manifest["task"], len(files) + 1)


def _manifest(
    config: PipelineConfig,
    parallel: ParallelData,
    sets: dict[str, list[Row]],
    absent: dict[str, str],
    known: set[str],
) -> dict[str, Any]:
    corpora = [parallel.text.main, *(made.corpus for made in parallel.other.values())]
    return {
        "task": config.task.name,
        "corpus": corpora[0].name,
        "licence": corpora[0].licence,
        "packages": {name: one for corpus in corpora for name, one in corpus.packages.items()},
        "absent_sets": absent,
        "counts": parallel.counts | {"test_sets": _set_counts(sets, parallel, known)},
    }


def _test_sets(
    config: PipelineConfig, parallel: ParallelData, units: Mapping[str, SubwordModel]
) -> tuple[dict[str, list[Row]], dict[str, str]]:
    """Role -> rows of each set that can be made, and role -> reason of each that cannot."""
    test = HeldOutText(parallel.test, config.task, units, config.seed)
    sets: dict[str, list[Row]] = {}
    absent = dict(parallel.absent)
    for role, test_set in config.task.test_sets.items():
        text = test
        if role in parallel.other:
            text = replace(test, sentences=parallel.other[role].sentences)
        elif reason := why_absent(test_set, parallel.text.test_languages, parallel.text.test_name):
            absent.setdefault(role, reason)
        if role not in absent:
            sets[role] = make_set(role, test_set, text)
    return sets, absent


def _write_splits(
    folder: Path, pair: tuple[str, str], parallel: ParallelData, units: Mapping[str, SubwordModel]
) -> None:
    def cut(sentences: Iterable[AlignedSentence], side: str) -> Iterator[list[str]]:
        return (units[side].subwords(sentence.text[side]) for sentence in sentences)

    for split, sentences in (("train", parallel.train), ("valid", parallel.dev)):
        write_split(folder, split, pair, (cut(sentences, pair[0]), cut(sentences, pair[1])))


def _set_counts(
    sets: dict[str, list[Row]], parallel: ParallelData, known: set[str]
) -> dict[str, dict[str, int]]:
    """Of each test set: rows, sentences left out, source pieces, unknown ones of them."""
    counts = {}
    for role, rows in sets.items():
        pieces = [piece for row in rows for piece in row.source_pieces]
        other = parallel.other.get(role)
        n_sentence = len(other.sentences if other else parallel.test)
        counts[role] = {
            "rows": len(rows),
            "left_out": n_sentence - len(rows),
            "source_pieces": len(pieces),
            "unknown_source_pieces": sum(piece not in known for piece in pieces),
        }
        _log.info("test set %s: %s", role, counts[role])
    return counts


if __name__ == "__main__":
    run(prepare)
