"""Checks of settings that must go together, and what follows from one setting for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omegaconf import ListConfig

from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from pipeline.run.settings import EnsembleConfig, PipelineConfig


_CHECKPOINT_ENSEMBLE = "pipeline.ensembles.kinds.checkpoint"

_SHARED_KINDS = ("held_out", "files")
_SPEECH_KINDS = ("harder", "meetings", "other_language", "telephone_prompts")


def check_relations(config: PipelineConfig) -> None:
    """Raise ConfigError, naming key, rule and value, where settings do not go together."""
    for name in ("beam", "temperature", "length_norm"):
        values = config.uncertainty[name]  # type: ignore[index]
        if values == []:
            raise ConfigError(f"uncertainty.{name} must have at least one value, got []")
        if isinstance(values, list | ListConfig) and len({*values}) < len(values):
            raise ConfigError(f"uncertainty.{name} must have distinct values, got {values}")
    _check_ensembles(config)
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
    _check_kinds(config)
    _check_units(config)
    if config.task.family == "speech":
        _check_speech(config)
    else:
        _check_sources(config)
    _check_training(config)


def name_own_corpora(config: PipelineConfig) -> None:
    """Let the sets that are made of the user's own corpora say so, instead of their stand-in."""
    speech = config.data.speech
    for test_set in config.task.test_sets.values():
        if test_set.kind == "spoken" and config.data.librispeech is not None:
            test_set.corpus = f"LibriSpeech {test_set.librispeech_subset}, transcripts"
        elif test_set.kind == "debian_reference" and config.data.khresmoi is not None:
            test_set.corpus = "Khresmoi-Summary, dev and test"
        elif test_set.kind == "meetings" and speech.ami is not None:
            test_set.corpus = "AMI"
        elif test_set.kind == "other_language" and speech.common_voice is not None:
            test_set.corpus = f"Common Voice, {test_set.language}"


def _check_ensembles(config: PipelineConfig) -> None:
    ensemble = config.ensemble
    seeds = list(ensemble.seeds)
    # Models that are given need no training run.
    trained = "checkpoints" not in ensemble.settings
    if len(set(seeds)) != len(seeds) or (trained and not seeds):
        raise ConfigError(f"ensemble.seeds must be distinct and at least one, got {seeds}")
    _check_checkpoints(config, ensemble)
    for key, further in ensemble.also.items():
        _check_checkpoints(config, further)
        if further.name != key:
            raise ConfigError(
                f"ensemble.also.{key} must be called as its name, {further.name}, got {key}"
            )


def _check_training(config: PipelineConfig) -> None:
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
    cycle = train.updates / train.cycles
    if train.cycles > 1 and train.schedule != "cosine":
        raise ConfigError(
            f"train.cycles must be 1 where train.schedule is {train.schedule}, got {train.cycles}"
        )
    if train.cycles > 1 and cycle % train.checkpoint_interval_updates:
        raise ConfigError(
            f"train.cycles must cut train.updates={train.updates} into whole multiples of "
            f"train.checkpoint_interval_updates={train.checkpoint_interval_updates}, "
            f"got {train.cycles}"
        )
    if train.schedule == "cosine" and train.warmup_updates >= cycle:
        raise ConfigError(
            f"train.warmup_updates must be < the {cycle:g} updates of a cycle where "
            f"train.schedule is cosine, got {train.warmup_updates}"
        )


def _check_kinds(config: PipelineConfig) -> None:
    speech = config.task.family == "speech"
    for role, test_set in config.task.test_sets.items():
        if test_set.kind not in _SHARED_KINDS and (test_set.kind in _SPEECH_KINDS) is not speech:
            raise ConfigError(
                f"task.test_sets.{role}.kind must be one for task.family={config.task.family}, "
                f"got {test_set.kind}"
            )


def _check_units(config: PipelineConfig) -> None:
    """Units of the user's own come with all their files, and for models that are trained."""
    units = config.data.units
    files = [name for name in units if name != "name"]  # type: ignore[attr-defined]
    given = [name for name in files if units[name] is not None]  # type: ignore[index]
    if units.name == "learnt":
        for name in given:
            raise ConfigError(
                f"data.units.{name} must be null where data.units is learnt, got {units[name]}"  # type: ignore[index]
            )
        return
    if config.task.family == "speech":
        raise ConfigError("data.units must be learnt where task.family is speech, got imported")
    if (units.codes is None) is (units.sentencepiece is None):
        raise ConfigError(
            f"data.units.codes or data.units.sentencepiece must be given, one of the two, "
            f"got {units.codes} and {units.sentencepiece}"
        )
    for name in ("source_dictionary", "target_dictionary"):
        if name not in given:
            raise ConfigError(f"data.units.{name} must be given for imported units, got null")
    if list(config.ensemble.seeds):
        raise ConfigError(
            f"ensemble.seeds must be [] where data.units is imported, as with ensemble=imported: "
            f"nothing is trained, got {list(config.ensemble.seeds)}"
        )


def _check_speech(config: PipelineConfig) -> None:
    speech = config.data.speech
    if speech.train and "SYNTHETIC" in speech.corpus:
        raise ConfigError(
            f"data.speech.corpus must name the corpus behind data.speech.train, got {speech.corpus}"
        )
    for name in ("dev", "test", "test_other"):
        if not speech.train and speech[name]:  # type: ignore[index]
            raise ConfigError(
                f"data.speech.{name} must be empty where data.speech.train is, got {speech[name]}"  # type: ignore[index]
            )
    if speech.shortest_seconds > speech.longest_seconds:
        raise ConfigError(
            f"data.speech.shortest_seconds must be <= data.speech.longest_seconds, "
            f"got {speech.shortest_seconds} > {speech.longest_seconds}"
        )
    taken = config.model.settings.get("input_feat_per_channel", speech.feature_bins)
    if taken != speech.feature_bins:
        raise ConfigError(
            f"model.settings.input_feat_per_channel must be data.speech.feature_bins "
            f"({speech.feature_bins}), got {taken}"
        )


def _check_checkpoints(config: PipelineConfig, ensemble: EnsembleConfig) -> None:
    """The members of a checkpoint ensemble must be among the checkpoints that are kept."""
    counts = {name: ensemble.settings.get(name, 0) for name in ("members", "average", "every")}
    if ensemble._target_ != _CHECKPOINT_ENSEMBLE or {*map(type, counts.values())} != {int}:
        return
    needed = counts["average"] + (counts["members"] - 1) * counts["every"]
    if needed > config.train.keep_checkpoints:
        raise ConfigError(
            f"train.keep_checkpoints must be >= the {needed} that ensemble {ensemble.name} needs, "
            f"got {config.train.keep_checkpoints}"
        )


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
    # With units that are imported, nothing is trained; text is needed to hold sets out of it.
    is_text_needed = data.units.name == "learnt" or data.dev is None or data.test is None
    needed = {"train": is_text_needed, "test": data.source == "sacrebleu"}
    for name, is_needed in needed.items():
        if is_needed and given[name] is None:
            raise ConfigError(
                f"data.{name} must be given where data.source is {data.source}, got null"
            )
    if "LibreOffice help" in data.corpus:
        raise ConfigError(
            f"data.corpus must name the corpus behind data.source={data.source}, got {data.corpus}"
        )
