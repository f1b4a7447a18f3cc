"""dvc.yaml against stages/: names, settings, outputs, and deps that cover what a stage imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf

from pipeline.run.settings import CONF, ROOT
from tests.imports import imported_modules, parent_packages, source_file

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
OUTSIDE_DVC = {"sweep", "plan"}
# The harness says how a run is set up, locked, shown and tracked, and files are put in place. It
# computes no number, so that an edit of it need not run everything again. There are two exceptions:
# the result of stage compose is the settings, which the harness makes; and the registry of kinds of
# test sets, which settings are checked against, also says how prepare and tables treat each kind.
HARNESS = ("pipeline/__init__.py", "pipeline/errors.py", "pipeline/run/", "pipeline/tracking/")
REGISTRY = "pipeline/run/test_set_kinds.py"


@cache
def _imported_sources(path: Path) -> frozenset[Path]:
    """The files of this repository that run when a file does, except itself."""
    modules = imported_modules(path) | _named_modules(path)
    modules |= {package for module in modules for package in parent_packages(module)}
    return frozenset(source for module in modules if (source := source_file(module)))


def _named_modules(path: Path) -> set[str]:
    """The modules that a file names in a string, to import them later."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    names = {text for text in constants if isinstance(text, str) and text.startswith("pipeline.")}
    return {name for name in names if source_file(name)}


@cache
def _code_of(stage: str) -> frozenset[str]:
    """The files that a stage runs: what it imports, and the functions that its settings name.

    What the harness imports in turn is left out, since every stage runs the same harness.
    """
    queue = [ROOT / "stages" / f"{stage}.py", *_implementations(stage)]
    seen: set[Path] = set()
    while queue:
        path = queue.pop()
        if path not in seen:
            seen.add(path)
            if not _is_harness(path.relative_to(ROOT).as_posix()):
                queue.extend(_imported_sources(path))
    return frozenset(path.relative_to(ROOT).as_posix() for path in seen if _has_code(path))


def _is_harness(path: str) -> bool:
    return path.startswith(HARNESS) and path != REGISTRY


@cache
def _has_code(path: Path) -> bool:
    """Whether a file has more than a docstring."""
    return len(ast.parse(path.read_text(encoding="utf-8")).body) > 1


def _implementations(stage: str) -> set[Path]:
    """The files of the functions that conf/ gives in the settings of a stage."""
    functions = set()
    for settings in _options():
        for key in _declared_keys(stage):
            value = OmegaConf.select(settings, key, throw_on_resolution_failure=False)
            functions |= {text for text in _texts(value) if text.startswith("pipeline.")}
    modules = {name.rpartition(".")[0] for name in functions}
    return {source for module in modules if (source := source_file(module))}


@cache
def _options() -> list[Any]:
    """The settings of each file in conf/."""
    options = []
    for path in CONF.rglob("*.yaml"):
        group, *_ = path.relative_to(CONF).parts
        node = OmegaConf.load(path)
        is_global = "@package _global_" in path.read_text(encoding="utf-8").partition("\n")[0]
        is_whole = is_global or group == path.name
        options.append(node if is_whole else OmegaConf.create({group: node}))
    return options


def _declared_keys(stage: str) -> list[str]:
    return [
        str(key)
        for entry in STAGES[stage].get("params", [])
        for path, keys in entry.items()
        if path.endswith("resolved.yaml")
        for key in keys
    ]


def _texts(value: Any) -> Iterator[str]:
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=False)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _texts(child)


def _code_deps(stage: str) -> list[str]:
    return [dep for dep in STAGES[stage]["deps"] if dep.startswith(("pipeline", "stages"))]


def test_stages_of_dvc_are_the_files_in_stages() -> None:
    files = {path.stem for path in (ROOT / "stages").glob("*.py") if path.stem[0] != "_"}
    assert files - OUTSIDE_DVC == set(STAGES)


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_command_runs_the_stage_of_that_name(stage: str) -> None:
    assert STAGES[stage]["cmd"].startswith(f"python -m stages.{stage} ")


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"compose"}))
def test_settings_come_from_the_composed_file(stage: str) -> None:
    assert "from_config=outputs/config/" in STAGES[stage]["cmd"]
    assert "${overrides}" not in STAGES[stage]["cmd"]


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_deps_are_files_and_folders_that_exist(stage: str) -> None:
    assert [dep for dep in _code_deps(stage) if not (ROOT / dep).exists()] == []


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_deps_cover_all_code_that_a_stage_runs(stage: str) -> None:
    needed = {path for path in _code_of(stage) if not _is_harness(path)}
    missing = {
        path for path in needed if not any(Path(path).is_relative_to(d) for d in _code_deps(stage))
    }
    assert missing == set(), f"add them, or their folders, to deps of {stage} in dvc.yaml"


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_every_dep_holds_code_that_the_stage_runs(stage: str) -> None:
    code = _code_of(stage)
    superfluous = [
        dep for dep in _code_deps(stage) if not any(Path(path).is_relative_to(dep) for path in code)
    ]
    assert superfluous == []


@pytest.mark.parametrize("stage", ["train", "decode"])
def test_what_must_survive_an_interruption_is_persistent(stage: str) -> None:
    for out in STAGES[stage]["outs"]:
        assert all(options["persist"] for options in out.values())


def test_every_output_is_cached_so_that_experiments_can_be_shown_and_applied() -> None:
    for stage in STAGES.values():
        for out in (*stage["outs"], *stage.get("metrics", []), *stage.get("plots", [])):
            options = next(iter(out.values())) if isinstance(out, dict) else {}
            assert options.get("cache", True)
