"""A speech recognition task for fairseq's Trainer, over files of features."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.utterances import Features, UtteranceFile
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.run.settings import unknown_key_message


@dataclass(frozen=True)
class SpecAugment:
    """How many masks there are, and the most that one covers: bins, frames, share of frames."""

    frequency_masks: int = 0
    frequency_mask_bins: int = 0
    time_masks: int = 0
    time_mask_frames: int = 0
    time_mask_share: float = 0.2

    def masked(self, features: Features, seed: Sequence[int]) -> Features:
        """A copy of features [frame, bin] with masks of 0, the mean of normalised features.

        seed: of one utterance in one epoch; nothing else enters the draw.
        """
        random = np.random.default_rng(seed)
        masked = features.copy()
        n_frame, n_bin = features.shape
        for _ in range(self.frequency_masks):
            width = random.integers(0, min(self.frequency_mask_bins, n_bin) + 1)
            start = random.integers(0, n_bin - width + 1)
            masked[:, start : start + width] = 0.0
        for _ in range(self.time_masks):
            most = min(self.time_mask_frames, int(self.time_mask_share * n_frame))
            width = random.integers(0, most + 1)
            start = random.integers(0, n_frame - width + 1)
            masked[start : start + width] = 0.0
        return masked


def spec_augment(settings: Mapping[str, Any]) -> SpecAugment:
    """The masks of `train.settings.spec_augment`; without settings there are none.

    Raises ConfigError naming a key that is unknown or a value that is not a number >= 0.
    """
    where = "train.settings.spec_augment"
    known = [one.name for one in fields(SpecAugment)]
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(unknown_key_message(f"{where}.{name}", known, where))
        whole = name != "time_mask_share"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            kind = "a whole number" if whole else "a number"
            raise ConfigError(f"{where}.{name} must be {kind} >= 0, got {value!r}")
        if value < 0:
            raise ConfigError(f"{where}.{name} must be >= 0, got {value}")
    return SpecAugment(**settings)


_data = import_fairseq("fairseq.data")
_tasks = import_fairseq("fairseq.tasks")
_dataclass = import_fairseq("fairseq.dataclass").FairseqDataclass

TASK = "pipeline_speech"
_log = logging.getLogger(__name__)


@dataclass
class SpeechTaskConfig(_dataclass):  # type: ignore[misc, valid-type]
    """A folder with dict.{target_lang}.txt, train.h5 and valid.h5; what masks features, and how."""

    data: str = ""
    target_lang: str = ""
    mask_seed: int = 0
    spec_augment: dict[str, Any] = field(default_factory=dict)


def speech_task(job: TrainJob) -> dict[str, Any]:
    """Settings of the task of a job; masks are those of `train.settings.spec_augment`."""
    settings = dict(job.train.get("settings", {}).get("spec_augment", {}))
    return {
        "_name": TASK,
        "data": str(job.data),
        "target_lang": job.target_language,
        "mask_seed": job.seed,
        "spec_augment": settings,
    }


class SpeechDataset(_data.FairseqDataset):  # type: ignore[misc, name-defined]
    """Utterances as fairseq's samples; tokens of a batch are its frames, padding included.

    An utterance that is longer than the model's positions is fairseq's to refuse.
    """

    def __init__(
        self,
        utterances: UtteranceFile,
        dictionary: Any,
        masks: SpecAugment,
        mask_seed: int,
    ) -> None:
        self._utterances = utterances
        self._pad, self._eos = int(dictionary.pad()), int(dictionary.eos())
        self._masks = masks
        self._mask_seed = mask_seed
        self._epoch = 1
        # The lengths that fairseq compares with the positions of the model; targets end in EOS.
        self.sizes = np.stack([utterances.n_frame, utterances.n_token + 1], axis=1)

    def __len__(self) -> int:
        return len(self._utterances)

    def __getitem__(self, index: int) -> dict[str, Any]:
        features = self._utterances.features(index)
        if self._masks != SpecAugment():
            # Of the epoch and the utterance alone, so that a resumed training draws the same.
            features = self._masks.masked(features, (self._mask_seed, self._epoch, int(index)))
        target = [*self._utterances.tokens(index).tolist(), self._eos]
        return {"id": index, "source": torch.from_numpy(features), "target": torch.tensor(target)}

    def set_epoch(self, epoch: int) -> None:
        """Draw the masks of this epoch from now on."""
        self._epoch = epoch

    def num_tokens(self, index: int) -> int:
        """Frames of an utterance."""
        return int(self.sizes[index, 0])

    def num_tokens_vec(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Frames of utterances [utterance]."""
        frames: NDArray[np.int64] = self.sizes[indices, 0]
        return frames

    def size(self, index: int) -> tuple[int, int]:
        """Frames and target tokens of an utterance."""
        return int(self.sizes[index, 0]), int(self.sizes[index, 1])

    def ordered_indices(self) -> NDArray[np.int64]:
        """From few frames to many, those that are equally long in an order drawn by fairseq."""
        drawn = np.random.permutation(len(self))  # noqa: NPY002 - fairseq has seeded it
        order: NDArray[np.int64] = drawn[np.argsort(self.sizes[drawn, 0], kind="stable")]
        return order

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """A batch: frames [utterance, frame, bin] and tokens [utterance, token], both padded."""
        if not samples:
            return {}
        targets = [one["target"] for one in samples]
        return {
            "id": torch.tensor([one["id"] for one in samples]),
            "nsentences": len(samples),
            "ntokens": sum(len(target) for target in targets),
            "net_input": {
                "src_tokens": _padded([one["source"] for one in samples], 0.0),
                "src_lengths": torch.tensor([len(one["source"]) for one in samples]),
                "prev_output_tokens": _padded([one.roll(1) for one in targets], self._pad),
            },
            "target": _padded(targets, self._pad),
        }


@_tasks.register_task(TASK, dataclass=SpeechTaskConfig)
class SpeechTask(_tasks.FairseqTask):  # type: ignore[misc, name-defined]
    """Frames in, units of one dictionary out."""

    def __init__(self, cfg: SpeechTaskConfig, dictionary: Any) -> None:
        super().__init__(cfg)
        self._dictionary = dictionary

    @classmethod
    def setup_task(cls, cfg: SpeechTaskConfig, **_: Any) -> SpeechTask:
        """The task with the dictionary of its folder."""
        path = Path(cfg.data) / f"dict.{cfg.target_lang}.txt"
        return cls(cfg, _data.Dictionary.load(str(path)))

    @property
    def source_dictionary(self) -> None:
        """None: sources are no symbols."""
        return

    @property
    def target_dictionary(self) -> Any:
        """The dictionary of the targets."""
        return self._dictionary

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """A model with fresh weights.

        Raises ConfigError where it takes another number of bins than the features have.
        """
        bins = UtteranceFile(Path(self.cfg.data) / "train.h5").feature_bins
        if cfg.input_feat_per_channel != bins:
            raise ConfigError(
                f"model.settings.input_feat_per_channel must be the number of bins of the features "
                f"({bins}), got {cfg.input_feat_per_channel}"
            )
        return super().build_model(cfg, from_checkpoint)

    def load_dataset(self, split: str, combine: bool = False, **_: Any) -> None:
        """Open {split}.h5; features are masked in training alone.

        Raises DataError where a target is not made of the dictionary's symbols.
        """
        utterances = UtteranceFile(Path(self.cfg.data) / f"{split}.h5")
        units = utterances.token_id
        if not len(units) or not 0 <= units.min() <= units.max() < len(self._dictionary):
            raise DataError(
                f"{utterances.path} must have targets that are ids of the "
                f"{len(self._dictionary)} units of its dictionary"
            )
        masks = spec_augment(self.cfg.spec_augment if split == "train" else {})
        self.datasets[split] = SpeechDataset(
            utterances, self._dictionary, masks, self.cfg.mask_seed
        )

    def filter_indices_by_size(
        self,
        indices: NDArray[np.int64],
        dataset: Any,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
    ) -> NDArray[np.int64]:
        """The utterances that the model and a batch can hold; others are counted in the log.

        Raises DataError naming the first where none may be left out: those of the dev set.
        """
        most_frames, most_tokens = max_positions
        frames, tokens = dataset.sizes[indices].T
        fits = (frames > 0) & (frames <= most_frames) & (tokens <= most_tokens)
        if not fits.all():
            rule = (
                f"1 to {most_frames} frames and at most {most_tokens} tokens, see "
                f"train.batch_tokens and model.settings.max_source_positions"
            )
            first = int(np.flatnonzero(~fits)[0])
            found = f"{frames[first]} and {tokens[first]} for utterance {indices[first]}"
            if not ignore_invalid_inputs:
                raise DataError(f"utterances of the dev set must have {rule}, got {found}")
            _log.warning(
                "%d of %d utterances are not trained on: they must have %s, the first has %s",
                (~fits).sum(), len(indices), rule, found,
            )  # fmt: skip
        kept: NDArray[np.int64] = indices[fits]
        return kept


def _padded(rows: Sequence[Tensor], value: float) -> Tensor:
    padded: Tensor = torch.nn.utils.rnn.pad_sequence(
        list(rows), batch_first=True, padding_value=value
    )
    return padded
