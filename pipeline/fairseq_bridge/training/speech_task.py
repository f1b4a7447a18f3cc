"""A speech recognition task for fairseq's Trainer, on files of features."""

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
    """SpecAugment: the numbers of masks, and the largest size of a mask in bins or frames.

    A time mask covers at most `time_mask_frames` frames and `time_mask_share` of the utterance.
    """

    frequency_masks: int = 0
    frequency_mask_bins: int = 0
    time_masks: int = 0
    time_mask_frames: int = 0
    time_mask_share: float = 0.2

    def masked(self, features: Features, seed: Sequence[int]) -> Features:
        """Copy features [frame, bin] with masked values set to 0, the mean of normalised features.

        The masks depend only on `seed`, which is different for each utterance and epoch.
        """
        random = np.random.default_rng(seed)
        masked = features.copy()
        n_frame, n_bin = features.shape
        for _ in range(self.frequency_masks):
            width = random.integers(0, min(self.frequency_mask_bins, n_bin) + 1)
            start = random.integers(0, n_bin - width + 1)
            masked[:, start : start + width] = 0.0
        for _ in range(self.time_masks):
            max_width = min(self.time_mask_frames, int(self.time_mask_share * n_frame))
            width = random.integers(0, max_width + 1)
            start = random.integers(0, n_frame - width + 1)
            masked[start : start + width] = 0.0
        return masked


def spec_augment(settings: Mapping[str, Any]) -> SpecAugment:
    """Read `train.settings.spec_augment`; without settings nothing is masked.

    Raises ConfigError for an unknown key and for a value that is not a number >= 0.
    """
    where = "train.settings.spec_augment"
    known = [field.name for field in fields(SpecAugment)]
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(unknown_key_message(f"{where}.{name}", known, where))
        is_share = name == "time_mask_share"
        is_number = isinstance(value, int | float if is_share else int)
        if isinstance(value, bool) or not is_number or value < 0:
            rule = "a number" if is_share else "an integer"
            raise ConfigError(f"{where}.{name}: must be {rule} >= 0 (got {value!r}).")
    return SpecAugment(**settings)


_data = import_fairseq("fairseq.data")
_tasks = import_fairseq("fairseq.tasks")
_dataclass = import_fairseq("fairseq.dataclass").FairseqDataclass

TASK = "pipeline_speech"
_log = logging.getLogger(__name__)


@dataclass
class SpeechTaskConfig(_dataclass):  # type: ignore[misc, valid-type]
    """A folder with dict.{target_lang}.txt, train.h5 and valid.h5, and the masks in training."""

    data: str = ""
    target_lang: str = ""
    mask_seed: int = 0
    spec_augment: dict[str, Any] = field(default_factory=dict)


def speech_task(job: TrainJob) -> dict[str, Any]:
    """Settings of the task of a job, with the masks of `train.settings.spec_augment`."""
    settings = dict(job.train.get("settings", {}).get("spec_augment", {}))
    return {
        "_name": TASK,
        "data": str(job.data),
        "target_lang": job.target_language,
        "mask_seed": job.seed,
        "spec_augment": settings,
    }


class SpeechDataset(_data.FairseqDataset):  # type: ignore[misc, name-defined]
    """Utterances as fairseq's samples; the size of a batch counts frames, padding included."""

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
        # fairseq compares these lengths with the positions of the model; targets end with EOS.
        self.sizes = np.stack([utterances.n_frame, utterances.n_token + 1], axis=1)

    def __len__(self) -> int:
        return len(self._utterances)

    def __getitem__(self, index: int) -> dict[str, Any]:
        features = self._utterances.features(index)
        if self._masks != SpecAugment():
            # The seed depends on nothing else, so that a resumed training draws the same masks.
            features = self._masks.masked(features, (self._mask_seed, self._epoch, int(index)))
        target = [*self._utterances.tokens(index).tolist(), self._eos]
        return {"id": index, "source": torch.from_numpy(features), "target": torch.tensor(target)}

    def set_epoch(self, epoch: int) -> None:
        """Use the masks of this epoch."""
        self._epoch = epoch

    def num_tokens(self, index: int) -> int:
        """Number of frames of an utterance."""
        return int(self.sizes[index, 0])

    def num_tokens_vec(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of frames of utterances [utterance]."""
        frames: NDArray[np.int64] = self.sizes[indices, 0]
        return frames

    def size(self, index: int) -> tuple[int, int]:
        """Numbers of frames and target tokens of an utterance."""
        return int(self.sizes[index, 0]), int(self.sizes[index, 1])

    def ordered_indices(self) -> NDArray[np.int64]:
        """Indices sorted by number of frames, ties in random order."""
        shuffled = np.random.permutation(len(self))  # noqa: NPY002 - fairseq has seeded it
        order: NDArray[np.int64] = shuffled[np.argsort(self.sizes[shuffled, 0], kind="stable")]
        return order

    def collater(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Pad samples to a batch: frames [utterance, frame, bin], tokens [utterance, token]."""
        if not samples:
            return {}
        sources = [sample["source"] for sample in samples]
        targets = [sample["target"] for sample in samples]
        return {
            "id": torch.tensor([sample["id"] for sample in samples]),
            "nsentences": len(samples),
            "ntokens": sum(len(target) for target in targets),
            "net_input": {
                "src_tokens": _padded(sources, 0.0),
                "src_lengths": torch.tensor([len(source) for source in sources]),
                "prev_output_tokens": _padded([target.roll(1) for target in targets], self._pad),
            },
            "target": _padded(targets, self._pad),
        }


@_tasks.register_task(TASK, dataclass=SpeechTaskConfig)
class SpeechTask(_tasks.FairseqTask):  # type: ignore[misc, name-defined]
    """Speech recognition: frames in, subwords of one dictionary out."""

    def __init__(self, cfg: SpeechTaskConfig, dictionary: Any) -> None:
        super().__init__(cfg)
        self._dictionary = dictionary

    @classmethod
    def setup_task(cls, cfg: SpeechTaskConfig, **_: Any) -> SpeechTask:
        """Create the task with the dictionary of its folder."""
        path = Path(cfg.data) / f"dict.{cfg.target_lang}.txt"
        return cls(cfg, _data.Dictionary.load(str(path)))

    @property
    def source_dictionary(self) -> None:
        """None, because sources are not symbols."""
        return

    @property
    def target_dictionary(self) -> Any:
        """The dictionary of the targets."""
        return self._dictionary

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build a model with fresh weights.

        Raises ConfigError if it expects another number of bins than the features have.
        """
        bins = UtteranceFile(Path(self.cfg.data) / "train.h5").feature_bins
        if cfg.input_feat_per_channel != bins:
            raise ConfigError(
                f"model.settings.input_feat_per_channel: the features have {bins} bins "
                f"(got {cfg.input_feat_per_channel}). Set it to data.speech.feature_bins."
            )
        return super().build_model(cfg, from_checkpoint)

    def load_dataset(self, split: str, combine: bool = False, **_: Any) -> None:
        """Open {split}.h5; only features of split train are masked.

        Raises DataError if there are no targets or a target token is not in the dictionary.
        """
        utterances = UtteranceFile(Path(self.cfg.data) / f"{split}.h5")
        tokens = utterances.token_id
        if not len(tokens) or not 0 <= tokens.min() <= tokens.max() < len(self._dictionary):
            raise DataError(
                f"{utterances.path}: targets must be ids of the {len(self._dictionary)} entries of "
                "the dictionary. Run python -m stages.prepare again."
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
        """Leave out utterances that are too long for the model or a batch, and log their number.

        Raises DataError, naming the first one, if none may be left out, as in the dev set.
        """
        max_frames, max_tokens = max_positions
        frames, tokens = dataset.sizes[indices].T
        fits = (frames > 0) & (frames <= max_frames) & (tokens <= max_tokens)
        if not fits.all():
            first = int(np.flatnonzero(~fits)[0])
            reason = (
                f"1 to {max_frames} frames and at most {max_tokens} tokens are allowed "
                f"(got {frames[first]} and {tokens[first]} for utterance {indices[first]}). "
                "Increase train.batch_tokens or model.settings.max_source_positions."
            )
            if not ignore_invalid_inputs:
                raise DataError(f"dev set: {reason}")
            _log.warning(
                "%d of %d utterances are left out of training: %s",
                (~fits).sum(), len(indices), reason,
            )  # fmt: skip
        kept: NDArray[np.int64] = indices[fits]
        return kept


def _padded(rows: Sequence[Tensor], value: float) -> Tensor:
    padded: Tensor = torch.nn.utils.rnn.pad_sequence(
        list(rows), batch_first=True, padding_value=value
    )
    return padded
