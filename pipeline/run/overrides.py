"""Overrides of a command line, checked before anything starts: keys, groups, values and ranges."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from yaml import MarkedYAMLError, YAMLError

from pipeline.errors import ConfigError
from pipeline.run.settings import CONF, MACHINE_KEYS, schema, typed, unknown_key_message

_MOST_POINTS = 1000


def check_overrides(arguments: list[str]) -> None:
    """Compose and check every point that the overrides ask for, with the options of --config-dir.

    Raises ConfigError for a key, group or value that does not exist or is out of range, and for a
    file that is no plain YAML. Command lines that only ask for help pass unchecked here.
    """
    for argument in arguments:
        if not _is_utf8(argument):
            raise ConfigError(f"the command line must be UTF-8, got {argument!a}")
    own, arguments = _own_folder(arguments)
    if any(argument.startswith("-") and argument not in _RUN_FLAGS for argument in arguments):
        return
    texts = [argument for argument in arguments if argument not in _RUN_FLAGS]
    try:
        overrides = OverridesParser.create().parse_overrides(texts)
    except HydraException as error:
        reason = " ".join(str(error).splitlines()[:2])  # what follows is a link
        raise ConfigError(
            "the command line must be group=option or key=value, and key=\"'value'\" where the "
            f"value has other characters than letters of English, digits and -./:+_%@?|: {reason}"
        ) from None
    folders = [CONF] if own is None else [CONF, own]
    for override in overrides:
        _check_name(override, folders)
    if any(override.key_or_group == "from_config" for override in overrides):
        _check_only_machine_keys(overrides)
        return
    for point in itertools.islice(_points(overrides), _MOST_POINTS):
        typed(_composed(point, folders))


def yaml_message(error: YAMLError) -> str:
    """One sentence on a file that is no plain YAML: the file, the line where known, the rule."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{mark.name}, line {mark.line + 1}, must be plain YAML, got: {error.problem}"
    return "a file of settings must be plain YAML, got: " + " ".join(str(error).split())


def _is_utf8(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


_RUN_FLAGS = ("--multirun", "-m", "--run", "-r")


def _own_folder(arguments: list[str]) -> tuple[Path | None, list[str]]:
    """The folder of --config-dir, and the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", type=Path)
    known, rest = parser.parse_known_args(arguments)
    own: Path | None = known.config_dir
    if own is not None and not own.is_dir():
        raise ConfigError(f"--config-dir must be a folder, got {own}")
    return own, rest


def _composed(overrides: list[str], folders: list[Path]) -> DictConfig:
    own = [str(one.absolute()).replace("\\", "\\\\").replace("'", "\\'") for one in folders[1:]]
    search = [f"hydra.searchpath=['file://{one}']" for one in own]
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            return compose("pipeline", [*search, *overrides])
    except HydraException as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        reason = str(error) or "the settings must compose"
        raise ConfigError(" ".join(f"{reason}{cause}".split())) from None
    except YAMLError as error:
        raise ConfigError(yaml_message(error)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(_not_utf8(error, folders)) from None
    except ValueError as error:  # of a defaults list
        raise ConfigError(" ".join(str(error).split())) from None


def _not_utf8(error: UnicodeDecodeError, folders: list[Path]) -> str:
    """One sentence that names the file; the error does not know it."""
    for path in (path for folder in folders for path in sorted(folder.rglob("*.yaml"))):
        before, found, _ = path.read_bytes().partition(error.object)
        if found:
            line = (before + found[: error.start]).count(b"\n") + 1
            return f"{path}, line {line}, must be UTF-8, got: {error.reason}"
    return f"a file of settings must be UTF-8, got: {error}"


def _points(overrides: list[Override]) -> Iterator[list[str]]:
    choices: list[list[str]] = []
    for override in overrides:
        if override.is_sweep_override() and override.is_discrete_sweep():
            key = override.get_key_element()
            choices.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        elif not override.is_sweep_override():
            choices.append([str(override.input_line)])
    return (list(point) for point in itertools.product(*choices))


def _check_name(override: Override, folders: list[Path]) -> None:
    key = override.key_or_group
    if not key:
        raise ConfigError(
            f"the command line must be group=option or key=value, got {override.input_line}"
        )
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        return
    groups = [folder / key for folder in folders]
    if any(group.is_dir() for group in groups):
        options = sorted(
            path.relative_to(group).with_suffix("").as_posix()
            for group in groups
            for path in group.rglob("*.yaml")
        )
        for value in _values(override):
            if value not in options:
                raise ConfigError(f"{key} must be one of {', '.join(options)}, got {value}")
    elif not override.is_add():
        _check_key(key)
        if override.value() == {} and not override.is_delete():
            raise ConfigError(
                f"{override.input_line} would change nothing, as Hydra merges what it finds into "
                f"{key}: ~{key} leaves all of it out, ~{key}.NAME one entry"
            )


def _values(override: Override) -> list[str]:
    if override.is_sweep_override():
        return list(override.sweep_string_iterator()) if override.is_discrete_sweep() else []
    return [str(override.value())]


def _check_key(key: str) -> None:
    node: Any = schema()
    path = ""
    for name in key.split("."):
        if not isinstance(node, DictConfig):
            raise ConfigError(f"{key} is not a setting: {path} is a value and has no keys")
        if OmegaConf.get_type(node) is dict:
            return
        choices = [str(choice) for choice in node]
        if name not in choices:
            raise ConfigError(unknown_key_message(key, choices, path or "the configuration"))
        path = f"{path}.{name}" if path else name
        node = None if OmegaConf.is_missing(node, name) else node[name]


def _check_only_machine_keys(overrides: list[Override]) -> None:
    for override in overrides:
        root = override.key_or_group.replace("/", ".").split(".")[0]
        if root not in (*MACHINE_KEYS, "hydra"):
            raise ConfigError(
                f"from_config takes every setting from that file and only "
                f"{', '.join(MACHINE_KEYS)} and hydra beside it, got {override.input_line}"
            )
