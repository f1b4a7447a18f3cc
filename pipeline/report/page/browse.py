"""Choose the decode of each test set whose sentences can be browsed on the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.token_labels import SPECIAL_TOKENS, own_vocabulary, read_vocabulary
from pipeline.quality.registry import QUALITIES, Quality, quality_metric
from pipeline.quality.tokenisers import DEFAULT, check_tokeniser
from pipeline.quality.transcripts import AS_DECODED
from pipeline.report.cells import CellIndex
from pipeline.report.names import decoder_name, value_label
from pipeline.report.page.sentences import sentence_data
from pipeline.report.page.sounds import embedded_sounds
from pipeline.run.artifacts import Artifact
from pipeline.run.files import file_sha256, read_json
from pipeline.store import Store, check_stores, open_store

_PAPER_ENSEMBLE = "random_init"
_TEST_SETS, _SOUNDS = "test/", ".sounds.h5"
_ERROR_LABELS = {"bleu": "Error (100 \u2212 BLEU)", "wer_percent": "Error (WER %)"}


@dataclass(frozen=True)
class TaskFolders:
    """The folders of a task's decodes and measures, and its data card.

    `dictionary` is the fairseq dictionary of the target vocabulary. Without it, tokens are shown by
    their ids, unless the ensemble has a tokenizer of its own. `sounds`: test set of speech -> file.
    """

    name: str
    decode: Path
    uncertainty: Path
    data_card: Path | None = None
    dictionary: Path | None = None
    sounds: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def below(cls, root: Path, name: str) -> TaskFolders:
        """The folders of a task below `io.root`; a task of given stores has no prepared data.

        A dictionary is used only if all languages share it, because the target language of the
        task is not known here.
        """
        prepared = Artifact(root / "prepare" / name, "prepare", required=False)
        dictionaries = [prepared.file(path) for path in prepared.names("fairseq/dict.", ".txt")]
        is_joint = len({file_sha256(path) for path in dictionaries}) == 1
        return cls(
            name,
            root / "decode" / name,
            root / "uncertainty" / name,
            data_card=prepared.file("data_card.md") if prepared.folder.exists() else None,
            dictionary=dictionaries[0] if is_joint else None,
            sounds={
                path.removeprefix(_TEST_SETS).removesuffix(_SOUNDS): prepared.file(path)
                for path in prepared.names(_TEST_SETS, _SOUNDS)
            },
        )


@dataclass(frozen=True)
class BrowsableSet:
    """A decode whose sentences the page embeds, as the JSON text of `sentence_data`.

    `n_sentence` is the size of the test set, of which the page embeds the first `n_embedded`.
    `is_speech`: the sources are files or utterances, so that sentences are shown by transcript.
    """

    task: str
    task_label: str
    test_set: str
    ensemble: str
    combination: str
    regime: str
    quality: str
    members: list[str]
    measures: list[str]
    n_sentence: int
    n_embedded: int
    is_speech: bool
    json: str

    @property
    def decoded_by(self) -> str:
        """The decode in words."""
        return decoder_name(self.ensemble, self.combination, self.regime)

    @property
    def entry(self) -> dict[str, Any]:
        """What the script of the page knows before it unpacks the sentences."""
        return {
            "task": self.task,
            "test_set": self.test_set,
            "label": f"{self.task_label}: {self.test_set}",
            "decoded_by": self.decoded_by,
            "teacher_forced": self.regime == "teacher_forcing",
            "is_speech": self.is_speech,
            "error_label": _ERROR_LABELS[self.quality],
            "n_sentence": self.n_sentence,
            "measure_labels": {name: value_label(name) for name in self.measures},
        }


def browsable_sets(task: TaskFolders, index: CellIndex, most_sentences: int) -> list[BrowsableSet]:
    """One decode with measures per test set, each with at most `most_sentences` sentences.

    Search is preferred to teacher forcing, the paper's ensemble to other ensembles, PrEx to ExPr.
    `index` has the cells of all tasks. Raises DataError or StoreError for results that do not
    belong together.
    """
    wanted = index.ensemble(task.name, _PAPER_ENSEMBLE)
    chosen: dict[str, tuple[tuple[bool, ...], str]] = {}
    stores = {
        part: task.decode / part / "store.h5"
        for part in Artifact(task.decode, "decode").parts()
        # Decodes of single members have no measures.
        if (task.uncertainty / part / "sequence.parquet").is_file()
    }
    check_stores(stores.values())
    for part, path in stores.items():
        with open_store(path) as store:
            test_set = _attribute(store, "test_set")
            preference = (  # lower is better
                store.regime == "teacher_forcing",
                _attribute(store, "ensemble") != wanted,
                store.combination != "prex",
            )
        if test_set not in chosen or preference < chosen[test_set][0]:
            chosen[test_set] = preference, part
    quality = _quality(index, task.name)
    return [
        _browsable(task, index, chosen[test_set][1], quality, most_sentences)
        for test_set in dict.fromkeys([*ordered_test_sets(index.cells, task.name), *chosen])
        if test_set in chosen
    ]


def _browsable(
    task: TaskFolders, index: CellIndex, part: str, quality: str, most_sentences: int
) -> BrowsableSet:
    measures = task.uncertainty / part
    with open_store(task.decode / part / "store.h5") as store:
        own = own_vocabulary(task.decode, _attribute(store, "ensemble"))
        subwords = None if own is None else own.pieces
        if subwords is None and task.dictionary:
            subwords = read_subwords(task.dictionary, store.vocab_size)
        data = sentence_data(
            store, measures, _quality_metric(quality, measures), most_sentences, subwords
        )
        test_set = _attribute(store, "test_set")
        if sounds := task.sounds.get(test_set):
            data["sound"] = embedded_sounds(sounds, _most_uncertain_first(data), store.n_sentence)
        return BrowsableSet(
            task=task.name,
            task_label=index.label(task.name),
            test_set=test_set,
            ensemble=_attribute(store, "ensemble"),
            combination=store.combination,
            regime=store.regime,
            quality=quality,
            members=store.members,
            measures=list(data["measures"]),
            n_sentence=store.n_sentence,
            n_embedded=len(data["source"]),
            is_speech=index.family(task.name) == "speech",
            json=json_text(data),
        )


def _most_uncertain_first(data: dict[str, Any]) -> list[int]:
    """The positions of sentences in the order in which the page first lists them."""
    values = next(iter(data["measures"].values()))
    valued = [position for position, value in enumerate(values) if value is not None]
    return sorted(valued, key=lambda position: (-float(values[position]), position))


def _quality(index: CellIndex, task: str) -> str:
    """The quality metric of the cells of a task."""
    metrics = dict.fromkeys(cell.metric for cell in index.cells if cell.task == task)
    for name in QUALITIES:
        if name in metrics:
            return name
    raise DataError(
        f"cells of {task}: have none of the metrics {', '.join(QUALITIES)} "
        f"(got {', '.join(metrics)}). Run python -m stages.metrics again."
    )


def _quality_metric(name: str, measures: Path) -> Quality:
    """The metric with the settings that stages.uncertainty and stages.metrics used.

    Raises MachineError if the tokeniser of BLEU does not work on this machine.
    """
    path = measures / "checks.json"
    settings = read_json(path, "uncertainty").get("settings", {}) if path.is_file() else {}
    tokeniser = str(settings.get("bleu_tokeniser", DEFAULT))
    check_tokeniser(tokeniser)
    return quality_metric(name, tokeniser, str(settings.get("transcripts", AS_DECODED)))


def read_subwords(path: Path, vocab_size: int) -> list[str]:
    """The subword of each token id: [vocab].

    Raises DataError if the file is missing or its size differs from the vocabulary of the store.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file. Run python -m stages.prepare first.")
    subwords = read_vocabulary(path)
    if len(subwords) != vocab_size:
        expected, actual = (size - len(SPECIAL_TOKENS) for size in (vocab_size, len(subwords)))
        raise DataError(
            f"{path}: must list the {expected} subwords of the decode store (got {actual}). "
            "Run python -m stages.prepare and stages.decode again."
        )
    return subwords


def ordered_test_sets(cells: Iterable[Cell], task: str) -> list[str]:
    """The test sets of a task: the baseline, then sets that single members decoded, then others.

    Sets that were only scored by teacher forcing come last. The baseline is the set without
    ROC-AUC, because out-of-domain sets are compared with it.
    """
    by_set: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.task == task:
            by_set.setdefault(cell.test_set, []).append(cell)

    def rank(name: str) -> tuple[bool, bool, bool]:
        own = by_set[name]
        return (
            all(cell.regime == "teacher_forcing" for cell in own),
            any(cell.metric == "roc_auc" for cell in own),
            all(cell.ensemble != "single" for cell in own),
        )

    return sorted(by_set, key=rank)


def json_text(value: Any) -> str:
    """JSON that is safe inside HTML: it contains no `<`, so no tag or comment can begin in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _attribute(store: Store, name: str) -> str:
    return str(store.attributes.get(name, ""))
