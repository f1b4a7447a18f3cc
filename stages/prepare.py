"""Fetch, clean and split the corpus of a task, cut it into sub-word units, make its test sets."""

from __future__ import annotations

import logging
from pathlib import Path

from pipeline.config import PipelineConfig
from pipeline.data.evaluation_sets import (
    HeldOutText,
    Row,
    languages_needed,
    make_set,
    parallel_rows,
    write_rows,
)
from pipeline.data.parallel import ParallelData, make_parallel_data
from pipeline.data.units import Units, learn_units, piece_counts
from pipeline.fairseq_bridge.binarise import write_dictionaries, write_split
from pipeline.parts import file_sha256, whole_folder, write_json
from stages import run

_log = logging.getLogger(__name__)


def prepare(config: PipelineConfig) -> None:
    """Make {io.root}/prepare/{task.name}/: units, binarised training text, test sets, manifest."""
    task, data = config.task, config.data
    pair = (task.source_language, task.target_language)
    parallel = make_parallel_data(data, pair, languages_needed(task), config.seed)
    units = learn_units(
        (side for sentence in parallel.train for side in sentence.text.values()),
        data.vocabulary_size,
    )
    test = HeldOutText(parallel.test, task, units, config.seed)
    sets = {role: make_set(role, one, test) for role, one in task.test_sets.items()}
    dev = list(parallel_rows(HeldOutText(parallel.dev, task, units, config.seed), pair[0]))

    target = Path(config.io.root) / "prepare" / task.name
    with whole_folder(target) as folder:
        units.write(folder / "units.model", folder / "units.vocab")
        _write_fairseq(folder / "fairseq", pair, parallel, units)
        write_rows(folder / "dev.jsonl", dev)
        for role, rows in sets.items():
            write_rows(folder / "test" / f"{role}.jsonl", rows)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        manifest = {
            "task": task.name,
            "corpus": parallel.corpus.name,
            "licence": parallel.corpus.licence,
            "packages": parallel.corpus.packages,
            "counts": parallel.counts
            | {"test_sets": _set_counts(sets, len(test.sentences), units)},
            "files": {path.relative_to(folder).as_posix(): file_sha256(path) for path in files},
        }
        write_json(folder / "manifest.json", manifest)
    _log.info("wrote %s: %d files", target, len(files) + 1)


def _write_fairseq(
    folder: Path, pair: tuple[str, str], parallel: ParallelData, units: Units
) -> None:
    splits = {
        split: [[units.pieces(sentence.text[side]) for sentence in sentences] for side in pair]
        for split, sentences in (("train", parallel.train), ("valid", parallel.dev))
    }
    train = (pieces for side in splits["train"] for pieces in side)
    write_dictionaries(folder, pair, piece_counts(units.vocabulary(), train))
    for split, (source, target) in splits.items():
        write_split(folder, split, pair, (source, target))


def _set_counts(
    sets: dict[str, list[Row]], held_out: int, units: Units
) -> dict[str, dict[str, int]]:
    """Of each test set: rows, held-out sentences left out, source pieces, unknown ones of them."""
    known = set(units.vocabulary())
    counts = {}
    for role, rows in sets.items():
        pieces = [piece for row in rows for piece in row.source_pieces]
        counts[role] = {
            "rows": len(rows),
            "left_out": held_out - len(rows),
            "source_pieces": len(pieces),
            "unknown_source_pieces": sum(piece not in known for piece in pieces),
        }
        _log.info("test set %s: %s", role, counts[role])
    return counts


if __name__ == "__main__":
    run(prepare)
