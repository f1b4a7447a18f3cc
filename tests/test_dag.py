"""dvc.yaml against stages/ and the code that each stage imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from pipeline.run.settings import ROOT

STAGES = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
OUTSIDE_DVC = {"sweep", "plan"}
# How a run is set up, shown and logged; nothing in these modules enters a result.
NO_RESULT = {
    "pipeline/run/settings.py",
    "pipeline/run/overrides.py",
    "pipeline/run/relations.py",
    "pipeline/run/schema.py",
    "pipeline/errors.py",
    "pipeline/run/locks.py",
    "pipeline/run/artifacts.py",
    "pipeline/run/progress.py",
    *(f"pipeline/tracking/{path.name}" for path in (ROOT / "pipeline" / "tracking").glob("*.py")),
    "pipeline/__init__.py",
}


def _sources_imported_by(path: Path) -> set[Path]:
    found: set[Path] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if node.value.startswith("pipeline.") else []
        for name in names:
            if name.split(".")[0] != "pipeline":
                continue
            module = ROOT.joinpath(*name.split("."))
            found |= {
                source
                for source in (module.with_suffix(".py"), module / "__init__.py")
                if source.is_file()
            }
    return found


def _closure(stage: str) -> set[str]:
    queue, seen = [ROOT / "stages" / f"{stage}.py"], set()
    while queue:
        path = queue.pop()
        if path in seen:
            continue
        seen.add(path)
        queue.extend(_sources_imported_by(path))
    return {str(path.relative_to(ROOT)) for path in seen}


def test_stages_of_dvc_are_the_files_in_stages() -> None:
    files = {path.stem for path in (ROOT / "stages").glob("*.py")} - {"__init__"}
    assert files - OUTSIDE_DVC == set(STAGES)


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_command_runs_the_stage_of_that_name(stage: str) -> None:
    assert STAGES[stage]["cmd"].startswith(f"python -m stages.{stage} ")


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"compose"}))
def test_settings_come_from_the_composed_file(stage: str) -> None:
    assert "from_config=outputs/config/" in STAGES[stage]["cmd"]
    assert "${overrides}" not in STAGES[stage]["cmd"]


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_deps_name_all_code_that_a_stage_runs(stage: str) -> None:
    deps = [dep for dep in STAGES[stage]["deps"] if dep.startswith(("pipeline", "stages"))]
    for dep in deps:
        assert (ROOT / dep).exists(), f"{stage} depends on {dep}, which is gone"
    needed = _closure(stage) - NO_RESULT
    missing = {source for source in needed if not any(Path(source).is_relative_to(d) for d in deps)}
    assert not missing, f"add to deps of {stage} in dvc.yaml: {sorted(missing)}"


@pytest.mark.parametrize("stage", ["train", "decode"])
def test_what_must_survive_an_interruption_is_persistent(stage: str) -> None:
    for out in STAGES[stage]["outs"]:
        assert all(options["persist"] for options in out.values())


def test_every_output_is_cached_so_that_experiments_can_be_shown_and_applied() -> None:
    for stage in STAGES.values():
        for out in (*stage["outs"], *stage.get("metrics", []), *stage.get("plots", [])):
            options = next(iter(out.values())) if isinstance(out, dict) else {}
            assert options.get("cache", True)
