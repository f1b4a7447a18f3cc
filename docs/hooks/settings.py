"""Generate the page of all settings from the schema and the comments in conf/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from pipeline.run.setting_descriptions import (
    Description,
    default_options,
    fields_of,
    groups_of,
    sections,
    settings_of,
    top_level_settings,
)
from pipeline.run.settings import CONF, ScoresConfig, TestSetConfig

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
    lines = [_INTRODUCTION, "## Top-level keys", _table(top_level_settings())]
    for name, schema in sections().items():
        lines += [f"## {name}", str(schema.__doc__), _table(settings_of(name))]
        if name == "task":
            lines += ["### A test set", str(TestSetConfig.__doc__)]
            lines += [_table(fields_of(TestSetConfig, "task.test_sets.ROLE"))]
        if name == "metrics":
            lines += ["### An external score", str(ScoresConfig.__doc__)]
            lines += [_table(fields_of(ScoresConfig, "metrics.scores.NAME"))]
        for group in groups_of(name):
            lines += _options(group)
    lines += ["## hydra/launcher", "Where the parts of a stage run."]
    lines += _options("hydra/launcher")
    return "\n\n".join(lines) + "\n"


def _table(descriptions: Iterable[Description]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for setting in descriptions:
        default = f"`{setting.default}`" if setting.default else ""
        cells = [f"`{setting.key}`", *map(_cell, (setting.kind, default, setting.meaning))]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _options(group: str) -> Iterator[str]:
    for path in sorted((CONF / group).rglob("*.yaml")):
        name = path.relative_to(CONF / group).with_suffix("").as_posix()
        default = " (default)" if default_options()[group] == name else ""
        yield f'??? note "`{group}={name}`{default}"'
        text = path.read_text(encoding="utf-8").rstrip().splitlines()
        yield "\n".join(f"    {line}".rstrip() for line in ("```yaml", *text, "```"))
