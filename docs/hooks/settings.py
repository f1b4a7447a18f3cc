"""The page of all settings, made at every build from the schema and the comments of conf/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from omegaconf import MISSING

from pipeline.run.settings import CONF, PipelineConfig, TestSetConfig

_LINE = re.compile(
    r"^(?P<indent> *)(?P<key>[\w-]+):(?: +(?P<value>[^#\s].*?))?(?: +# (?P<comment>.*))?$"
)
_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: ""}
_INTRODUCTION = """# Settings

Every key that a command line may name, made from `pipeline/run/schema.py` and `conf/`. A group
is a folder of `conf/`: `GROUP=OPTION` chooses a file of it, `GROUP.KEY=VALUE` changes one of its
keys. A task or an experiment may set another value than the default that is shown.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add settings.md to the pages."""
    files.append(File.generated(config, "settings.md", content=page()))
    return files


def page() -> str:
    """The page in Markdown: a section a group, with its keys and the files of its options."""
    primary = CONF / "pipeline.yaml"
    chosen = _chosen_options(primary)
    hints = get_type_hints(PipelineConfig)
    single = [one.name for one in fields(PipelineConfig) if not is_dataclass(hints[one.name])]
    lines = [_INTRODUCTION, "## Beside the groups", *_table(PipelineConfig, "", [primary], single)]
    for name, schema in hints.items():
        if not (isinstance(schema, type) and is_dataclass(schema)):
            continue
        groups = [group for group in chosen if group.split("/")[0] == name]
        sources = [*(CONF / group / f"{chosen[group]}.yaml" for group in groups), primary]
        lines += [f"## {name}", str(schema.__doc__), *_table(schema, name, sources)]
        if name == "task":
            lines += ["### A test set", str(TestSetConfig.__doc__)]
            lines += _table(TestSetConfig, "task.test_sets.ROLE", [])
        for group in groups:
            lines += _options(group, chosen)
    lines += ["## hydra/launcher", "Where the parts of a stage run."]
    lines += _options("hydra/launcher", chosen)
    return "\n\n".join(lines) + "\n"


def _chosen_options(primary: Path) -> dict[str, str]:
    defaults = yaml.safe_load(primary.read_text(encoding="utf-8"))["defaults"]
    entries = [entry for entry in defaults if isinstance(entry, dict)]
    return {
        str(group).removeprefix("override "): str(option)
        for entry in entries
        for group, option in entry.items()
    }


def _table(
    schema: type, prefix: str, sources: list[Path], names: list[str] | None = None
) -> Iterator[str]:
    """One table of the keys of a dataclass and of those below it."""
    comments: dict[str, tuple[str, str]] = {}
    for source in sources:
        for key, said in _commented_keys(source).items():
            comments.setdefault(key, said)
    rows = ["| key | is | default | meaning |", "|---|---|---|---|"]
    rows += _rows(schema, prefix, comments, names)
    yield "\n".join(rows)


def _rows(
    schema: type, prefix: str, comments: dict[str, tuple[str, str]], names: list[str] | None
) -> Iterator[str]:
    hints = get_type_hints(schema)
    for one in fields(schema):
        if names is not None and one.name not in names:
            continue
        key = f"{prefix}.{one.name}" if prefix else one.name
        if is_dataclass(hints[one.name]):
            yield from _rows(hints[one.name], key, comments, None)
            continue
        value, comment = comments.get(key, (_schema_default(one), ""))
        kind = "; ".join(filter(None, (_type_text(hints[one.name]), one.metadata.get("rule", ""))))
        default = f"`{value}`" if value else ""
        yield f"| `{key}` | {_cell(kind)} | {_cell(default)} | {_cell(comment)} |"


def _schema_default(one: Field[Any]) -> str:
    if callable(one.default_factory):
        return str(one.default_factory())
    return "" if one.default == MISSING else str(one.default)


def _type_text(hint: Any) -> str:
    if hint in _TYPES:
        return _TYPES[hint]
    arguments = get_args(hint)
    if type(None) in arguments:
        return " or ".join([_type_text(arguments[0]), "null"])
    return "list" if str(hint).startswith("list") else "mapping"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _commented_keys(path: Path) -> dict[str, tuple[str, str]]:
    """Dotted key -> its value as written and its comment; a group's file has the group's keys."""
    text = path.read_text(encoding="utf-8")
    own = path.parent != CONF and "@package _global_" not in text
    found: dict[str, tuple[str, str]] = {}
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
        group = path.parent.relative_to(CONF).parts if own else ()
        key = ".".join([*group, *names])
        found.setdefault(key, (match["value"] or "", match["comment"] or ""))
    return found


def _options(group: str, chosen: dict[str, str]) -> Iterator[str]:
    for path in sorted((CONF / group).rglob("*.yaml")):
        name = path.relative_to(CONF / group).with_suffix("").as_posix()
        default = " (default)" if chosen[group] == name else ""
        yield f'??? note "`{group}={name}`{default}"'
        text = path.read_text(encoding="utf-8").rstrip().splitlines()
        yield "\n".join(f"    {line}".rstrip() for line in ("```yaml", *text, "```"))
