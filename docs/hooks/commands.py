"""Generate the page of all commands from the stages, dvc.yaml, the Makefile and --help."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from pipeline.run.code import declared_params
from pipeline.run.settings import ROOT
from stages.__main__ import STAGES

_STAGES_INTRODUCTION = """# Commands

## Stages

`python -m stages.NAME [OVERRIDE ...]` runs one stage. Where the package is installed,
`sequence-uncertainty NAME [OVERRIDE ...]` does the same, and `sequence-uncertainty --help` lists
the stages. After `eval "$(sequence-uncertainty -sc install=bash)"`, the tab key completes stages,
groups, options and keys in bash. Overrides have the form `GROUP=OPTION` or `KEY=VALUE` and refer to
the [settings](settings.md). All stages accept these options:

| option | effect |
|---|---|
| `--help` | describes the stage, and every setting that it reads with its value and meaning |
| `--cfg job` | prints the composed settings as YAML |
| `-m`, `--multirun` | runs every combination of values `KEY=A,B`, each in a folder of its own |
| `--config-dir DIR` | adds options from your own folder |
| `from_config=FILE` | reads all settings from a composed file, as under DVC |

Exit codes: 0 success, 1 the stage failed, 2 the command line is wrong, 130 or 143 interrupted.
"""
_PROGRAMS = (("pipeline.store", "validate"), ("pipeline.doctor",))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add commands.md to the site."""
    files.append(File.generated(config, "commands.md", content=page()))
    return files


def page() -> str:
    """Return the page in Markdown: stages, make targets, other programs."""
    parts = [_STAGES_INTRODUCTION]
    for stage in STAGES:
        parts += _stage(stage)
    parts += ["## make", _code(_output(["make", "--no-print-directory", "help"]))]
    for program in _PROGRAMS:
        command = " ".join(("python -m", *program))
        help_text = _output([sys.executable, "-m", *program, "--help"])
        parts += [f"## {command}", _code(help_text)]
    return "\n\n".join(parts) + "\n"


def _stage(name: str) -> Iterator[str]:
    yield f"### python -m stages.{name}"
    module = ast.parse((ROOT / "stages" / f"{name}.py").read_text(encoding="utf-8"))
    function = next(
        node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name
    )
    yield ast.get_docstring(module) or ""
    yield _code(ast.get_docstring(function) or "")
    keys = declared_params(name)
    yield "Reads " + (", ".join(f"`{key}`" for key in keys) if keys else "every setting") + "."


def _output(command: list[str]) -> str:
    finished = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return finished.stdout


def _code(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"
