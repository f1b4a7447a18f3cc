"""Overrides of a command line, checked before anything starts."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from yaml import MarkedYAMLError, YAMLError

from pipeline.errors import ConfigError, MachineError
from pipeline.run.settings import (
    CONF,
    MACHINE_KEYS,
    PipelineConfig,
    schema,
    typed,
    unknown_key_message,
)

_MULTIRUN = ("--multirun", "-m")
_RUN_FLAGS = (*_MULTIRUN, "--run", "-r")
_OTHER_CONFIGS = ("-cn", "--config-name", "-cp", "--config-path")
_OTHER_FLAGS = (
    *("--help", "-h", "--hydra-help", "--version", "--cfg", "-c", "--resolve", "--package", "-p"),
    *("--shell-completion", "-sc", "--experimental-rerun", "--info", "-i"),
)
_HOME = re.compile(r"(?<=[=,\[:'\"])~(?=/)")


def tidied(arguments: list[str]) -> list[str]:
    """Return a command line as Hydra needs it: flags first, and ~/ replaced by the home folder.

    Hydra's parser refuses overrides on both sides of a flag, and makes a folder named ~.
    """
    flags = [argument for argument in arguments if argument in _RUN_FLAGS]
    rest = [argument for argument in arguments if argument not in _RUN_FLAGS]
    home = str(Path.home())
    return flags + [
        argument if argument.startswith("~") else _HOME.sub(lambda _: home, argument)
        for argument in rest
    ]


def with_swept_keys(arguments: list[str]) -> list[str]:
    """Return the command line of a multirun with the keys that it sweeps, which its jobs need.

    A job knows its own value of every key only; names of points contain the swept ones.
    """
    _, rest = _folders_of_groups(arguments)
    texts = [argument for argument in rest if argument not in _RUN_FLAGS]
    if len(rest) == len(texts) or any(text.startswith("-") for text in texts):
        return arguments
    swept = [
        override.get_key_element().lstrip("+")
        for override in _parsed(texts)
        if override.is_sweep_override()
    ]
    quoted = ",".join(f"'{key}'" for key in swept)
    return [*arguments, f"hydra.callbacks.sweep_parent.swept=[{quoted}]"]


def check_launcher(arguments: list[str]) -> None:
    """Raise MachineError if jobs are to run on Slurm, which this machine does not have."""
    if "hydra/launcher=slurm" in arguments and shutil.which("srun") is None:
        raise MachineError(
            "hydra/launcher=slurm: this machine has no Slurm (no program srun). Start the stage on "
            "a host of the cluster, or leave this out."
        )


def check_overrides(arguments: list[str]) -> PipelineConfig | None:
    """Check the names of groups, options and keys; return the settings that they compose to.

    None for a sweep, whose jobs check their points, for settings from a file, and for a command
    line that only asks for help. Raises ConfigError for what does not exist or is out of range, and
    for a file that is not plain YAML.
    """
    for argument in arguments:
        if not _is_utf8(argument):
            raise ConfigError(f"command line: must be UTF-8 (got {argument!a}).")
    folders, arguments = _folders_of_groups(arguments)
    for argument in arguments:
        name = argument.split("=")[0]
        if name in _OTHER_CONFIGS:
            raise ConfigError(
                f"{argument}: stages have one primary configuration, conf/pipeline.yaml. Choose "
                "options of groups by GROUP=OPTION; --config-dir adds your own."
            )
        if name.startswith("-") and name not in (*_RUN_FLAGS, *_OTHER_FLAGS):
            raise ConfigError(f"{name}: no such option. Add --help for all options.")
    if any(argument.startswith("-") and argument not in _RUN_FLAGS for argument in arguments):
        return None
    texts = [argument for argument in arguments if argument not in _RUN_FLAGS]
    overrides = _parsed(texts)
    is_multirun = any(argument in _MULTIRUN for argument in arguments)
    for override in overrides:
        _check_name(override, folders)
        if override.is_sweep_override() and not is_multirun:
            raise ConfigError(
                f"{override.input_line}: several values are a sweep. Add --multirun, or write "
                f"{override.key_or_group}=[A,B] for one list."
            )
    if any(override.key_or_group == "from_config" for override in overrides):
        _check_only_machine_keys(overrides)
    elif not any(override.is_sweep_override() for override in overrides):
        return typed(_composed(texts, folders))
    return None


def composed_for_help(arguments: list[str]) -> tuple[DictConfig, list[Path]]:
    """Return what the overrides of a command line compose to, and the folders of its groups."""
    folders, rest = _folders_of_groups(arguments)
    texts = [argument for argument in rest if not argument.startswith("-")]
    return _composed(texts, folders), folders


def options_of_group(group: str, folders: list[Path]) -> list[str]:
    """Return the names of the options of a group in these folders; [] if there is no such group."""
    found = (path for folder in folders for path in (folder / group).rglob("*.yaml"))
    roots = {folder / group for folder in folders}
    return sorted(
        path.relative_to(root).with_suffix("").as_posix()
        for path in found
        for root in roots & {*path.parents}
    )


def yaml_message(error: YAMLError) -> str:
    """Return one line about a file that is not plain YAML: file, line if known, and reason."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        where, reason = f"{mark.name}, line {mark.line + 1}", error.problem
    else:
        where, reason = "a file of settings", " ".join(str(error).split())
    return f"{where}: not plain YAML ({reason}). Correct the file."


def _is_utf8(argument: str) -> bool:
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folders_of_groups(arguments: list[str]) -> tuple[list[Path], list[str]]:
    """Return conf/ and the folder of --config-dir, if there is one, and the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", "-cd", type=Path)
    known, rest = parser.parse_known_args(arguments)
    own: Path | None = known.config_dir
    if own is not None and not own.is_dir():
        raise ConfigError(f"--config-dir: must be a folder (got {own}).")
    return ([CONF] if own is None else [CONF, own]), rest


def _parsed(texts: list[str]) -> list[Override]:
    parser = OverridesParser.create()
    return [override for text in texts for override in _parsed_one(parser, text)]


def _parsed_one(parser: OverridesParser, text: str) -> list[Override]:
    try:
        overrides: list[Override] = parser.parse_overrides([text])
    except HydraException:
        raise ConfigError(_unreadable_message(text)) from None
    return overrides


def _unreadable_message(text: str) -> str:
    """Return one line about an override that Hydra cannot read, in place of its parser's words."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        return (
            f"command line: must be group=option or key=value, without spaces around "
            f"the equals sign (got {text}). Add --help for all settings."
        )
    is_list = value.startswith("[")
    if is_list and value.count("[") > value.count("]"):
        return f"{key}: the list has no closing bracket (got {value}). Write {key}=[A,B]."
    quoted = "\"['first item','second item']\"" if is_list else "\"'value'\""
    return (
        f"{key}: cannot be read (got {value}). Write {key}={quoted} if "
        f"{'an item' if is_list else 'the value'} has other characters than ASCII letters, digits "
        "and -./:+_%@?|"
    )


def _composed(overrides: list[str], folders: list[Path]) -> DictConfig:
    own = [str(path.absolute()).replace("\\", "\\\\").replace("'", "\\'") for path in folders[1:]]
    search = [f"hydra.searchpath=['file://{path}']" for path in own]
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            return compose("pipeline", [*search, *overrides])
    except HydraException as error:
        cause = f": {error.__cause__}" if error.__cause__ else ""
        _check_keys_below_dicts(overrides, search)
        reason = str(error) or "the settings do not compose"
        raise ConfigError(" ".join(f"{reason}{cause}".split())) from None
    except YAMLError as error:
        raise ConfigError(yaml_message(error)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(_not_utf8_message(error, folders)) from None
    except ValueError as error:  # of a defaults list
        raise ConfigError(" ".join(str(error).split())) from None


def _check_keys_below_dicts(overrides: list[str], search: list[str]) -> None:
    """Raise ConfigError for a key that the chosen options lack where the schema names no keys.

    Such as a setting of a kind of ensemble.
    """
    values = [
        override
        for override in _parsed(overrides)
        if isinstance(override.key_or_group, str)
        and "." in override.key_or_group
        and not override.is_add()
        and not override.is_delete()
    ]
    others = [text for text in overrides if text not in [value.input_line for value in values]]
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            chosen = compose("pipeline", [*search, *others])
    except HydraException:
        return  # another reason, which the caller names
    for key in (value.key_or_group for value in values):
        parent, _, name = key.rpartition(".")
        node = OmegaConf.select(chosen, parent)
        if isinstance(node, DictConfig) and name not in node:
            raise ConfigError(unknown_key_message(key, [str(known) for known in node], parent))


def _not_utf8_message(error: UnicodeDecodeError, folders: list[Path]) -> str:
    """Return one line that names the file, which the error does not know."""
    for path in (path for folder in folders for path in sorted(folder.rglob("*.yaml"))):
        before, match, _ = path.read_bytes().partition(error.object)
        if match:
            line = (before + match[: error.start]).count(b"\n") + 1
            return f"{path}, line {line}: not UTF-8 ({error.reason}). Save the file as UTF-8."
    return f"a file of settings: not UTF-8 ({error}). Save the file as UTF-8."


def _check_name(override: Override, folders: list[Path]) -> None:
    key = override.key_or_group
    if not key:
        raise ConfigError(
            f"command line: must be group=option or key=value (got {override.input_line})."
        )
    if key == "hydra.job.chdir" and override.value() is True:
        raise ConfigError(
            "hydra.job.chdir: must be false, since paths in settings are relative to the working "
            "directory (got true). Leave it out."
        )
    if key == "hydra" or key.startswith(("hydra.", "hydra/")):
        return
    if not override.is_delete():
        _check_separators(override, folders)
    options = options_of_group(key, folders)
    if options:
        for value in _values(override):
            if value not in options:
                raise ConfigError(f"{key}: must be one of {', '.join(options)} (got {value}).")
    elif not override.is_add():
        _check_key(key)
        if override.value() == {} and not override.is_delete():
            raise ConfigError(
                f"{key}: {{}} would change nothing, since Hydra merges mappings. "
                f"Use ~{key} to leave all of it out, or ~{key}.NAME for one entry."
            )


def _check_separators(override: Override, folders: list[Path]) -> None:
    """Refuse a key written as a group, a group written as a key, and the name of an option.

    Names of options appear in tables. A task may have any name, since folders are called by it.
    """
    key, value = str(override.key_or_group), override.get_value_string()
    options = options_of_group(key, folders)
    if "/" in key and not options:
        dotted = key.replace("/", ".")
        try:
            _check_key(dotted)
        except ConfigError:
            return  # the error about the key says more
        raise ConfigError(f"{key}: not a group but a setting. Write {dotted}={value}.")
    as_group = key.replace(".", "/")
    options = [] if as_group == key else options_of_group(as_group, folders)
    if options and not isinstance(override.value(), dict):
        raise ConfigError(
            f"{key}: a group has a slash in its name. Write {as_group}=OPTION, with one of "
            f"{', '.join(options)} (got {value})."
        )
    group, _, last = as_group.rpartition("/")
    if last == "name" and group != "task" and options_of_group(group, folders):
        raise ConfigError(
            f"{key}: the name of an option is not a setting (got {value}). Choose an option by "
            f"{group}=OPTION; for a name of your own, add a file to {group}/ in a folder that "
            "--config-dir names."
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
            raise ConfigError(f"{key}: no such setting. {path} is a value and has no keys.")
        if OmegaConf.get_type(node) is dict:
            return
        choices = [str(choice) for choice in node]
        if name not in choices:
            raise ConfigError(unknown_key_message(key, choices, path or "The configuration"))
        path = f"{path}.{name}" if path else name
        node = None if OmegaConf.is_missing(node, name) else node[name]


def _check_only_machine_keys(overrides: list[Override]) -> None:
    for override in overrides:
        root = override.key_or_group.replace("/", ".").split(".")[0]
        if root not in (*MACHINE_KEYS, "hydra"):
            raise ConfigError(
                f"{override.key_or_group}: cannot be set together with from_config, which gives "
                f"every setting except {', '.join(MACHINE_KEYS)} and hydra "
                f"(got {override.input_line}). Leave out one of the two, or give this setting to "
                "stages.compose, which writes the file."
            )
