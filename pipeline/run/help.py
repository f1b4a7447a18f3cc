"""What `python -m stages.STAGE --help` prints: the work of a stage and the settings it reads."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from pipeline.run.code import declared_params
from pipeline.run.overrides import composed_for_help, options_of_group
from pipeline.run.setting_descriptions import (
    Description,
    default_options,
    sections,
    settings_of,
    top_level_settings,
)

HELP_FLAGS = ("--help", "-h")
_WIDEST = 100
_OPTIONS = """Options:
  -m, --multirun    Run every combination of values KEY=A,B, each in a folder of its own.
  --cfg job         Print the composed settings as YAML, and run nothing.
  --config-dir DIR  Add options of groups from a folder of your own.
  from_config=FILE  Read all settings from a file that stage compose wrote, as DVC does."""


def print_help(stage: Callable[..., None], arguments: list[str], uses: Collection[str]) -> None:
    """Print the help of a stage, with the values and options that `arguments` choose.

    uses: the settings of group io, besides root, that the stage uses. Raises ConfigError for
    arguments that do not compose.
    """
    composed, folders = composed_for_help(arguments)
    try:
        print(_help_text(stage, composed, folders, uses), flush=True)
    except BrokenPipeError:  # as in `--help | head`; Python would report it again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _help_text(
    stage: Callable[..., None], composed: DictConfig, folders: list[Path], uses: Collection[str]
) -> str:
    name = stage.__name__
    read = declared_params(name)
    if read is None:
        read = [section for section in sections() if section not in ("io", "tracking")]
    shown = ["io.root", *(f"io.{key}" for key in uses), *read, "tracking"]
    return "\n\n".join(
        [
            f"usage: python -m stages.{name} [OPTION] [GROUP=OPTION | KEY=VALUE ...]",
            inspect.getdoc(inspect.getmodule(stage)) or "",
            inspect.getdoc(stage) or "",
            _OPTIONS,
            "Groups, each with its options (GROUP=OPTION):\n" + "\n".join(_groups(shown, folders)),
            "Settings that the stage reads, with their values and meanings (KEY=VALUE):",
            *_settings(shown, composed),
        ]
    )


def _groups(shown: list[str], folders: list[Path]) -> Iterator[str]:
    roots = {key.split(".")[0] for key in shown} | {"task", "experiment", "hydra"}
    for group in default_options():
        options = ", ".join(options_of_group(group, folders))
        if options and group.split("/")[0] in roots:
            yield _wrapped(f"{group}: {options}", "  ", "      ")


def _settings(shown: list[str], composed: DictConfig) -> Iterator[str]:
    names_of_options = {f"{group.replace('/', '.')}.name" for group in default_options()}
    for setting in chain(top_level_settings(), *map(settings_of, sections())):
        is_shown = any(f"{setting.key}.".startswith(f"{key}.") for key in shown)
        if is_shown and setting.key not in names_of_options:  # an option is chosen by its group
            yield _setting(setting, OmegaConf.select(composed, setting.key))


def _setting(setting: Description, value: Any) -> str:
    first = f"{setting.key}={_value_text(value)}"
    kind = f" ({setting.kind})" if setting.kind else ""
    lines = [_wrapped(first + kind, "  ", "      ")]
    if setting.meaning:
        lines.append(_wrapped(setting.meaning, "      ", "      "))
    return "\n".join(lines)


def _value_text(value: Any) -> str:
    """Return a value as the command line takes it; of a mapping only its keys, in braces."""
    if isinstance(value, DictConfig):
        return f"{{{', '.join(map(str, value))}}}"
    if isinstance(value, ListConfig):
        return f"[{','.join(map(_value_text, value))}]"
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return str(value)


def _wrapped(text: str, first: str, others: str) -> str:
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    return textwrap.fill(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
