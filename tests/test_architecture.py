"""Imports point one way, heavy packages stay in their rooms, and files stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from pipeline.run.settings import ROOT
from tests.imports import imported_modules, module_name, parent_packages, source_files

pytestmark = pytest.mark.slow

MOST_LINES = 400
# A room (folder or module of pipeline/) may import rooms of a lower level only.
LEVELS = {
    "errors": 0,
    "run": 1,
    "text_traces": 1,
    "tracking": 2,
    "compiled": 2,
    "doctor": 2,
    "store": 2,
    "quality": 2,
    "statistics": 3,
    "fairseq_bridge": 3,
    "huggingface": 3,
    "data": 4,
    "ensembles": 4,
    "metrics": 4,
    "uncertainty": 4,
    "decoding": 5,
    "report": 5,
    "plan": 6,
    "multirun": 6,
    "sweep": 7,
}
# Imports against the order of levels: (module, room), and why.
EXCEPTIONS = {
    # The outermost function of every stage ends the tracking run of a sweep, and summarises it.
    ("pipeline.run.application", "tracking"),
    ("pipeline.run.application", "multirun"),
}
WITHOUT_TORCH = ("store", "statistics", "quality", "uncertainty", "metrics", "report")
# Package -> the rooms that may import it.
ROOMS_OF_PACKAGES = {
    "fairseq": {"fairseq_bridge"},
    "transformers": {"huggingface"},
    "huggingface_hub": {"huggingface"},
    "hydra": {"run", "tracking"},
    "mlflow": {"tracking"},
    "dvc": set(),
}


@cache
def _imports() -> dict[str, set[str]]:
    """Module -> all that it imports, for every module of pipeline/ and stages/."""
    return {module_name(path): imported_modules(path) for path in source_files()}


def _room(module: str) -> str | None:
    """The folder or module of pipeline/ that `module` belongs to."""
    return module.split(".")[1] if module.startswith("pipeline.") else None


def _packages(module: str) -> set[str]:
    return {name.split(".")[0] for name in _imports()[module]}


def test_every_room_has_a_level() -> None:
    rooms = {room for module in _imports() if (room := _room(module))}
    assert rooms - LEVELS.keys() == set()


def test_rooms_import_rooms_of_lower_levels_only() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, names in _imports().items()
        for imported in sorted(names)
        if (own := _room(module)) and (room := _room(imported)) and own != room
        if LEVELS[room] >= LEVELS[own] and (module, room) not in EXCEPTIONS
    ]
    assert wrong == []


def test_pipeline_does_not_import_stages() -> None:
    wrong = [
        f"{module} imports {imported}"
        for module, names in _imports().items()
        for imported in sorted(names)
        if module.startswith("pipeline") and imported.split(".")[0] == "stages"
    ]
    assert wrong == []


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    """Imports inside functions count too; those for type checkers alone do not."""
    graph: dict[str, set[str]] = {}
    for path in source_files():
        module = module_name(path)
        names = imported_modules(path, for_type_checking=False)
        packages = {package for name in names for package in parent_packages(name)}
        names |= packages - {*parent_packages(module)}
        graph[module] = {name for name in names if name in _imports()} - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_packages_stay_in_their_rooms() -> None:
    wrong = [
        f"{module} imports {package}"
        for module in _imports()
        for package, rooms in ROOMS_OF_PACKAGES.items()
        if (own := _room(module)) and package in _packages(module) and own not in rooms
    ]
    assert wrong == []


def test_rooms_after_decoding_import_no_model() -> None:
    wrong = [
        module
        for module in _imports()
        if _room(module) in WITHOUT_TORCH
        if _packages(module) & {"torch", "fairseq", "sentencepiece", "safetensors"}
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "module", ["stages.uncertainty", "stages.metrics", "stages.tables", "pipeline.store"]
)
def test_what_comes_after_decoding_starts_without_torch_and_fairseq(module: str) -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'fairseq', 'sentencepiece', 'safetensors'):\n"
        "    sys.modules[name] = None\n"
        f"import {module}\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_hostile_pickles_are_loaded_nowhere() -> None:
    for path in source_files():
        text = path.read_text(encoding="utf-8")
        assert "weights_only=False" not in text, path
        assert "allow_pickle=True" not in text, path
        assert not _packages(module_name(path)) & {"dill", "cloudpickle", "shelve"}, path


def test_no_module_touches_the_interpreter_of_its_process() -> None:
    """No stand-ins in sys.modules, no tuning of the garbage collector."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in source_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if (node.value.id, node.attr) == ("sys", "modules") or node.value.id == "gc"
    ]
    assert wrong == []


def test_files_are_short() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in source_files()
    }
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_source_files_are_found() -> None:
    assert Path(ROOT / "pipeline" / "errors.py") in source_files()
    assert Path(ROOT / "stages" / "train.py") in source_files()
