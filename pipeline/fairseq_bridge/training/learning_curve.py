"""The learning curve of a member: losses in nats a token and quality, against updates."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.processes import is_first_process, sum_over_processes
from pipeline.fairseq_bridge.training.settings import FAMILIES
from pipeline.run.files import write_atomically

_BATCH_SENTENCES = 64
# A model at its beginning need not end a sentence: longer ones are cut.
_LONGEST_RATIO, _LONGEST_OFFSET = 2, 10


def greedy_dev_texts(trainer: Any, count: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references [sentence], detokenised, of the first `count` dev sentences.

    A hypothesis is cut at twice the length of the longest reference of its batch and ten.
    """
    torch = import_fairseq("torch")
    dataset, dictionary = trainer.task.dataset("valid"), trainer.task.target_dictionary
    model = trainer.get_model().eval()
    hypotheses: list[str] = []
    references: list[str] = []
    count = min(count, len(dataset))
    for start in range(0, count, _BATCH_SENTENCES):
        places = range(start, min(start + _BATCH_SENTENCES, count))
        sample, _ = trainer._prepare_sample(dataset.collater([dataset[place] for place in places]))
        with torch.inference_mode():
            tokens = _greedy_tokens(model, sample, dictionary)
        hypotheses += [_text(dictionary, one) for one in tokens]
        references += [_text(dictionary, one) for one in sample["target"]]
    return hypotheses, references


def _greedy_tokens(model: Any, sample: Any, dictionary: Any) -> Any:
    """The likeliest token after each prefix [sentence, token], filled up with padding after EOS."""
    torch = import_fairseq("torch")
    encoded = model.encoder.forward_torchscript(sample["net_input"])
    prefix = sample["net_input"]["prev_output_tokens"][:, :1]
    ended = torch.zeros_like(prefix[:, 0], dtype=torch.bool)
    state: dict[str, Any] = {}
    for _ in range(_LONGEST_RATIO * sample["target"].shape[1] + _LONGEST_OFFSET):
        output = model.decoder(prefix, encoder_out=encoded, incremental_state=state)
        logprob = model.get_normalized_probs(output, log_probs=True)[:, -1]
        logprob[:, dictionary.pad()] = -torch.inf
        token = torch.where(ended, dictionary.pad(), logprob.argmax(dim=1))
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        ended |= token == dictionary.eos()
        if ended.all():
            break
    return prefix[:, 1:]


def _text(dictionary: Any, tokens: Any) -> str:
    text: str = dictionary.string(tokens, "sentencepiece", None, {dictionary.pad()})
    return text


_log = logging.getLogger(__name__)
Row = dict[str, float]


def gather_curves(curves: Mapping[str, Path], out: Path) -> None:
    """Write the curves of all members as one tidy CSV: member, update, measure, value.

    `curves`: member -> its curve.csv.
    """
    lines = ["member,update,measure,value"]
    for member, path in curves.items():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                update = row.pop("update")
                lines += [f"{member},{update},{name},{value}" for name, value in row.items()]
    write_atomically(out, "\n".join(lines) + "\n")


class Curve:
    """One row a validation; `state` and `restore` carry it over an interruption."""

    def __init__(self, trainer: Any, job: TrainJob) -> None:
        self._trainer = trainer
        self._title = job.title
        self._family = FAMILIES[job.family]
        self._quality_sentences = int(job.train["validate_quality_sentences"])
        self._rows: list[Row] = []
        self._train_losses: list[float] = []

    def add(self, logged: Mapping[str, float]) -> None:
        """Take in what fairseq logged of one update."""
        # fairseq logs in bits
        self._train_losses.append(float(logged.get("nll_loss", logged["loss"])) * math.log(2))

    def validate(self) -> None:
        """Add a row: the training loss since the last one, and loss and quality on dev."""
        row = {
            "update": float(self._trainer.get_num_updates()),
            "train_loss_nats": sum(self._train_losses) / max(1, len(self._train_losses)),
            "valid_loss_nats": self._dev_loss_nats(),
        }
        self._train_losses = []
        if self._quality_sentences and is_first_process():
            texts = greedy_dev_texts(self._trainer, self._quality_sentences)
            row[self._family.quality_column] = self._family.quality(*texts)
        self._rows.append(row)
        shown = [f"{name} {value:.3f}" for name, value in row.items() if name != "update"]
        _log.info("%s: update %d, %s", self._title, row["update"], ", ".join(shown))

    def state(self) -> dict[str, Any]:
        """What `restore` takes, as plain values."""
        return {"rows": self._rows, "train_losses": self._train_losses}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with the curve of an interrupted training."""
        self._rows, self._train_losses = list(state["rows"]), list(state["train_losses"])

    def write(self, path: Path) -> None:
        """Write the rows as CSV: update, train_loss_nats, valid_loss_nats, and the quality."""
        lines = [",".join(self._rows[0])]
        for row in self._rows:
            _, *values = row.values()
            lines.append(",".join([f"{row['update']:.0f}", *(f"{one:.6f}" for one in values)]))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")

    def _dev_loss_nats(self) -> float:
        torch = import_fairseq("torch")
        model, criterion = self._trainer.get_model(), self._trainer.get_criterion()
        model.eval()
        loss_nats = n_token = 0.0
        with torch.no_grad():
            batches = self._trainer.get_valid_iterator("valid").next_epoch_itr(shuffle=False)
            for batch in batches:
                sample, is_filling = self._trainer._prepare_sample(batch)
                if is_filling:  # of a process that has fewer batches than another
                    continue
                _, _, logged = criterion(model, sample)
                loss_nats += float(logged["nll_loss"])
                n_token += float(logged["ntokens"])
        loss_nats, n_token = sum_over_processes(loss_nats, n_token)
        return loss_nats / n_token
