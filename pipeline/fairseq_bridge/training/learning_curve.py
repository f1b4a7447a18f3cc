"""Learning curve of a member: losses in nats per token, and quality on the dev set, by update."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.training.job import TrainJob, is_first_process, sum_over_processes
from pipeline.fairseq_bridge.training.settings import FAMILIES
from pipeline.run.files import write_atomically

_log = logging.getLogger(__name__)
_BATCH_SENTENCES = 64
# Maximum length of a hypothesis; early in training a model may never produce EOS.
_MAX_LENGTH_RATIO, _MAX_LENGTH_OFFSET = 2, 10


class LearningCurve:
    """One row per validation; `state` and `restore` preserve it across interruptions."""

    def __init__(self, trainer: Any, job: TrainJob) -> None:
        self._trainer = trainer
        self._title = job.title
        self._family = FAMILIES[job.family]
        self._language = job.target_language
        self._quality_sentences = int(job.train["validate_quality_sentences"])
        self._rows: list[dict[str, float]] = []
        self._train_losses: list[float] = []

    def add(self, logged: Mapping[str, float]) -> None:
        """Add what fairseq logged for one update."""
        # fairseq logs losses in bits.
        self._train_losses.append(float(logged.get("nll_loss", logged["loss"])) * math.log(2))

    def validate(self) -> None:
        """Add a row: mean training loss since the last row, loss and quality on the dev set."""
        row = {
            "update": float(self._trainer.get_num_updates()),
            "train_loss_nats": sum(self._train_losses) / max(1, len(self._train_losses)),
            "valid_loss_nats": self._dev_loss_nats(),
        }
        self._train_losses = []
        if self._quality_sentences and is_first_process():
            texts = greedy_dev_texts(self._trainer, self._quality_sentences)
            row[self._family.quality_column] = self._family.quality(*texts, self._language)
        self._rows.append(row)
        shown = [f"{name} {value:.3f}" for name, value in row.items() if name != "update"]
        _log.info("%s: update %d, %s", self._title, row["update"], ", ".join(shown))

    def state(self) -> dict[str, Any]:
        """The curve as plain values, for `restore`."""
        return {"rows": self._rows, "train_losses": self._train_losses}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue the curve of an interrupted training."""
        self._rows, self._train_losses = list(state["rows"]), list(state["train_losses"])

    def write(self, path: Path) -> None:
        """Write the rows as CSV: update, train_loss_nats, valid_loss_nats and quality."""
        lines = [",".join(self._rows[0])]
        for row in self._rows:
            _, *values = row.values()
            lines.append(",".join([f"{row['update']:.0f}", *(f"{value:.6f}" for value in values)]))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")

    def _dev_loss_nats(self) -> float:
        torch = import_fairseq("torch")
        model, criterion = self._trainer.get_model(), self._trainer.get_criterion()
        model.eval()
        loss_nats = n_token = 0.0
        with torch.no_grad():
            batches = self._trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False)
            for batch in batches:
                sample, is_dummy = self._trainer._prepare_sample(batch)
                if is_dummy:  # this process has fewer batches than another one
                    continue
                _, _, logged = criterion(model, sample)
                loss_nats += float(logged["nll_loss"])
                n_token += float(logged["ntokens"])
        loss_nats, n_token = sum_over_processes(loss_nats, n_token)
        return loss_nats / n_token


def gather_curves(curves: Mapping[str, Path], out: Path) -> None:
    """Write the curves of all members as one tidy CSV: member, update, measure, value.

    `curves` maps each member to its curve.csv.
    """
    lines = ["member,update,measure,value"]
    for member, path in curves.items():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                update = row.pop("update")
                lines += [f"{member},{update},{name},{value}" for name, value in row.items()]
    write_atomically(out, "\n".join(lines) + "\n")


def greedy_dev_texts(trainer: Any, count: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references [sentence], detokenised, of the first `count` dev sentences.

    Hypotheses are cut at twice the length of the longest reference of their batch plus ten.
    """
    torch = import_fairseq("torch")
    dataset, dictionary = trainer.task.dataset("valid"), trainer.task.target_dictionary
    model = trainer.get_model().eval()
    hypotheses: list[str] = []
    references: list[str] = []
    count = min(count, len(dataset))
    for start in range(0, count, _BATCH_SENTENCES):
        indices = range(start, min(start + _BATCH_SENTENCES, count))
        sample, _ = trainer._prepare_sample(dataset.collater([dataset[index] for index in indices]))
        with torch.inference_mode():
            tokens = _greedy_tokens(model, sample, dictionary)
        hypotheses += [_text(dictionary, row) for row in tokens]
        references += [_text(dictionary, row) for row in sample["target"]]
    return hypotheses, references


def _greedy_tokens(model: Any, sample: Any, dictionary: Any) -> Any:
    """Greedy search: tokens [sentence, token], padded after EOS."""
    torch = import_fairseq("torch")
    encoded = model.encoder.forward_torchscript(sample["net_input"])
    prefix = sample["net_input"]["prev_output_tokens"][:, :1]
    finished = torch.zeros_like(prefix[:, 0], dtype=torch.bool)
    state: dict[str, Any] = {}
    for _ in range(_MAX_LENGTH_RATIO * sample["target"].shape[1] + _MAX_LENGTH_OFFSET):
        output = model.decoder(prefix, encoder_out=encoded, incremental_state=state)
        logprob = model.get_normalized_probs(output, log_probs=True)[:, -1]
        logprob[:, dictionary.pad()] = -torch.inf
        token = torch.where(finished, dictionary.pad(), logprob.argmax(dim=1))
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        finished |= token == dictionary.eos()
        if finished.all():
            break
    return prefix[:, 1:]


def _text(dictionary: Any, tokens: Any) -> str:
    text: str = dictionary.string(tokens, "sentencepiece", None, {dictionary.pad()})
    return text
