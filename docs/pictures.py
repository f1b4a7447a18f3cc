"""Take the README's pictures from the report of a run: `python docs/pictures.py [index.html]`."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
_REPORT = ROOT / "outputs" / "report" / "index.html"
_WIDTH, _HEIGHT, _MARGIN = 1280, 1000, 16
_COLOURS = 128  # enough for text and plots, in a third of the size


def take_pictures(browser: Browser, report: Path, folder: Path) -> None:
    """Write page.png, an opened sentence in the report, and figure.png, its rejection curves."""
    size = {"width": _WIDTH, "height": _HEIGHT}
    with browser.new_context(viewport=size, color_scheme="light") as context:
        page = context.new_page()
        page.goto(report.resolve().as_uri())
        page.locator("#list > li > button").first.click()
        page.locator(".detail .heat").first.wait_for()
        top, bottom = (_box(page, name)["y"] for name in ("#cloud", ".readout"))
        bottom += _box(page, ".readout")["height"]
        clip = FloatRect(x=0, y=top - _MARGIN, width=_WIDTH, height=bottom - top + 2 * _MARGIN)
        _write(folder / "page.png", page.screenshot(full_page=True, clip=clip))
        curves = page.locator("img[alt$=': Rejection curves']").first
        _write(folder / "figure.png", _picture(page, curves.get_attribute("src") or ""))


def _box(page: Page, selector: str) -> FloatRect:
    """Where the first such element is on the page, which must not have been scrolled."""
    page.evaluate("scrollTo(0, 0)")
    box = page.locator(selector).first.bounding_box()
    if box is None:
        raise ValueError(f"{selector} is not on the page")
    return box


def _picture(page: Page, address: str) -> bytes:
    """The figure alone, on white."""
    page.set_content(f'<body style="margin: 0; background: #fff"><img src="{address}"></body>')
    return page.locator("img").screenshot()


def _write(path: Path, png: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    program = shutil.which("chromium")
    report = Path(sys.argv[1]) if len(sys.argv) > 1 else _REPORT
    if program is None:
        sys.exit("error: chromium: is not on PATH. Install it (apt-get install chromium).")
    if not report.is_file():
        sys.exit(f"error: {report}: no such file. Run make repro, or name the report of a run.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        take_pictures(browser, report, PICTURES)
