"""Run the tutorial pages from top to bottom, each in its own folder, on tiny data."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from pipeline.run.settings import ROOT
from tests.docs.pages import SHELL, Block, blocks, split
from tests.docs.runs import run_python

# Page -> the page whose results it uses.
SESSIONS = {
    "tutorial.md": None,
    "write_a_store.md": None,
    "scores.md": "write_a_store.md",
    "baselines.md": "write_a_store.md",
    "your_own_measure.md": "write_a_store.md",
    "your_own_model.md": None,
    "prex_expr.md": None,
}
# Settings that fit the smoke experiment to a hundred sentences and one test set.
LEFT_OUT = [
    "debian-reference",
    "fish-fillets",
    "librispeech-test-other",
    "permuted",
    "french-source",
    "german-source",
    "typos",
    "truncated",
    "german-english",
    "german-german",
    "english-english",
    "french-english",
]
TINY = (
    *(f"~task.test_sets.{role}" for role in LEFT_OUT),
    "data.train_sentences=60",
    "data.test_sentences=6",
    "data.dev_sentences=4",
    "data.near_duplicate_jaccard=1",
    "data.vocabulary_size=100",
    "model.settings.encoder.layers=1",
    "train.updates=4",
    "train.validate_interval_updates=4",
    "train.validate_quality_sentences=0",
    "train.checkpoint_interval_updates=2",
    "train.keep_checkpoints=2",
    "decode.also=[]",
    "decode.self_check=false",
    "metrics.resamples=0",
    "~report.figures",
    "tracking=off",
)
# Commands that whoever runs the tests has already run.
INSTALLATION = (["make", "setup"], [".", ".venv/bin/activate"])


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that runs a page once, and gives its folder."""

    @cache
    def run(page: str) -> Path:
        folder = tmp_path_factory.mktemp(page.partition(".")[0])
        _run_page(ROOT / "docs" / page, folder, [])
        return folder

    return run


@pytest.mark.parametrize("page", SESSIONS)
def test_page_runs_and_prints_what_it_shows(
    page: str, tmp_path: Path, help_packages: Path, after: Callable[[str], Path]
) -> None:
    before = SESSIONS[page]
    if page in SESSIONS.values():
        after(page)
    elif before is not None:
        folder = tmp_path / "after"
        shutil.copytree(after(before), folder)
        _run_page(ROOT / "docs" / page, folder, [])
    else:
        tiny = [*TINY, f"data.packages='{help_packages}'"] if page == "tutorial.md" else []
        _run_page(ROOT / "docs" / page, tmp_path, tiny)


def _run_page(page: Path, folder: Path, tiny: list[str]) -> None:
    printed = ""
    for block in blocks(page):
        if block.language in SHELL:
            for words in split(block.text):
                if words not in INSTALLATION:
                    printed = _run(words, folder, tiny)
        elif block.title == "prints":
            assert printed == block.text
        elif block.title:
            _write(block, folder)
        elif block.language == "python":
            printed = _run(["python", "-c", block.text], folder, [])


def _write(block: Block, folder: Path) -> None:
    path = folder / block.title
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")


def _run(words: list[str], folder: Path, tiny: list[str]) -> str:
    assert words[0] == "python", f"{' '.join(words)}: only Python commands can be run here"
    return run_python([*words[1:], *tiny], folder).stdout
