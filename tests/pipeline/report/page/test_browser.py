"""The page in headless Chromium: browsing, accessibility and safety."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from pipeline.report.page import PageContent, write_page

WriteResults = Callable[..., PageContent]
WIDTHS = {"desk": (1200, 900), "phone": (390, 844)}


@pytest.fixture(scope="module")
def address(write_results: WriteResults, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "index.html"
    write_page(path, write_results(n_sentence=120))
    return path.as_uri()


@pytest.fixture
def page(chromium: Browser, address: str) -> Iterator[Page]:
    with chromium.new_context(viewport={"width": 1200, "height": 900}) as context:
        shown = context.new_page()
        events: list[str] = []
        shown.on("console", lambda message: events.append(message.text))
        shown.on("pageerror", lambda error: events.append(str(error)))
        shown.on("dialog", lambda dialog: events.append(dialog.message))
        shown.on("request", lambda request: events.append(request.url))
        shown.goto(address)
        shown.locator("#list > li").first.wait_for()
        yield shown
        # The page loads only itself and its figures, and reports no errors.
        assert [event for event in events if event != address and event[:5] != "data:"] == []


def data_of(page: Page, index: int = 0) -> dict[str, Any]:
    packed = page.locator(f"#data-{index}").text_content() or ""
    return dict(json.loads(gzip.decompress(base64.b64decode(packed))))


def positions(page: Page) -> list[int]:
    return [int(text) for text in page.locator("#list .position").all_text_contents()]


def test_sentences_are_sorted_by_measure_error_or_position(page: Page) -> None:
    data = data_of(page)
    page.select_option("#measure", "prex_rmi_s")
    values = data["measures"]["prex_rmi_s"]
    valued = [position for position in range(120) if values[position] is not None]
    expected = sorted(valued, key=lambda position: (-values[position], position))
    assert positions(page) == expected[:50]
    page.select_option("#order", "error-up")
    errors = data["error_percent"]
    assert positions(page) == sorted(valued, key=lambda position: (errors[position], position))[:50]
    page.select_option("#order", "position")
    assert positions(page) == list(range(50))


def test_sentences_without_a_value_come_last(page: Page) -> None:
    for order in ("measure-down", "measure-up"):
        page.select_option("#order", order)
        page.click("#next")
        page.click("#next")
        assert page.locator("#next").is_disabled()
        assert positions(page)[-1] == 119
        assert page.locator("#list > li").last.locator(".number b").first.text_content() == "n/a"


def test_sentences_are_filtered_by_text_measure_and_error(page: Page) -> None:
    page.fill("#search", "SATZ 11")
    assert sorted(positions(page)) == [11, *range(110, 120)]
    assert "11 of 120 sentences match" in (page.text_content("#status") or "")
    page.click("#clear")
    data = data_of(page)
    values = data["measures"][page.input_value("#measure")]
    low = sorted(value for value in values if value is not None)[100]
    page.fill("#measure-low", str(low))
    assert sorted(positions(page)) == [
        position for position, value in enumerate(values) if value is not None and value >= low
    ]
    page.click("#clear")
    page.fill("#error-high", "0")
    assert positions(page) == []
    assert "0 of 120 sentences match." in (page.text_content("#status") or "")


def test_selecting_another_test_set_shows_its_sentences(page: Page) -> None:
    page.select_option("#set", label="nmt_ende: PRM")
    page.get_by_text("No scatter plot: this test set has no references").wait_for()
    assert "random-init PrEx (seed 1, seed 2, seed 3)" in (page.text_content("#decode") or "")
    page.locator("#list > li > button").first.click()
    assert page.locator(".detail:not([hidden]) dd.absent").text_content() == "none"


def test_an_opened_sentence_shows_n_best_list_tokens_and_members(page: Page) -> None:
    page.select_option("#order", "position")
    row = page.locator("#list > li").nth(7)
    row.locator("> button").focus()
    page.keyboard.press("Enter")
    assert row.locator("> button").get_attribute("aria-expanded") == "true"
    data = data_of(page)
    detail = row.locator(".detail")
    assert detail.locator("td.words").all_text_contents() == data["hypothesis"][14:16]
    first, after = data["token_offset"][7:9]
    tokens = detail.locator(".token")
    assert tokens.count() == after - first
    assert detail.locator(".members dt").all_text_contents() == ["seed 1", "seed 2", "seed 3"]
    tokens.first.focus()
    page.keyboard.press("ArrowRight")
    total = f"H {data['total'][first + 1]:.3f}"
    assert total in (detail.locator(".readout p").text_content() or "")
    assert total in (tokens.nth(1).get_attribute("aria-label") or "")
    detail.get_by_text("All numbers per token").click()
    detail.get_by_role("columnheader", name="ln P, seed 3").wait_for()
    assert detail.locator("table").nth(1).locator("tbody tr").count() == after - first
    detail.get_by_text("All measures of this sentence").click()
    detail.get_by_role("rowheader", name="PrEx knowledge M, S-IW").wait_for()
    row.locator("> button").click()
    assert detail.is_hidden()


def test_the_colouring_changes_in_every_open_sentence(page: Page) -> None:
    for nth in (1, 4):
        page.locator("#list > li > button").nth(nth).click()
    heat = "token => getComputedStyle(token).getPropertyValue('--heat')"
    before = page.locator(".token").nth(0).evaluate(heat)
    page.locator("select.colour").nth(1).select_option("reverse_information")
    assert page.locator("select.colour").nth(0).input_value() == "reverse_information"
    assert page.locator(".token").nth(0).evaluate(heat) != before
    scales = page.locator(".scale").all_text_contents()
    assert len(set(scales)) == 1
    assert scales[0].endswith(" nats")


def test_html_in_the_data_is_shown_as_text(page: Page) -> None:
    page.select_option("#order", "position")
    source = data_of(page)["source"]
    for nth in range(5):
        page.locator("#list > li > button").nth(nth).click()
        row = page.locator("#list > li").nth(nth)
        assert row.locator(".given").text_content() == source[nth]
        assert row.locator("dl.texts dd").first.text_content() == source[nth]
    assert source[0].startswith("</script><script>")
    assert page.title().startswith("Uncertainty of ensembles: nmt_ende")
    assert page.locator("main img").count() == 1  # the only figure
    assert "<img src=x" in (page.locator("#data .card").text_content() or "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
def test_no_accessibility_violations_and_no_horizontal_scrolling(
    chromium: Browser, address: str, tmp_path: Path, device: str, scheme: Any
) -> None:
    width, height = WIDTHS[device]
    with chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme
    ) as context:
        page = context.new_page()
        page.goto(address)
        page.locator("#list > li > button").first.click()
        for summary in page.locator(".detail summary").all():
            summary.click()
        page.locator(".detail table").nth(2).wait_for()
        page.screenshot(path=tmp_path / f"{device}_{scheme}.png", full_page=True)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        violations = Axe().run(page).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in violations] == []


def test_the_keyboard_can_skip_to_the_content_and_focus_is_visible(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.focus("#set")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_everything_else_works_without_scripts(chromium: Browser, address: str) -> None:
    with chromium.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address)
        assert page.get_by_text("The list of sentences needs JavaScript").is_visible()
        assert page.get_by_text("BLEU <of> all").first.is_visible()
        assert page.get_by_text("Rejection curve.").is_visible()


def test_page_of_three_thousand_sentences_opens_and_sorts(
    chromium: Browser, write_results: WriteResults, tmp_path: Path
) -> None:
    path = tmp_path / "index.html"
    write_page(path, write_results(n_sentence=3000, test_sets=["newstest14"]))
    with chromium.new_context() as context:
        page = context.new_page()
        page.goto(path.as_uri())
        page.locator("#list > li").first.wait_for()
        page.select_option("#order", "error-down")
        assert page.locator("#list > li").count() == 50
        assert "3,000 of 3,000" in (page.text_content("#status") or "")
    assert path.stat().st_size < 1_500_000
