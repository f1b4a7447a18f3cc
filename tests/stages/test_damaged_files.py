"""A file damaged between two stages gives an error that names it, and no wrong number."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import PipelineError
from pipeline.run.artifacts import write_manifest
from stages.metrics import metrics
from stages.tables import tables
from stages.uncertainty import uncertainty
from tests.artifacts import list_files, made_by
from tests.stages.synthetic_run import SyntheticRun, settings

STAGES = {"uncertainty": uncertainty, "metrics": metrics, "tables": tables}
PREX, EXPR = "random_init.prex.help", "random_init.expr.help"
MEASURES = f"uncertainty/nmt_ende/{PREX}"
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run up to its tables from random texts and numbers."""
    root = tmp_path_factory.mktemp("complete")
    SyntheticRun(root).write()
    prepared = root / "prepare" / "nmt_ende"
    prepared.mkdir(parents=True)
    (prepared / "data_card.md").write_text("# Data\n", encoding="utf-8")
    list_files(prepared, "prepare", {"subsets": []})
    for stage in STAGES.values():
        stage(settings(root))
    return root


def cut(name: str, kept: float = 0.5) -> Damage:
    def damage(root: Path) -> None:
        content = (root / name).read_bytes()
        (root / name).write_bytes(content[: int(kept * len(content))])

    return damage


def overwritten(name: str, content: str) -> Damage:
    def damage(root: Path) -> None:
        (root / name).write_text(content, encoding="utf-8")

    return damage


def deleted(name: str) -> Damage:
    return lambda root: (root / name).unlink()


def replaced_by_a_folder(name: str) -> Damage:
    def damage(root: Path) -> None:
        (root / name).unlink()
        (root / name).mkdir()

    return damage


def swapped(first: str, second: str) -> Damage:
    def damage(root: Path) -> None:
        content = (root / first).read_bytes()
        (root / first).write_bytes((root / second).read_bytes())
        (root / second).write_bytes(content)

    return damage


def last_line_deleted(name: str) -> Damage:
    def damage(root: Path) -> None:
        lines = (root / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (root / name).write_text("".join(lines[:-1]), encoding="utf-8")

    return damage


def nan_measure(root: Path) -> None:
    path = root / MEASURES / "sequence.parquet"
    frame = pd.read_parquet(path)
    frame.loc[3, "prex_rmi_s"] = np.nan
    frame.to_parquet(path)


def decoded_again(root: Path) -> None:
    """Leave a decode with other settings but the measures of the previous decode."""
    folder = root / "decode" / "nmt_ende"
    write_manifest(folder / PREX, made_by("decode", "other"), ["store.h5"], hashed=False)
    parts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["parts"]
    parts[PREX] = made_by("decode", "other").digest
    write_manifest(folder, made_by("decode"), [], parts=parts)


def of_another_task(stage: str) -> Damage:
    def damage(root: Path) -> None:
        elsewhere = root / "another"
        run = SyntheticRun(elsewhere, "nmt_enfr")
        run.stores = [(f"{name}.x", *part) for name, *part in run.stores]
        run.write()
        for earlier in list(STAGES)[: list(STAGES).index(stage) + 1]:
            STAGES[earlier](settings(elsewhere, "task=nmt_enfr"))
        shutil.rmtree(root / stage / "nmt_ende")
        (elsewhere / stage / "nmt_enfr").replace(root / stage / "nmt_ende")

    return damage


def prepared_with(description: dict[str, Any]) -> Damage:
    return lambda root: list_files(root / "prepare" / "nmt_ende", "prepare", description)


def bit_flipped_store(root: Path) -> None:
    path = root / "decode" / "nmt_ende" / PREX / "store.h5"
    content = bytearray(path.read_bytes())
    # Damage the last compressed chunk of the file.
    content[content.rindex(b"\x78\x01") + 4] ^= 255
    path.write_bytes(content)


def measured_with_other_settings(root: Path) -> None:
    STAGES["uncertainty"](settings(root, "uncertainty.eos=zero"))


DAMAGED = r"manifest\.json: damaged JSON"
AGAIN = r"Run python -m stages\.{} again\."
CHANGED = "changed since stage"
MISSING = r": no such file\. Run"
CELLS, DRAWS = "metrics/nmt_ende/cells.csv", "metrics/nmt_ende/draws.parquet"
REPLICATES = "metrics/nmt_ende/replicates.csv"
FIGURES = "metrics/nmt_ende/figures/nmt_ende_figures.json"


@pytest.mark.parametrize(
    ("damage", "stage", "words"),
    [
        (overwritten("decode/nmt_ende/manifest.json", "[]"), "uncertainty", DAMAGED),
        (
            cut(f"decode/nmt_ende/{PREX}/store.h5"),
            "uncertainty",
            rf"missing, damaged or not in manifest\.json \({PREX}\)",
        ),
        (
            swapped(
                f"decode/nmt_ende/{PREX}/manifest.json",
                "decode/nmt_ende/random_init.prex.permuted/manifest.json",
            ),
            "uncertainty",
            "parts are missing, damaged",
        ),
        (bit_flipped_store, "uncertainty", "store.h5: dataset /.*: cannot be read"),
        (cut(f"{MEASURES}/sequence.parquet"), "metrics", AGAIN.format("uncertainty")),
        (replaced_by_a_folder(f"{MEASURES}/token.parquet"), "metrics", f"token.parquet{MISSING}"),
        (deleted(f"{MEASURES}/checks.json"), "metrics", rf"checks\.json{MISSING}"),
        (nan_measure, "metrics", rf"sequence\.parquet: {CHANGED}"),
        (
            swapped(
                f"{MEASURES}/sequence.parquet", f"uncertainty/nmt_ende/{EXPR}/sequence.parquet"
            ),
            "metrics",
            rf"sequence\.parquet: {CHANGED}",
        ),
        (decoded_again, "metrics", f"not made from the current {PREX}"),
        (of_another_task("uncertainty"), "metrics", "not made from the current"),
        (
            overwritten("uncertainty/nmt_ende/manifest.json", "{"),
            "metrics",
            DAMAGED,
        ),
        (
            overwritten("uncertainty/nmt_ende/manifest.json", "{}"),
            "metrics",
            "not a manifest of stage uncertainty",
        ),
        (
            overwritten("prepare/nmt_ende/manifest.json", "[1]"),
            "metrics",
            DAMAGED,
        ),
        (
            prepared_with({"absent_sets": None}),
            "metrics",
            r"absent_sets must map names to reasons \(got None\)",
        ),
        (
            measured_with_other_settings,
            "metrics",
            "'eos': 'zero', .*, but the settings .*'eos': 'include'",
        ),
        (last_line_deleted(CELLS), "tables", rf"cells\.csv: {CHANGED}"),
        (deleted(CELLS), "tables", rf"cells\.csv{MISSING}"),
        (cut(DRAWS), "tables", rf"draws\.parquet: {CHANGED}"),
        (last_line_deleted(REPLICATES), "tables", rf"replicates\.csv: {CHANGED}"),
        (deleted(FIGURES), "tables", rf"figures\.json{MISSING}"),
        (of_another_task("metrics"), "tables", "not made from the current"),
        (decoded_again, "tables", AGAIN.format("uncertainty")),
        (overwritten("prepare/nmt_ende/manifest.json", "\0"), "tables", DAMAGED),
    ],
)
def test_hostile_damaged_file_between_stages_is_named_in_one_line(
    damage: Damage, stage: str, words: str, complete: Path, tmp_path: Path
) -> None:
    root = tmp_path / "outputs"
    shutil.copytree(complete, root)
    damage(root)
    before = sorted(path for path in (root / stage).rglob("*"))
    with pytest.raises(PipelineError, match=words) as refused:
        STAGES[stage](settings(root))
    assert str(root) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(path for path in (root / stage).rglob("*")) == before


@pytest.mark.parametrize(
    ("damage", "stage", "words"),
    [
        (cut(f"{MEASURES}/sequence.parquet"), "metrics", "sequence.parquet: not a complete table"),
        (
            overwritten(f"{MEASURES}/token.parquet", "x"),
            "metrics",
            "token.parquet: not a complete table",
        ),
        (overwritten(f"{MEASURES}/checks.json", "[]"), "metrics", "checks.json: damaged JSON"),
        (cut(CELLS, 0.9), "tables", "cells.csv: not a complete table of cells"),
        (replaced_by_a_folder(CELLS), "tables", "cells.csv: not a complete table of cells"),
        (deleted(DRAWS), "tables", "draws.parquet: not a table of draws"),
        (deleted(REPLICATES), "tables", "replicates.csv: not a table of replicates"),
        (overwritten(FIGURES, "{}"), "tables", "figures.json: damaged JSON"),
    ],
)
def test_hostile_damaged_file_of_a_folder_without_manifest_is_named(
    damage: Damage, stage: str, words: str, complete: Path, tmp_path: Path
) -> None:
    root = tmp_path / "outputs"
    shutil.copytree(complete, root)
    for earlier in ("uncertainty", "metrics"):
        (root / earlier / "nmt_ende" / "manifest.json").unlink()
    damage(root)
    with pytest.raises(PipelineError, match=words) as refused:
        STAGES[stage](settings(root))
    assert "\n" not in str(refused.value)
