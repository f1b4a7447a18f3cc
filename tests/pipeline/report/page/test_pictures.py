"""The README's pictures exist, are small, and one command makes them from a report."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from pipeline.report.page import PageContent, write_page
from pipeline.run.settings import ROOT

MOST_BYTES = 150_000


def test_the_pictures_of_the_readme_are_small_and_come_from_a_report(
    chromium: Browser, write_results: Callable[..., PageContent], tmp_path: Path
) -> None:
    shown = re.findall(r"\]\((docs/pictures/[^)]*)\)", (ROOT / "README.md").read_text("utf-8"))
    assert {path.name for path in map(Path, shown)} == {"page.png", "figure.png"}
    assert [name for name in shown if (ROOT / name).stat().st_size > MOST_BYTES] == []
    content = write_results(n_sentence=60)
    curves = replace(content.figures[0], title="EN-DE: Rejection curves")
    write_page(tmp_path / "index.html", replace(content, figures=[curves]))
    take_pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["take_pictures"]
    take_pictures(chromium, tmp_path / "index.html", tmp_path / "pictures")
    with Image.open(tmp_path / "pictures" / "page.png") as picture:
        assert picture.width == 1280
        assert 500 < picture.height < 1500
    with Image.open(tmp_path / "pictures" / "figure.png") as picture:
        assert picture.size == (600, 60)
