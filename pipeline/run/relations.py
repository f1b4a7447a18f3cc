"""Rules between settings, and settings that follow from others."""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Any

from omegaconf import ListConfig, OmegaConf

from pipeline.errors import ConfigError
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

if TYPE_CHECKING:
    from pipeline.run.schema import PipelineConfig, TestSetConfig

# Values of the settings of corpora with which the demo's own are used.
_DEMO_CORPORA: tuple[Any, ...] = (None, [], "libreoffice")
_NAME = re.compile(r"[\w-]+")
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
    _check_name("task.name", config.task.name, "task")
    _check_test_sets(config)
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
    """Give test sets that are made from the user's own corpora the names of these corpora.

    Raises ConfigError if another test set has such a name.
    """
    named: dict[str, TestSetConfig] = {}
    for name, test_set in config.task.test_sets.items():
        users = KINDS_OF_TEST_SETS[config.task.family, test_set.kind].users_corpus
        if users is not None and OmegaConf.select(config, users.setting) not in _DEMO_CORPORA:  # type: ignore[arg-type]
            fields = {
                **test_set,  # type: ignore[dict-item]
                "corpus": OmegaConf.select(config, users.corpus_setting),  # type: ignore[arg-type]
            }
            if users.corpus is not None:
                test_set.corpus = users.corpus.format(**fields)
            if name == users.in_place_of:
                name = _as_name(users.name.format(**fields))
        if name in named:
            raise ConfigError(
                f"task.test_sets.{name}: two test sets would have this name, the name of the "
                "user's own corpus. Rename one of them."
            )
        named[name] = test_set
    config.task.test_sets = named


def _as_name(corpus: str) -> str:
    """Return the name of a corpus in lower case, with hyphens between its words."""
    return re.sub(r"[^\w]+", "-", corpus.casefold()).strip("-")


def _check_name(key: str, name: str, owner: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{key}: a name must consist of letters, digits, hyphens and underscores, since "
            f"folders have it (got {name!r}). Rename the {owner}."
        )


def _check_test_sets(config: PipelineConfig) -> None:
    """One set is the baseline, and a name or a role in the paper belongs to one set."""
    test_sets = config.task.test_sets
    baselines = [name for name, test_set in test_sets.items() if test_set.baseline]
    if len(baselines) != 1:
        raise ConfigError(
            f"task.test_sets: must have exactly one set with baseline: true (got {baselines})."
        )
    (baseline,) = baselines
    if not test_sets[baseline].in_domain:
        raise ConfigError(
            f"task.test_sets.{baseline}.in_domain: must be true for the set with baseline: true "
            f"(got false). Sets that are out of domain are compared with it."
        )
    of_role: dict[str, str] = {}
    for name, test_set in test_sets.items():
        _check_name(f"task.test_sets.{name}", name, "test set")
        for role in dict.fromkeys((name, *test_set.roles)):
            if role in of_role:
                raise ConfigError(
                    f"task.test_sets.{name}: {role} is a name or role of {of_role[role]} too. "
                    "Give each test set its own."
                )
            of_role[role] = name


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
    """Imported subwords need all their files; they and own ones need models that are trained."""
    units = config.data.units
    files = [name for name in units if name != "name"]  # type: ignore[attr-defined]
    given = [name for name in files if units[name] is not None]  # type: ignore[index]
    if units.name != "imported":
        for name in given:
            raise ConfigError(
                f"data.units.{name}: must be null if data.units is {units.name} "
                f"(got {units[name]})."  # type: ignore[index]
            )
    if units.name == "learnt":
        return
    if units.name == "imported" and config.task.family == "speech":
        raise ConfigError(
            "data.units: must be learnt or own if task.family is speech (got imported)."
        )
    if list(config.ensemble.seeds):
        raise ConfigError(
            f"ensemble.seeds: must be [] if data.units is {units.name}, since nothing is trained "
            f"(got {list(config.ensemble.seeds)}). Choose an ensemble of models that you have, "
            f"such as ensemble=imported or ensemble=huggingface."
        )
    if units.name == "own":
        return
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


def _check_speech(config: PipelineConfig) -> None:
    speech = config.data.speech
    # Where nothing is trained, the diversity of members is measured on dev.
    has_own_models = config.data.units.name == "own"
    for name in ("test", "test_other") if has_own_models else ("dev", "test", "test_other"):
        if not speech.train and speech[name]:  # type: ignore[index]
            raise ConfigError(
                f"data.speech.{name}: must be empty if data.speech.train is (got {speech[name]}). "  # type: ignore[index]
                f"Set data.speech.train, or list your speech as a test set of kind files."
            )
    if (speech.train or speech.dev) and "SYNTHETIC" in speech.corpus:
        setting = "train" if speech.train else "dev"
        raise ConfigError(
            f"data.speech.corpus: must name the corpus of data.speech.{setting} "
            f"(got {speech.corpus})."
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
    data, task = config.data, config.task
    if task.source_language == task.target_language:
        raise ConfigError(
            f"task.target_language: must differ from task.source_language (got "
            f"{task.target_language}). Give the two sides of your text different codes."
        )
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
