"""Imports point one way, and heavy packages stay in their rooms."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.run.settings import ROOT

SOURCES = sorted((ROOT / "pipeline").rglob("*.py")) + sorted((ROOT / "stages").glob("*.py"))
# Level of each room: a room may import rooms of its own level's inner side only, or lower ones.
LEVELS = {
    "config": 0,
    "config_overrides": 0,
    "config_relations": 0,
    "config_schema": 0,
    "doctor": 0,
    "errors": 0,
    "lock": 0,
    "machine_code": 0,
    "parts": 0,
    "progress": 0,
    "run_log": 0,
    "sealed": 0,
    "tracking": 0,
    "store": 1,
    "fairseq_bridge": 1,
    "data": 2,
    "ensembles": 2,
    "metrics": 2,
    "uncertainty": 2,
    "decoding": 2,
    "report": 2,
    "plan": 3,
}
# Rooms of one level that may look into each other, and why.
NEIGHBOURS = {
    ("uncertainty", "metrics"),  # sentence BLEU and WER for X-BLEU and X-WER
    ("decoding", "uncertainty"),  # the one kernel of statistics
    ("decoding", "data"),  # pieces to text
    ("decoding", "ensembles"),  # who decodes
    ("report", "metrics"),  # the form of a cell
    ("report", "uncertainty"),  # measures at every B and T of the sensitivity figures
}

WITHOUT_TORCH = tuple(f"pipeline/{room}/" for room in ("store", "uncertainty", "metrics", "report"))


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "pipeline":
                names |= {f"pipeline.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_fairseq":
            names.add("fairseq")
    return names


def _room(module: str) -> str:
    return module.split(".")[1] if module.startswith("pipeline.") else ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    if path.parts[len(ROOT.parts)] == "stages":
        return
    own = path.relative_to(ROOT / "pipeline").with_suffix("").parts[0]
    if own == "__init__":
        return
    for module in _imports(path):
        assert not module.startswith("stages"), f"{path} imports {module}"
        other = _room(module)
        if other and other != own:
            lower = LEVELS[other] < LEVELS[own] or LEVELS[own] == 0 == LEVELS[other]
            assert lower or (own, other) in NEIGHBOURS, f"{path} imports {module}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_packages_stay_in_their_rooms(path: Path) -> None:
    place = str(path.relative_to(ROOT))
    packages = {module.split(".")[0] for module in _imports(path)}
    if not place.startswith("pipeline/fairseq_bridge/"):
        assert "fairseq" not in packages
    if place.startswith("pipeline/") and not place.startswith(
        ("pipeline/config", "pipeline/tracking")
    ):
        assert not packages & {"hydra", "mlflow", "dvc"}
    if place.startswith(WITHOUT_TORCH):
        assert not packages & {"torch", "fairseq", "sentencepiece"}


def test_hostile_pickles_are_loaded_nowhere() -> None:
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert "weights_only=False" not in text
        assert "allow_pickle=True" not in text
        assert not _imports(path) & {"dill", "cloudpickle", "shelve"}, path


@pytest.mark.parametrize(
    "module", ["stages.uncertainty", "stages.metrics", "stages.tables", "pipeline.store"]
)
def test_what_comes_after_decoding_needs_neither_torch_nor_fairseq(module: str) -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'fairseq', 'sentencepiece', 'safetensors'):\n"
        "    sys.modules[name] = None\n"
        f"import {module}\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
