"""Generate the page of all settings from the schema and the comments in conf/."""

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

from pipeline.run.settings import CONF, PipelineConfig, ScoresConfig, TestSetConfig

_LINE = re.compile(
    r"^(?P<indent> *)(?P<key>[\w-]+):(?: +(?P<value>[^#\s].*?))?(?: +# (?P<comment>.*))?$"
)
_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: ""}
_INTRODUCTION = """# Settings

This page lists every key that you can set on the command line. It is generated from
`pipeline/run/schema.py` and `conf/`. A group is a folder in `conf/`: `GROUP=OPTION` selects one of
its files, and `GROUP.KEY=VALUE` changes one of its keys. Tasks and experiments may replace the
defaults shown here.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add settings.md to the site."""
    files.append(File.generated(config, "settings.md", content=page()))
    return files


def page() -> str:
    """Return the page in Markdown: one section per group with its keys and options."""
    primary = CONF / "pipeline.yaml"
    chosen = _chosen_options(primary)
    hints = get_type_hints(PipelineConfig)
    single = [key.name for key in fields(PipelineConfig) if not is_dataclass(hints[key.name])]
    lines = [_INTRODUCTION, "## Top-level keys", *_table(PipelineConfig, "", [primary], single)]
    for name, schema in hints.items():
        if not (isinstance(schema, type) and is_dataclass(schema)):
            continue
        groups = [group for group in chosen if group.split("/")[0] == name]
        sources = [*(CONF / group / f"{chosen[group]}.yaml" for group in groups), primary]
        lines += [f"## {name}", str(schema.__doc__), *_table(schema, name, sources)]
        if name == "task":
            lines += ["### A test set", str(TestSetConfig.__doc__)]
            lines += _table(TestSetConfig, "task.test_sets.ROLE", [])
        if name == "metrics":
            lines += ["### An external score", str(ScoresConfig.__doc__)]
            lines += _table(ScoresConfig, "metrics.scores.NAME", [])
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
    """Yield one table with the keys of a dataclass and its nested dataclasses."""
    comments: dict[str, tuple[str, str]] = {}
    for source in sources:
        for key, comment in _commented_keys(source).items():
            comments.setdefault(key, comment)
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    rows += _rows(schema, prefix, comments, names)
    yield "\n".join(rows)


def _rows(
    schema: type, prefix: str, comments: dict[str, tuple[str, str]], names: list[str] | None
) -> Iterator[str]:
    hints = get_type_hints(schema)
    for field in fields(schema):
        if names is not None and field.name not in names:
            continue
        key = f"{prefix}.{field.name}" if prefix else field.name
        if is_dataclass(hints[field.name]):
            yield from _rows(hints[field.name], key, comments, None)
            continue
        value, comment = comments.get(key, (_schema_default(field), ""))
        kind = "; ".join(
            filter(None, (_type_text(hints[field.name]), field.metadata.get("rule", "")))
        )
        default = f"`{value}`" if value else ""
        yield f"| `{key}` | {_cell(kind)} | {_cell(default)} | {_cell(comment)} |"


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


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


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


def _options(group: str, chosen: dict[str, str]) -> Iterator[str]:
    for path in sorted((CONF / group).rglob("*.yaml")):
        name = path.relative_to(CONF / group).with_suffix("").as_posix()
        default = " (default)" if chosen[group] == name else ""
        yield f'??? note "`{group}={name}`{default}"'
        text = path.read_text(encoding="utf-8").rstrip().splitlines()
        yield "\n".join(f"    {line}".rstrip() for line in ("```yaml", *text, "```"))
