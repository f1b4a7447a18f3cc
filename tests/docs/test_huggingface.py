"""Follow docs/huggingface.md and docs/huggingface_causal.md with tiny models, without a network."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from pipeline.run.artifacts import Artifact
from pipeline.run.settings import ROOT
from tests.docs.runs import OFFLINE, follow
from tests.pipeline.huggingface.folders import TEXTS, save_causal, save_marian

MARIAN = ROOT / "docs" / "huggingface.md"
CAUSAL = ROOT / "docs" / "huggingface_causal.md"
# Few decodes, of few tokens.
_TINY = (
    *("tracking=off", "decode.also=[teacher_forcing]", "decode.parts_per_job=99"),
    *("decode.max_length_ratio=0", "decode.max_length_offset=6", "decode.subsets_per_size=0"),
    *("metrics.resamples=0", "~report.figures"),
)


def _follow(page: Path, folder: Path, models: list[str], save: Any) -> Path:
    for seed, model in enumerate(models, 1):
        save(folder / model, seed)
    (folder / "text").mkdir()
    for name, texts in (("dev", TEXTS[:4]), ("news", TEXTS[4:]), ("other", TEXTS[::-2])):
        for language in ("en", "de"):
            if (name, language) == ("other", "de"):
                continue  # this set has no references
            path = folder / "text" / f"{name}.{language}"
            path.write_text("\n".join(texts) + "\n", encoding="utf-8", newline="\n")
    # With an empty PATH, the page can need no other program.
    follow(page, folder, _TINY, **OFFLINE, PATH="", HF_HUB_OFFLINE="1")
    return folder / "outputs"


def _evaluated(outputs: Path, task: str) -> dict[str, set[str]]:
    with (outputs / "metrics" / task / "cells.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for cell in csv.DictReader(file) if cell["value"]]
    return {
        metric: {cell["test_set"] for cell in cells if cell["metric"] == metric}
        for metric in ("bleu", "nll", "roc_auc")
    }


@pytest.mark.slow
def test_three_marian_models_give_the_tables_of_the_page(tmp_path: Path) -> None:
    models = ["marian/a", "marian/b", "marian/c"]
    outputs = _follow(MARIAN, tmp_path, models, save_marian)
    assert "huggingface.prex.other" in Artifact(outputs / "decode" / "news", "decode").parts()
    assert _evaluated(outputs, "news") == {
        "bleu": {"news", "typos"}, "nll": {"news"}, "roc_auc": {"typos", "other"},
    }  # fmt: skip
    performance = (outputs / "tables" / "beyond_performance.md").read_text(encoding="utf-8")
    assert "Models (English-German): a, b, c." in performance
    assert (outputs / "report" / "index.html").is_file()


@pytest.mark.slow
def test_two_causal_models_give_the_tables_of_the_page(tmp_path: Path) -> None:
    outputs = _follow(CAUSAL, tmp_path, ["gpt/a", "gpt/b"], save_causal)
    assert _evaluated(outputs, "prompted") == {
        "bleu": {"news", "typos"}, "nll": {"news"}, "roc_auc": {"typos"},
    }  # fmt: skip
    assert (outputs / "report" / "index.html").is_file()
