"""Run the complete pipeline at smoke size by `dvc repro` in a fresh copy of the repository."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pipeline.metrics.sentence_detection import CONSTANT
from pipeline.run.settings import ROOT
from tests.conftest import copy_repository, environment_of_copy

pytestmark = pytest.mark.slow

_REPORT = yaml.safe_load((ROOT / "conf" / "report" / "default.yaml").read_text())
_DATA_SETS = ("apn-tab:nmt", "apn-tab:asr")
# Tables of English-French, and those that need settings or files of the user.
_NOT_MADE = {
    "tab-app:ood-detection-prex",
    *("beyond:own-measures", "beyond:scores", "beyond:mean-scores"),
    *("beyond:released-rules", "beyond:released-token-rules"),
}
TABLES = {
    label.replace(":", "_")
    for label in (*_REPORT["paper_tables"], *_REPORT["tables"], *_DATA_SETS)
    if label not in _NOT_MADE
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the repository and choose the smoke experiment."""
    folder = tmp_path_factory.mktemp("fresh") / "clone"
    # The copy uses the downloads of the repository, so that a second test run needs no network.
    overrides = (
        f"data.downloads={ROOT / 'outputs' / 'downloads'}",
        "+ensemble@ensemble.also.checkpoint=checkpoint",
        "+ensemble.also.checkpoint.seeds=[1]",
        "data.test_sentences=10",
        "data.dev_sentences=10",
        "train.updates=20",
        "train.warmup_updates=5",
        "train.validate_interval_updates=10",
        "train.checkpoint_interval_updates=5",
        # Tests of stage decode check the decoder with every kind of ensemble and for speech.
        "decode.self_check=false",
        "decode.beam=5",
        "uncertainty.beam=[1,5]",
        "metrics.resamples=20",
    )
    copy_repository(folder, "smoke", " ".join(overrides), tasks=("nmt_ende", "asr"))
    return folder


def _repro(folder: Path) -> list[str]:
    """Run `dvc repro`; return the stages that ran."""
    result = subprocess.run(
        [sys.executable, "-m", "dvc", "repro"],
        cwd=folder,
        env=environment_of_copy(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-6000:]
    return sorted(set(re.findall(r"Running stage '(\w+)", result.stdout)))


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
    assert (clone / "outputs" / "report" / "index.html").stat().st_size > 10**5
    with (tables / "results.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    with_cells = {cell["table"].replace(":", "_") for cell in cells}
    assert with_cells == TABLES
    for cell in cells:
        # A measure that is constant has a value and a reason, for example the copied share of
        # models that copy nothing, and its value is that of chance. So has a value that is
        # undefined on a few resamples.
        chance = {"roc_auc": "50", "prr": "0"}.get(cell["metric"])
        constant = cell["reason"] == CONSTANT and cell["value"] == chance
        undefined = "undefined in" in cell["reason"]
        assert bool(cell["value"]) != bool(cell["reason"]) or constant or undefined, cell
        assert cell["value"].lower() not in ("nan", "inf", "-inf"), cell
    assert sum(bool(cell["value"]) for cell in cells) > len(cells) / 2


@pytest.mark.usefixtures("first_run")
def test_logs_are_free_of_what_other_packages_log(clone: Path) -> None:
    for path in (clone / "outputs" / "logs").glob("metrics.*.log"):
        assert " pruned" not in path.read_text(encoding="utf-8")  # fontTools, for every PDF


def test_no_output_holds_a_path_or_host_of_this_machine(clone: Path) -> None:
    for path in (clone / "outputs").rglob("*"):
        top_level = path.relative_to(clone / "outputs").parts[0]
        if path.is_file() and top_level not in (
            "hydra",
            "logs",
            "config",
            "mlflow.db",
            "mlartifacts",
        ):
            assert str(clone).encode() not in path.read_bytes(), path
