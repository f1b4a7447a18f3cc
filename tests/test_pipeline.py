"""The whole pipeline at smoke size, by `dvc repro` in a fresh copy of the repository."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeline.config import ROOT

TABLES = ("tab_nmt-bleu-asr-wer", "tab_sequence-error-detection", "tab_ood-detection")


def _git(*arguments: str, cwd: Path) -> str:
    result = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, check=True)
    return result.stdout.decode()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files as they are now, in a folder of their own, set to smoke size."""
    folder = tmp_path_factory.mktemp("fresh") / "clone"
    for name in _git("ls-files", "-z", "-c", "-o", "--exclude-standard", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    _git("init", "-q", cwd=folder)
    (folder / "dvc.lock").unlink(missing_ok=True)
    dag = folder / "conf" / "dag.yaml"
    settings = yaml.safe_load(dag.read_text())
    settings["experiment"] = "smoke"
    # Downloads are shared with the repository's own, so that a second test run needs no network.
    settings["overrides"] = f"data.downloads={ROOT / 'outputs' / 'downloads'}"
    dag.write_text(yaml.safe_dump(settings))
    return folder


def _repro(folder: Path) -> list[str]:
    """Run `dvc repro`; the stages that ran."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("PYTHONPATH", None)
    result = subprocess.run(
        [sys.executable, "-m", "dvc", "repro"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-6000:]
    return sorted(set(re.findall(r"Running stage '(\w+)", result.stdout)))


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.fixture(scope="module")
def first_run(clone: Path) -> list[str]:
    return _repro(clone)


def test_every_stage_runs(first_run: list[str]) -> None:
    assert first_run == sorted(yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"])


@pytest.mark.usefixtures("first_run")
def test_every_cell_holds_a_number_or_a_reason(clone: Path) -> None:
    tables = clone / "outputs" / "tables"
    for name in TABLES:
        assert all((tables / f"{name}.{ending}").stat().st_size for ending in ("csv", "md", "tex"))
    with (tables / "results.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    assert {cell["table"].replace(":", "_") for cell in cells} == set(TABLES)
    for cell in cells:
        assert bool(cell["value"]) != bool(cell["reason"]), cell
        assert cell["value"].lower() not in ("nan", "inf", "-inf"), cell
    assert sum(bool(cell["value"]) for cell in cells) > len(cells) / 2


@pytest.mark.usefixtures("first_run")
def test_no_output_holds_a_path_or_host_of_this_machine(clone: Path) -> None:
    for path in (clone / "outputs").rglob("*"):
        inside = path.relative_to(clone / "outputs").parts[0]
        if path.is_file() and inside not in ("hydra", "config", "mlflow.db", "mlartifacts"):
            assert str(clone).encode() not in path.read_bytes(), path


@pytest.mark.usefixtures("first_run")
def test_what_is_run_again_after_an_edit(clone: Path) -> None:
    assert _repro(clone) == []
    after_decoding = ["compose", "metrics", "tables", "uncertainty"]
    _edit(clone / "conf" / "uncertainty" / "default.yaml", "temperature: 10", "temperature: 5")
    assert _repro(clone) == after_decoding
    _edit(clone / "conf" / "decode" / "beam.yaml", "beam: 5", "beam: 3")
    assert _repro(clone) == sorted(["decode", *after_decoding])
