"""The page of all commands, made at every build from the stages, dvc.yaml, make and --help."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from pipeline.run.settings import ROOT
from stages import declared_params

_STAGES_INTRODUCTION = """# Commands

## Stages

`python -m stages.NAME [OVERRIDE ...]` runs one stage; overrides are `GROUP=OPTION` and `KEY=VALUE`,
of [the settings](settings.md). All stages take

| option | does |
|---|---|
| `--help` | shows groups, their options and the composed configuration |
| `--cfg job` | shows the configuration alone |
| `-m`, `--multirun` | runs every combination of values given as `KEY=A,B` |
| `--config-dir DIR` | adds options from a folder of your own |
| `from_config=FILE` | takes every setting from a composed file, as under DVC |

Exit codes: 0 done, 1 the stage failed, 2 the command line is wrong, 130 or 143 it was told to end.
"""
_PROGRAMS = (("pipeline.store", "validate"), ("pipeline.doctor",))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add commands.md to the pages."""
    files.append(File.generated(config, "commands.md", content=page()))
    return files


def page() -> str:
    """The page in Markdown: stages, make targets, other programs."""
    parts = [_STAGES_INTRODUCTION]
    for path in sorted((ROOT / "stages").glob("*.py")):
        if path.stem != "__init__":
            parts += _stage(path.stem)
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
        one for one in module.body if isinstance(one, ast.FunctionDef) and one.name == name
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
