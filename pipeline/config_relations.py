"""Checks of settings that must go together, and what follows from one setting for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig


def check_relations(config: PipelineConfig) -> None:
    """Raise ConfigError, naming key, rule and value, where settings do not go together."""
    for name in ("beam", "temperature", "length_norm"):
        if config.uncertainty[name] == []:  # type: ignore[index]
            raise ConfigError(f"uncertainty.{name} must have at least one value, got []")
    seeds = list(config.ensemble.seeds)
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"ensemble.seeds must be distinct and at least one, got {seeds}")
    if config.data.min_words > config.data.max_words:
        raise ConfigError(
            f"data.min_words must be <= data.max_words, "
            f"got {config.data.min_words} > {config.data.max_words}"
        )
    baselines = [role for role, one in config.task.test_sets.items() if one.baseline]
    if len(baselines) != 1:
        raise ConfigError(
            f"task.test_sets must have exactly one set with baseline: true, got {baselines}"
        )
    decode = config.decode
    if decode.n_best is not None and decode.n_best > decode.beam:
        raise ConfigError(
            f"decode.n_best must be <= decode.beam ({decode.beam}), got {decode.n_best}"
        )
    _check_sources(config)
    train = config.train
    if train.average_last > train.keep_checkpoints:
        raise ConfigError(
            f"train.average_last must be <= train.keep_checkpoints ({train.keep_checkpoints}), "
            f"got {train.average_last}"
        )
    available = train.updates // train.checkpoint_interval_updates
    if available < train.average_last:
        raise ConfigError(
            f"train.average_last must be <= the {available} checkpoints that {train.updates} "
            f"updates give at train.checkpoint_interval_updates="
            f"{train.checkpoint_interval_updates}, got {train.average_last}"
        )


def name_transcripts(config: PipelineConfig) -> None:
    """Let the sets that are made of the user's LibriSpeech say so, instead of their stand-in."""
    if config.data.librispeech is not None:
        for test_set in config.task.test_sets.values():
            if test_set.kind == "spoken":
                test_set.corpus = f"LibriSpeech {test_set.librispeech_subset}, transcripts"


def _check_sources(config: PipelineConfig) -> None:
    data = config.data
    given = {"train": data.train, "dev": data.dev, "test": data.test}
    if data.source == "libreoffice":
        for name, value in given.items():
            if value is not None:
                raise ConfigError(
                    f"data.{name} must be null where data.source is libreoffice, got {value}"
                )
        return
    needed = ["train", *(["test"] if data.source == "sacrebleu" else [])]
    for name in needed:
        if given[name] is None:
            raise ConfigError(
                f"data.{name} must be given where data.source is {data.source}, got null"
            )
    if "LibreOffice help" in data.corpus:
        raise ConfigError(
            f"data.corpus must name the corpus behind data.source={data.source}, got {data.corpus}"
        )
