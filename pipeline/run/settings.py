"""Composed settings: checked against the schema of conf/, read from a file, masked."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_type_hints

import yaml
from omegaconf import MISSING, DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ConfigError
from pipeline.run.extras import extras_named
from pipeline.run.relations import check_relations, name_own_corpora
from pipeline.run.schema import (
    CopiesConfig,
    DataConfig,
    DecodeConfig,
    DumpConfig,
    EnsembleConfig,
    MainEnsembleConfig,
    PipelineConfig,
    ScoresConfig,
    SpeechDataConfig,
    TaskConfig,
    TestSetConfig,
    TrainConfig,
    UnitsConfig,
)

__all__ = [
    "CONF",
    "DVC_YAML",
    "IS_CHECKOUT",
    "MACHINE_KEYS",
    "ROOT",
    "CopiesConfig",
    "DataConfig",
    "DecodeConfig",
    "DumpConfig",
    "EnsembleConfig",
    "MainEnsembleConfig",
    "PipelineConfig",
    "ScoresConfig",
    "SpeechDataConfig",
    "TaskConfig",
    "TestSetConfig",
    "TrainConfig",
    "UnitsConfig",
    "changed",
    "decode_settings",
    "implementation",
    "implementations",
    "iterate_values",
    "masked",
    "plain",
    "schema",
    "typed",
    "typed_file",
    "unknown_key_message",
]

ROOT = Path(__file__).resolve().parents[2]  # the folder of pipeline/ and stages/
# What a wheel has inside of pipeline/ lies beside it in a checkout (see pyproject.toml).
_INSTALLED = ROOT / "pipeline" / "repository"
IS_CHECKOUT = not _INSTALLED.is_dir()
_FILES = ROOT if IS_CHECKOUT else _INSTALLED
CONF = _FILES / "conf"
DVC_YAML = _FILES / "dvc.yaml"
_LARGEST_INTEGER = 2**63 - 1  # the largest of numpy
# Settings that say where and how a run is carried out and never enter a result.
MACHINE_KEYS = ("io", "part", "from_config", "tracking")
_QUOTE = 'YAML reads no, off, yes and on as false and true. Write such a text in quotes, as "no".'


@cache
def schema() -> DictConfig:
    """Return all keys with their types and defaults. All callers share it, so do not change it."""
    return cast(DictConfig, OmegaConf.structured(PipelineConfig))


def typed(config: DictConfig) -> PipelineConfig:
    """Check a composed config against the schema; return it read-only, with the schema's types.

    Raises ConfigError naming the key, the rule and the value.
    """
    try:
        merged = OmegaConf.merge(schema(), config)
        OmegaConf.resolve(merged)
    except OmegaConfBaseException as error:
        raise ConfigError(_schema_message(error, config)) from None
    _refuse_truth_values(OmegaConf.to_container(config), plain(merged), "")
    _expand_home(merged)
    _check_rules(PipelineConfig, cast(DictConfig, merged), "")
    check_relations(cast(PipelineConfig, merged))
    _check_training_of_ensembles(cast(PipelineConfig, merged))
    name_own_corpora(cast(PipelineConfig, merged))
    OmegaConf.set_readonly(merged, True)
    return cast(PipelineConfig, merged)


def typed_file(path: Path, machine: DictConfig, given: Sequence[str]) -> PipelineConfig:
    """Return the checked settings of a file that stage compose wrote.

    given: keys that the command line sets; machine keys among them are read from `machine`. Raises
    ConfigError naming the file and, if a setting is wrong, the key, the rule and the value.
    """
    try:
        _refuse_aliases(path)
        settings = OmegaConf.load(path)
        if not isinstance(settings, DictConfig):
            raise ValueError("it is a list")
        for key in given:
            if key.split(".")[0] in MACHINE_KEYS:
                OmegaConf.update(settings, key, OmegaConf.select(machine, key))
        return typed(settings)
    except OSError as error:
        reason = error.strerror or str(error)
    except (ValueError, RecursionError, yaml.YAMLError, ConfigError) as error:
        reason = " ".join(str(error).split()).removesuffix(".")
    raise ConfigError(
        f"{path}: not a file of settings ({reason}). "
        "Set from_config to a file that stage compose wrote."
    )


def decode_settings(option: str = "beam", **settings: Any) -> DecodeConfig:
    """The settings of an option of group `decode` (beam, greedy, sample, ...), for use from Python.

    settings: those that differ from the option's. Raises ConfigError for an unknown option or
    setting, or for a value that is not allowed.
    """
    config = OmegaConf.structured(DecodeConfig)
    for name in dict.fromkeys(("beam", option)):
        path = CONF / "decode" / f"{name}.yaml"
        if not path.is_file():
            known = sorted(file.stem for file in path.parent.glob("*.yaml"))
            raise ConfigError(unknown_key_message(name, known, "group decode"))
        layer = cast(DictConfig, OmegaConf.load(path))
        layer.pop("defaults", None)
        config = OmegaConf.merge(config, layer)
    config.seed = 0  # in conf/ it is the seed of the run
    for name in settings:
        if name not in config:
            raise ConfigError(unknown_key_message(name, list(map(str, config)), "group decode"))
    merged = cast(DictConfig, OmegaConf.merge(config, settings))
    _check_rules(DecodeConfig, merged, "decode.")
    return cast(DecodeConfig, merged)


def masked(config: PipelineConfig, visible: list[str]) -> PipelineConfig:
    """Return the config with every key outside `visible` (dotted paths) reading as missing."""
    masked_config = OmegaConf.create(cast(DictConfig, config))
    OmegaConf.set_readonly(masked_config, False)
    _mask(masked_config, "", (*visible, *MACHINE_KEYS))
    OmegaConf.set_readonly(masked_config, True)
    return cast(PipelineConfig, masked_config)


def changed(config: PipelineConfig, changes: Mapping[str, Any]) -> PipelineConfig:
    """Return the settings with other values, by key."""
    copy = OmegaConf.create(cast(DictConfig, config))
    OmegaConf.set_readonly(copy, False)
    for key, value in changes.items():
        OmegaConf.update(copy, key, value, merge=False)
    OmegaConf.set_readonly(copy, True)
    return cast(PipelineConfig, copy)


def plain(node: Any) -> Any:
    """Return a node of the config as plain lists and dicts."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def implementation(dotted: str, key: str) -> Callable[..., Any]:
    """Return the function that setting `key` names.

    Raises MachineError if it needs an extra that is not installed, ConfigError if it cannot be
    imported for another reason or has no Python source.
    """
    module_name, _, name = dotted.rpartition(".")
    try:
        with extras_named(f"{key}={dotted}"):
            function = getattr(import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{key}: must name an importable function, package.module.function "
            f"(got {dotted!r}: {error})."
        ) from None
    if not callable(function):
        raise ConfigError(f"{key}: must name a function (got {dotted!r}).")
    try:
        inspect.getfile(function)
    except TypeError:  # results depend on the code of the function
        raise ConfigError(
            f"{key}: must name a function or class written in Python (got {dotted!r})."
        ) from None
    return cast(Callable[..., Any], function)


def implementations(functions: Mapping[str, str], key: str) -> dict[str, Callable[..., Any]]:
    """Return the functions that the entries of setting `key` name, by entry."""
    return {name: implementation(dotted, f"{key}.{name}") for name, dotted in functions.items()}


def _check_training_of_ensembles(config: PipelineConfig) -> None:
    """Let each registered kind of ensemble check that training gives what it needs."""
    # Without any training run there are no further ensembles, as with ensemble=imported.
    chosen = {"ensemble": config.ensemble} | {
        f"ensemble.also.{key}": further
        for key, further in config.ensemble.also.items()
        if config.ensemble.seeds or further.seeds
    }
    for key, ensemble in chosen.items():
        function = implementation(ensemble._target_, f"{key}._target_")
        kind = getattr(function, "kind", None)  # see pipeline.ensembles.kinds
        if kind is not None:
            kind.check_training(ensemble, config.train)


def unknown_key_message(key: str, choices: list[str], where: str) -> str:
    """Return one line about a key that does not exist, with the nearest and all valid names."""
    name = key.rpartition(".")[2]
    nearest = difflib.get_close_matches(name, choices, n=1)
    hint = f" Did you mean {nearest[0]}?" if nearest else ""
    return f"{key}: no such setting.{hint} {where} has {', '.join(sorted(choices))}."


def iterate_values(value: Any) -> Iterator[Any]:
    """Iterate over the values of a setting that is one value or a list of them."""
    yield from value if isinstance(value, list | ListConfig) else [value]


def _refuse_truth_values(given: Any, merged: Any, key: str) -> None:
    """Refuse true and false where the schema has a text.

    YAML reads `no`, the code of Norwegian, as false, which OmegaConf then turns into 'False'.
    """
    if isinstance(given, dict):
        for name, value in given.items():
            _refuse_truth_values(value, merged[name], f"{key}.{name}".removeprefix("."))
    elif isinstance(given, bool) and isinstance(merged, str):
        raise ConfigError(f"{key}: must be a text (got {str(given).lower()}). {_QUOTE}")


def _expand_home(node: Any) -> None:
    """Replace ~/ at the beginning of texts, which are paths, by the home folder."""
    for key in range(len(node)) if isinstance(node, ListConfig) else list(node):
        value = node[key] if not OmegaConf.is_missing(node, key) else None
        if isinstance(value, str) and value.startswith("~/"):
            node[key] = str(Path(value).expanduser())
        elif OmegaConf.is_config(value):
            _expand_home(value)


def _check_rules(schema: type, config: DictConfig, prefix: str) -> None:
    """Check every setting below `prefix` against the rule of its field."""
    hints = get_type_hints(schema)
    for setting in fields(schema):
        key = prefix + setting.name
        if OmegaConf.is_missing(config, setting.name):
            raise ConfigError(f"{key}: must have a value (got ???).")
        value = config[setting.name]
        if is_dataclass(hints[setting.name]):
            _check_rules(cast(type, hints[setting.name]), value, f"{key}.")
        elif isinstance(value, DictConfig):
            for name, child in value.items():
                child_schema = OmegaConf.get_type(child) if isinstance(child, DictConfig) else None
                if is_dataclass(child_schema):
                    _check_rules(cast(type, child_schema), child, f"{key}.{name!s}.")
        else:
            _check_value(key, plain(value), setting.metadata)


def _check_value(key: str, value: Any, rule: Any) -> None:
    if "holds" in rule and not rule["holds"](value):
        raise ConfigError(f"{key}: must be {rule['rule']} (got {value}).")
    for item in iterate_values(value):
        if isinstance(item, float) and not math.isfinite(item):
            raise ConfigError(f"{key}: must be finite (got {value}).")
        if type(item) is int and abs(item) > _LARGEST_INTEGER:
            raise ConfigError(f"{key}: must be at most {_LARGEST_INTEGER} (got {value}).")


def _refuse_aliases(path: Path) -> None:
    """Refuse YAML aliases. A few lines of nested aliases expand for hours; compose writes none."""
    text = path.read_text(encoding="utf-8")
    if "&" in text:
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"it has an alias, *{event.anchor}")


def _schema_message(error: OmegaConfBaseException, config: DictConfig) -> str:
    key = error.full_key or ""
    text = str(error).splitlines()[0]
    if "not in" in text and key:
        parent_key = key.rpartition(".")[0]
        parent = OmegaConf.select(schema(), parent_key) if parent_key else schema()
        if isinstance(parent, DictConfig):
            where = parent_key or "The configuration"
            name = key.rpartition(".")[2]
            message = unknown_key_message(key, [str(choice) for choice in parent], where)
            return message + _hint_of_package(parent_key.replace(".", "/"), name)
    value = OmegaConf.select(config, key, throw_on_resolution_failure=False) if key else None
    if text.startswith(("Key False (bool)", "Key True (bool)")):
        return f"{key}: a name must be a text. {_QUOTE}"
    if "is not a subclass of" in text and key:
        return f"{key}: must have settings of its own, {key}.NAME=VALUE (got {plain(value)!r})."
    if "is not a ListConfig" in text:
        return f"{key}: must be a list (got {plain(value)!r})."
    return f"{key or 'configuration'}: {text} (got {plain(value)!r})."


def _hint_of_package(group: str, name: str) -> str:
    """Return a hint about the first line of an option that sets keys outside of its group."""
    if not group or not (CONF / group).is_dir() or name not in list(schema()):
        return ""
    return f" If a file in {group}/ sets {name}, its first line must be '# @package _global_'."


def _mask(node: DictConfig, prefix: str, visible: tuple[str, ...]) -> None:
    for name in list(node):
        key = f"{prefix}{name}"
        if any(key == shown or key.startswith(f"{shown}.") for shown in visible):
            continue
        if any(shown.startswith(f"{key}.") for shown in visible):
            _mask(node[name], f"{key}.", visible)
        else:
            node[name] = MISSING
