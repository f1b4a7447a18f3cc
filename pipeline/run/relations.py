"""Rules between settings, and settings that follow from others."""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING

from omegaconf import ListConfig, OmegaConf

from pipeline.errors import ConfigError
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

if TYPE_CHECKING:
    from pipeline.run.schema import PipelineConfig

_SCORE_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
_PLACEHOLDERS = ("part", "task", "test_set")  # in the path of a file of scores


def check_relations(config: PipelineConfig) -> None:
    """Raise ConfigError naming key, rule and value if settings do not fit together."""
    for name in ("beam", "temperature", "length_norm"):
        values = config.uncertainty[name]  # type: ignore[index]
        if values == []:
            raise ConfigError(f"uncertainty.{name}: must have at least one value (got []).")
        if isinstance(values, list | ListConfig) and len({*values}) < len(values):
            raise ConfigError(f"uncertainty.{name}: must have distinct values (got {values}).")
    _check_ensembles(config)
    if config.data.min_words > config.data.max_words:
        raise ConfigError(
            f"data.min_words: must be at most data.max_words={config.data.max_words} "
            f"(got {config.data.min_words})."
        )
    baselines = [role for role, test_set in config.task.test_sets.items() if test_set.baseline]
    if len(baselines) != 1:
        raise ConfigError(
            f"task.test_sets: must have exactly one set with baseline: true (got {baselines})."
        )
    decode = config.decode
    if decode.n_best is not None and decode.n_best > decode.beam:
        raise ConfigError(
            f"decode.n_best: must be at most decode.beam={decode.beam} (got {decode.n_best})."
        )
    _check_kinds(config)
    _check_units(config)
    if config.task.family == "speech":
        _check_speech(config)
    else:
        _check_sources(config)
    _check_training(config)
    _check_scores(config)


def name_own_corpora(config: PipelineConfig) -> None:
    """Set `corpus` of the test sets that are made from the user's own corpus to its name."""
    for test_set in config.task.test_sets.values():
        kind = KINDS_OF_TEST_SETS[config.task.family, test_set.kind]
        if kind.users_corpus is not None:
            key, name = kind.users_corpus
            if OmegaConf.select(config, key) is not None:  # type: ignore[arg-type]
                test_set.corpus = name.format(**test_set)  # type: ignore[arg-type]


def _check_ensembles(config: PipelineConfig) -> None:
    ensemble = config.ensemble
    seeds = list(ensemble.seeds)
    if len(set(seeds)) != len(seeds):
        raise ConfigError(f"ensemble.seeds: must be distinct (got {seeds}).")
    for key, further in ensemble.also.items():
        if further.name != key:
            raise ConfigError(
                f"ensemble.also.{key}: its key must be its name (got {further.name}). "
                f"Write ensemble.also.{further.name}."
            )


def _check_training(config: PipelineConfig) -> None:
    train = config.train
    if train.average_last > train.keep_checkpoints:
        raise ConfigError(
            f"train.average_last: must be at most train.keep_checkpoints={train.keep_checkpoints} "
            f"(got {train.average_last})."
        )
    available = train.updates // train.checkpoint_interval_updates
    if available < train.average_last:
        raise ConfigError(
            f"train.average_last: must be at most {available}, the number of checkpoints of "
            f"train.updates={train.updates} at train.checkpoint_interval_updates="
            f"{train.checkpoint_interval_updates} (got {train.average_last})."
        )
    cycle = train.updates / train.cycles
    if train.cycles > 1 and train.schedule != "cosine":
        raise ConfigError(
            f"train.cycles: must be 1 if train.schedule is {train.schedule} (got {train.cycles})."
        )
    if train.cycles > 1 and cycle % train.checkpoint_interval_updates:
        raise ConfigError(
            f"train.cycles: must divide train.updates={train.updates} into multiples of "
            f"train.checkpoint_interval_updates={train.checkpoint_interval_updates} "
            f"(got {train.cycles})."
        )
    if train.schedule == "cosine" and train.warmup_updates >= cycle:
        raise ConfigError(
            f"train.warmup_updates: must be less than {cycle:g}, the updates of one cosine cycle "
            f"(got {train.warmup_updates})."
        )


def _check_scores(config: PipelineConfig) -> None:
    for name, scores in config.metrics.scores.items():
        if not _SCORE_NAME.fullmatch(name):
            raise ConfigError(
                f"metrics.scores.{name}: a name must consist of letters, digits and _ (got {name})."
            )
        try:
            names = {field for _, field, _, _ in Formatter().parse(scores.files)} - {None}
            scores.files.format(**dict.fromkeys(_PLACEHOLDERS, ""))
        except (ValueError, LookupError):  # braces that are not closed, {} or another name
            names = {scores.files}
        if not names <= {*_PLACEHOLDERS}:
            raise ConfigError(
                f"metrics.scores.{name}.files: must be a path with no other placeholders than "
                f"{', '.join(f'{{{known}}}' for known in _PLACEHOLDERS)} (got {scores.files})."
            )


def _check_kinds(config: PipelineConfig) -> None:
    """Every test set must be of a kind of the task's family, with the settings this needs."""
    family = config.task.family
    for role, test_set in config.task.test_sets.items():
        key = f"task.test_sets.{role}"
        kind = KINDS_OF_TEST_SETS.get((family, test_set.kind))
        if kind is None:
            names = ", ".join(
                kind.name for kind in KINDS_OF_TEST_SETS.values() if kind.family == family
            )
            raise ConfigError(
                f"{key}.kind: must be a kind for task.family={family} (got {test_set.kind}). "
                f"Choose one of {names}."
            )
        for name in kind.needs:
            if test_set[name] is None:  # type: ignore[index]
                raise ConfigError(f"{key}.{name}: must be set for kind {kind.name} (got null).")


def _check_units(config: PipelineConfig) -> None:
    """Imported subwords need all their files, and models that have been trained already."""
    units = config.data.units
    files = [name for name in units if name != "name"]  # type: ignore[attr-defined]
    given = [name for name in files if units[name] is not None]  # type: ignore[index]
    if units.name == "learnt":
        for name in given:
            raise ConfigError(
                f"data.units.{name}: must be null if data.units is learnt (got {units[name]})."  # type: ignore[index]
            )
        return
    if config.task.family == "speech":
        raise ConfigError("data.units: must be learnt if task.family is speech (got imported).")
    if (units.codes is None) is (units.sentencepiece is None):
        raise ConfigError(
            f"data.units.codes, data.units.sentencepiece: exactly one must be set if data.units is "
            f"imported (got {units.codes} and {units.sentencepiece})."
        )
    for name in ("source_dictionary", "target_dictionary"):
        if name not in given:
            raise ConfigError(
                f"data.units.{name}: must be set if data.units is imported (got null)."
            )
    if list(config.ensemble.seeds):
        raise ConfigError(
            f"ensemble.seeds: must be [] if data.units is imported, since nothing is trained "
            f"(got {list(config.ensemble.seeds)}). Choose ensemble=imported."
        )


def _check_speech(config: PipelineConfig) -> None:
    speech = config.data.speech
    if speech.train and "SYNTHETIC" in speech.corpus:
        raise ConfigError(
            f"data.speech.corpus: must name the corpus of data.speech.train (got {speech.corpus})."
        )
    for name in ("dev", "test", "test_other"):
        if not speech.train and speech[name]:  # type: ignore[index]
            raise ConfigError(
                f"data.speech.{name}: must be empty if data.speech.train is (got {speech[name]})."  # type: ignore[index]
            )
    if speech.shortest_seconds > speech.longest_seconds:
        raise ConfigError(
            f"data.speech.shortest_seconds: must be at most data.speech.longest_seconds="
            f"{speech.longest_seconds} (got {speech.shortest_seconds})."
        )
    model_bins = config.model.settings.get("input_feat_per_channel", speech.feature_bins)
    if model_bins != speech.feature_bins:
        raise ConfigError(
            f"model.settings.input_feat_per_channel: must be data.speech.feature_bins="
            f"{speech.feature_bins} (got {model_bins})."
        )


def _check_sources(config: PipelineConfig) -> None:
    data = config.data
    given = {"train": data.train, "dev": data.dev, "test": data.test}
    if data.source == "libreoffice":
        for name, value in given.items():
            if value is not None:
                raise ConfigError(
                    f"data.{name}: must be null if data.source is libreoffice (got {value})."
                )
        return
    # With imported subwords nothing is trained: text is needed for held-out sets only.
    is_text_needed = data.units.name == "learnt" or data.dev is None or data.test is None
    needed = {"train": is_text_needed, "test": data.source == "sacrebleu"}
    for name, is_needed in needed.items():
        if is_needed and given[name] is None:
            raise ConfigError(
                f"data.{name}: must be set if data.source is {data.source} (got null)."
            )
    if "LibreOffice help" in data.corpus:
        raise ConfigError(
            f"data.corpus: must name the corpus of data.source={data.source} (got {data.corpus})."
        )
