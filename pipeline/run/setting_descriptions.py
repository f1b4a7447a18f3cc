"""What every setting means: its type and rule from the schema, its comment from conf/."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml
from omegaconf import MISSING

from pipeline.run.settings import CONF, PipelineConfig

_LINE = re.compile(
    r"^(?P<indent> *)(?P<key>[\w-]+):(?: +(?P<value>[^#\s].*?))?(?: +# (?P<comment>.*))?$"
)
_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: ""}


@dataclass(frozen=True)
class Description:
    """A key with its type and rule, its default as written in conf/, and its meaning."""

    key: str
    kind: str
    default: str
    meaning: str


def default_options() -> dict[str, str]:
    """Return group -> the option that conf/pipeline.yaml chooses."""
    defaults = yaml.safe_load((CONF / "pipeline.yaml").read_text(encoding="utf-8"))["defaults"]
    entries = [entry for entry in defaults if isinstance(entry, dict)]
    return {
        str(group).removeprefix("override "): str(option)
        for entry in entries
        for group, option in entry.items()
    }


def top_level_settings() -> Iterator[Description]:
    """Describe the keys of the configuration that are not sections."""
    hints = get_type_hints(PipelineConfig)
    names = [field.name for field in fields(PipelineConfig) if not is_dataclass(hints[field.name])]
    comments = _commented_keys(CONF / "pipeline.yaml")
    yield from _described(PipelineConfig, "", comments, names)


def sections() -> dict[str, type]:
    """Return name -> dataclass of every section of the configuration, such as `decode`."""
    hints = get_type_hints(PipelineConfig).items()
    return {name: hint for name, hint in hints if isinstance(hint, type) and is_dataclass(hint)}


def groups_of(section: str) -> list[str]:
    """Return the groups of options of a section: one of its name, and those inside of it."""
    return [group for group in default_options() if group.split("/")[0] == section]


def settings_of(section: str) -> Iterator[Description]:
    """Describe the keys of a section and of the dataclasses inside of it."""
    options = default_options()
    sources = [*(CONF / group / f"{options[group]}.yaml" for group in groups_of(section))]
    comments: dict[str, tuple[str, str]] = {}
    for source in (*sources, CONF / "pipeline.yaml"):
        comments = _commented_keys(source) | comments
    yield from _described(sections()[section], section, comments)


def fields_of(schema: type, prefix: str) -> Iterator[Description]:
    """Describe the fields of a dataclass whose entries the user names, such as a test set."""
    yield from _described(schema, prefix, {})


def _described(
    schema: type,
    prefix: str,
    comments: dict[str, tuple[str, str]],
    names: Collection[str] | None = None,
) -> Iterator[Description]:
    hints = get_type_hints(schema)
    for field in fields(schema):
        if names is not None and field.name not in names:
            continue
        key = f"{prefix}.{field.name}" if prefix else field.name
        if is_dataclass(hints[field.name]):
            yield from _described(hints[field.name], key, comments)
            continue
        default, meaning = comments.get(key, (_schema_default(field), ""))
        kind = (_type_text(hints[field.name]), field.metadata.get("rule", ""))
        yield Description(key, "; ".join(filter(None, kind)), default, meaning)


def _schema_default(field: Field[Any]) -> str:
    if callable(field.default_factory):
        return str(field.default_factory())
    return "" if field.default == MISSING else str(field.default)


def _type_text(hint: Any) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    arguments = get_args(hint)
    if type(None) in arguments:
        return " or ".join([_type_text(arguments[0]), "null"])
    return "list" if str(hint).startswith("list") else "mapping"


def _commented_keys(path: Path) -> dict[str, tuple[str, str]]:
    """Return the literal value and the comment of each dotted key in a file of conf/."""
    text = path.read_text(encoding="utf-8")
    is_group = path.parent != CONF and "@package _global_" not in text
    keys: dict[str, tuple[str, str]] = {}
    parents: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        indent = len(match["indent"])
        while parents and parents[-1][0] >= indent:
            parents.pop()
        parents.append((indent, match["key"]))
        names = [name for _, name in parents]
        group = path.parent.relative_to(CONF).parts if is_group else ()
        key = ".".join([*group, *names])
        keys.setdefault(key, (match["value"] or "", match["comment"] or ""))
    return keys
