"""A composed config, checked against the schema of conf/; what is done with one."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_type_hints

import yaml
from omegaconf import MISSING, DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline.errors import ConfigError
from pipeline.run.relations import check_relations, name_own_corpora
from pipeline.run.schema import (
    DataConfig,
    DecodeConfig,
    DumpConfig,
    EnsembleConfig,
    ExperimentConfig,
    IoConfig,
    MainEnsembleConfig,
    MetricsConfig,
    ModelConfig,
    PipelineConfig,
    ReportConfig,
    SpeechDataConfig,
    TaskConfig,
    TestSetConfig,
    TrackingConfig,
    TrainConfig,
    UncertaintyConfig,
    UnitsConfig,
)

__all__ = [
    "CONF",
    "MACHINE_KEYS",
    "ROOT",
    "DataConfig",
    "DecodeConfig",
    "DumpConfig",
    "EnsembleConfig",
    "ExperimentConfig",
    "IoConfig",
    "MainEnsembleConfig",
    "MetricsConfig",
    "ModelConfig",
    "PipelineConfig",
    "ReportConfig",
    "SpeechDataConfig",
    "TaskConfig",
    "TestSetConfig",
    "TrackingConfig",
    "TrainConfig",
    "UncertaintyConfig",
    "UnitsConfig",
    "implementation",
    "iterate_values",
    "masked",
    "plain",
    "schema",
    "settings_of_conf_alone",
    "typed",
    "typed_file",
    "unknown_key_message",
]

ROOT = Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
_MOST = 2**63 - 1  # of whole numbers, as numpy has them
# Settings that say where and how a run is carried out and never enter a result.
MACHINE_KEYS = ("io", "part", "from_config", "tracking")


@cache
def schema() -> DictConfig:
    """All keys with their types and defaults, to be read: made once, which takes a while."""
    return cast(DictConfig, OmegaConf.structured(PipelineConfig))


def typed(config: DictConfig) -> PipelineConfig:
    """Check a composed config against the schema; a read-only config with the schema's types.

    Raises ConfigError naming the key, the rule and the value.
    """
    try:
        merged = OmegaConf.merge(schema(), config)
        OmegaConf.resolve(merged)
    except OmegaConfBaseException as error:
        raise ConfigError(_schema_message(error, config)) from None
    _check_rules(PipelineConfig, cast(DictConfig, merged), "")
    check_relations(cast(PipelineConfig, merged))
    name_own_corpora(cast(PipelineConfig, merged))
    OmegaConf.set_readonly(merged, True)
    return cast(PipelineConfig, merged)


def typed_file(path: Path, machine: DictConfig, given: Sequence[str]) -> PipelineConfig:
    """The checked settings of a file that stage compose wrote.

    Those of `given` that say where and how a run is carried out are as in `machine`. Raises
    ConfigError naming the file and, where it is one of settings, the key, the rule and the value.
    """
    try:
        _refuse_aliases(path)
        settings = OmegaConf.load(path)
        if not isinstance(settings, DictConfig):
            raise ValueError("a list")
        for key in given:
            if key.split(".")[0] in MACHINE_KEYS:
                OmegaConf.update(settings, key, OmegaConf.select(machine, key))
        return typed(settings)
    except (OSError, ValueError, RecursionError, yaml.YAMLError, ConfigError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"from_config must be a composed file, got {path}: {reason}") from None


def masked(config: PipelineConfig, visible: list[str]) -> PipelineConfig:
    """The same config in which every key outside `visible` (dotted paths) reads as missing."""
    masked_config = OmegaConf.create(cast(DictConfig, config))
    OmegaConf.set_readonly(masked_config, False)
    _mask(masked_config, "", (*visible, *MACHINE_KEYS))
    OmegaConf.set_readonly(masked_config, True)
    return cast(PipelineConfig, masked_config)


def plain(node: Any) -> Any:
    """A node of the config as plain lists and dicts: for digests, manifests, keyword arguments."""
    return OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node


def implementation(dotted: str, key: str) -> Callable[..., Any]:
    """The function that a `_target_`-like setting names; ConfigError if it cannot be imported."""
    module_name, _, name = dotted.rpartition(".")
    try:
        function = getattr(import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{key} must name an importable function (package.module.function), "
            f"got {dotted!r}: {error}"
        ) from None
    if not callable(function):
        raise ConfigError(f"{key} must name a function, got {dotted!r}")
    return cast(Callable[..., Any], function)


@contextmanager
def settings_of_conf_alone() -> Iterator[None]:
    """Within the block no import adds settings to those that Hydra composes from.

    fairseq would add its models, tasks and optimisers, for command lines of its own: names that
    could be taken for the pipeline's, a quarter of a second to make, and to copy at each composing.
    """
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.store
    ConfigStore.store = _add_nothing  # type: ignore[method-assign]
    try:
        yield
    finally:
        ConfigStore.store = store  # type: ignore[method-assign]


def _add_nothing(*_: object, **__: object) -> None:
    pass


def unknown_key_message(key: str, choices: list[str], where: str) -> str:
    """One sentence for a key that does not exist, with the nearest and all valid names."""
    name = key.rpartition(".")[2]
    near = difflib.get_close_matches(name, choices, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{key} is not a setting: {hint}{where} has {', '.join(sorted(choices))}"


def _check_rules(schema: type, config: DictConfig, prefix: str) -> None:
    hints = get_type_hints(schema)
    for one in fields(schema):
        key = prefix + one.name
        if OmegaConf.is_missing(config, one.name):
            raise ConfigError(f"{key} must have a value, got none (???)")
        value = config[one.name]
        if is_dataclass(hints[one.name]):
            _check_rules(cast(type, hints[one.name]), value, f"{key}.")
        elif isinstance(value, DictConfig):
            for name, child in value.items():
                kind = OmegaConf.get_type(child) if isinstance(child, DictConfig) else None
                if is_dataclass(kind):
                    _check_rules(cast(type, kind), child, f"{key}.{name!s}.")
        elif "holds" in one.metadata and not one.metadata["holds"](plain(value)):
            raise ConfigError(f"{key} must be {one.metadata['rule']}, got {plain(value)}")
        if any(isinstance(one, float) and not math.isfinite(one) for one in iterate_values(value)):
            raise ConfigError(f"{key} must be finite, got {plain(value)}")
        if any(type(one) is int and abs(one) > _MOST for one in iterate_values(value)):
            raise ConfigError(f"{key} must be at most {_MOST}, got {plain(value)}")


def _refuse_aliases(path: Path) -> None:
    """A few lines of aliases of aliases would be read for hours; a composed file has none."""
    text = path.read_text(encoding="utf-8")
    if "&" in text:
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ValueError(f"an alias, *{event.anchor}")


def _schema_message(error: OmegaConfBaseException, config: DictConfig) -> str:
    key = error.full_key or ""
    text = str(error).splitlines()[0]
    if "not in" in text and key:
        parent_key = key.rpartition(".")[0]
        schema: Any = OmegaConf.structured(PipelineConfig)
        parent = OmegaConf.select(schema, parent_key) if parent_key else schema
        if isinstance(parent, DictConfig):
            where = parent_key or "the configuration"
            return unknown_key_message(key, [str(name) for name in parent], where)
    value = OmegaConf.select(config, key, throw_on_resolution_failure=False) if key else None
    if "is not a ListConfig" in text:
        return f"{key} must be a list, got {plain(value)!r}"
    return f"{key or 'the configuration'}: {text} (got {plain(value)!r})"


def _mask(node: DictConfig, prefix: str, visible: tuple[str, ...]) -> None:
    for name in list(node):
        key = f"{prefix}{name}"
        if any(key == one or key.startswith(f"{one}.") for one in visible):
            continue
        if any(one.startswith(f"{key}.") for one in visible):
            _mask(node[name], f"{key}.", visible)
        else:
            node[name] = MISSING


def iterate_values(value: Any) -> Iterator[Any]:
    """The values of a setting that is one value or a list of them."""
    yield from value if isinstance(value, list | ListConfig) else [value]
