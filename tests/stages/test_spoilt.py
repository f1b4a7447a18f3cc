"""Files that were spoilt between the stages: one sentence that names the file, no wrong number."""

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
from tests.stages.made_run import Run, settings

STAGES = {"uncertainty": uncertainty, "metrics": metrics, "tables": tables}
PREX, EXPR = "random_init.prex.newstest14", "random_init.expr.newstest14"
MEASURES = f"uncertainty/nmt_ende/{PREX}"
Spoil = Callable[[Path], None]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run up to its tables, of random texts and numbers."""
    root = tmp_path_factory.mktemp("whole")
    Run(root).write()
    prepared = root / "prepare" / "nmt_ende"
    prepared.mkdir(parents=True)
    (prepared / "data_card.md").write_text("# Data\n", encoding="utf-8")
    list_files(prepared, "prepare", {"subsets": []})
    for stage in STAGES.values():
        stage(settings(root))
    return root


def cut(name: str, kept: float = 0.5) -> Spoil:
    def spoil(root: Path) -> None:
        content = (root / name).read_bytes()
        (root / name).write_bytes(content[: int(kept * len(content))])

    return spoil


def written(name: str, content: str) -> Spoil:
    def spoil(root: Path) -> None:
        (root / name).write_text(content, encoding="utf-8")

    return spoil


def lost(name: str) -> Spoil:
    return lambda root: (root / name).unlink()


def folder_instead(name: str) -> Spoil:
    def spoil(root: Path) -> None:
        (root / name).unlink()
        (root / name).mkdir()

    return spoil


def swapped(one: str, other: str) -> Spoil:
    def spoil(root: Path) -> None:
        content = (root / one).read_bytes()
        (root / one).write_bytes((root / other).read_bytes())
        (root / other).write_bytes(content)

    return spoil


def last_line_lost(name: str) -> Spoil:
    def spoil(root: Path) -> None:
        lines = (root / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (root / name).write_text("".join(lines[:-1]), encoding="utf-8")

    return spoil


def nan_measure(root: Path) -> None:
    path = root / MEASURES / "sequence.parquet"
    frame = pd.read_parquet(path)
    frame.loc[3, "prex_rmi_s"] = np.nan
    frame.to_parquet(path)


def decoded_again(root: Path) -> None:
    """As `stages.decode` leaves it after other settings, with the measures of the old decode."""
    folder = root / "decode" / "nmt_ende"
    write_manifest(folder / PREX, made_by("decode", "other"), ["store.h5"], hashed=False)
    parts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["parts"]
    parts[PREX] = made_by("decode", "other").digest
    write_manifest(folder, made_by("decode"), [], parts=parts)


def of_another_task(stage: str) -> Spoil:
    def spoil(root: Path) -> None:
        other = root / "another"
        run = Run(other, "nmt_enfr")
        run.stores = [(f"{name}.x", given, has) for name, given, has in run.stores]
        run.write()
        for earlier in list(STAGES)[: list(STAGES).index(stage) + 1]:
            STAGES[earlier](settings(other, "task=nmt_enfr"))
        shutil.rmtree(root / stage / "nmt_ende")
        (other / stage / "nmt_enfr").replace(root / stage / "nmt_ende")

    return spoil


def described(description: dict[str, Any]) -> Spoil:
    return lambda root: list_files(root / "prepare" / "nmt_ende", "prepare", description)


def bit_flipped_store(root: Path) -> None:
    path = root / "decode" / "nmt_ende" / PREX / "store.h5"
    content = bytearray(path.read_bytes())
    # The last compressed chunk: HDF5 writes them as they come.
    content[content.rindex(b"\x78\x01") + 4] ^= 255
    path.write_bytes(content)


def measured_otherwise(root: Path) -> None:
    STAGES["uncertainty"](settings(root, "uncertainty.eos=zero"))


DAMAGED = r"manifest\.json: damaged JSON"
AGAIN = r"Run python -m stages\.{} again\."
CHANGED = "changed since stage"
MISSING = r": no such file\. Run"
CELLS, DRAWS = "metrics/nmt_ende/cells.csv", "metrics/nmt_ende/draws.parquet"
FIGURES = "metrics/nmt_ende/figures/nmt_ende_figures.json"


@pytest.mark.parametrize(
    ("spoil", "stage", "words"),
    [
        (written("decode/nmt_ende/manifest.json", "[]"), "uncertainty", DAMAGED),
        (
            cut(f"decode/nmt_ende/{PREX}/store.h5"),
            "uncertainty",
            rf"missing, damaged or not in manifest\.json \({PREX}\)",
        ),
        (
            swapped(
                f"decode/nmt_ende/{PREX}/manifest.json",
                "decode/nmt_ende/random_init.prex.PRM/manifest.json",
            ),
            "uncertainty",
            "parts are missing, damaged",
        ),
        (bit_flipped_store, "uncertainty", "store.h5: dataset /.*: cannot be read"),
        (cut(f"{MEASURES}/sequence.parquet"), "metrics", AGAIN.format("uncertainty")),
        (folder_instead(f"{MEASURES}/token.parquet"), "metrics", f"token.parquet{MISSING}"),
        (lost(f"{MEASURES}/checks.json"), "metrics", rf"checks\.json{MISSING}"),
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
            written("uncertainty/nmt_ende/manifest.json", "{"),
            "metrics",
            DAMAGED,
        ),
        (
            written("uncertainty/nmt_ende/manifest.json", "{}"),
            "metrics",
            "not a manifest of stage uncertainty",
        ),
        (
            written("prepare/nmt_ende/manifest.json", "[1]"),
            "metrics",
            DAMAGED,
        ),
        (
            described({"absent_sets": None}),
            "metrics",
            r"absent_sets must map names to reasons \(got None\)",
        ),
        (measured_otherwise, "metrics", "'eos': 'zero', .*, but the settings .*'eos': 'include'"),
        (last_line_lost(CELLS), "tables", rf"cells\.csv: {CHANGED}"),
        (lost(CELLS), "tables", rf"cells\.csv{MISSING}"),
        (cut(DRAWS), "tables", rf"draws\.parquet: {CHANGED}"),
        (lost(FIGURES), "tables", rf"figures\.json{MISSING}"),
        (of_another_task("metrics"), "tables", "not made from the current"),
        (decoded_again, "tables", AGAIN.format("uncertainty")),
        (written("prepare/nmt_ende/manifest.json", "\0"), "tables", DAMAGED),
    ],
)
def test_hostile_spoilt_file_between_stages_is_one_sentence(
    spoil: Spoil, stage: str, words: str, whole: Path, tmp_path: Path
) -> None:
    root = tmp_path / "outputs"
    shutil.copytree(whole, root)
    spoil(root)
    before = sorted(path for path in (root / stage).rglob("*"))
    with pytest.raises(PipelineError, match=words) as refused:
        STAGES[stage](settings(root))
    assert str(root) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(path for path in (root / stage).rglob("*")) == before


@pytest.mark.parametrize(
    ("spoil", "stage", "words"),
    [
        (cut(f"{MEASURES}/sequence.parquet"), "metrics", "sequence.parquet: not a complete table"),
        (
            written(f"{MEASURES}/token.parquet", "x"),
            "metrics",
            "token.parquet: not a complete table",
        ),
        (written(f"{MEASURES}/checks.json", "[]"), "metrics", "checks.json: damaged JSON"),
        (cut(CELLS, 0.9), "tables", "cells.csv: not a complete table of cells"),
        (folder_instead(CELLS), "tables", "cells.csv: not a complete table of cells"),
        (lost(DRAWS), "tables", "draws.parquet: not a table of draws"),
        (written(FIGURES, "{}"), "tables", "figures.json: damaged JSON"),
    ],
)
def test_hostile_spoilt_file_of_a_folder_without_manifest(
    spoil: Spoil, stage: str, words: str, whole: Path, tmp_path: Path
) -> None:
    root = tmp_path / "outputs"
    shutil.copytree(whole, root)
    for earlier in ("uncertainty", "metrics"):
        (root / earlier / "nmt_ende" / "manifest.json").unlink()
    spoil(root)
    with pytest.raises(PipelineError, match=words) as refused:
        STAGES[stage](settings(root))
    assert "\n" not in str(refused.value)
