"""Links to sentences, speech, the scatter plot and hostile texts in headless Chromium."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from pipeline.report.page import PageContent, write_page
from pipeline.report.table import Heading
from tests.pipeline.report.page.conftest import RIGHT_TO_LEFT

WriteResults = Callable[..., PageContent]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# The seconds of a sound once the browser has decoded its beginning.
DURATION = """(name) => new Promise((done, fail) => {
  const sound = name === "playing" ? playing : document.querySelector("dd.file audio");
  if (sound.readyState) done(sound.duration);
  if (sound.error) fail(sound.error.message);
  sound.addEventListener("loadedmetadata", () => done(sound.duration));
  sound.addEventListener("error", () => fail(sound.error.message));
})"""
# Elements of claims and sentences that reach out of the window or hide a part of themselves.
CUT = """() => [...document.querySelectorAll("#claims *, #sentences *")]
  .filter((element) => element.getClientRects().length)
  .filter((element) => !element.closest(".unseen, .label, select, input"))
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 1
    || (element.scrollWidth > element.clientWidth + 1
      && getComputedStyle(element).overflowX !== "visible"))
  .map((element) => element.outerHTML.slice(0, 80))"""
# Texts in the marked language whose direction nothing sets.
WITHOUT_DIRECTION = """(marker) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const { parentElement: parent, data } = texts.currentNode;
    if (parent.tagName !== "SCRIPT" && data.includes(marker) && !parent.closest("[dir=auto]"))
      found.push(parent.outerHTML.slice(0, 120));
  }
  return found;
}"""


@pytest.fixture(scope="module")
def content(write_results: WriteResults) -> PageContent:
    return write_results(n_sentence=120, is_speech=True)


@pytest.fixture(scope="module")
def address(content: PageContent, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "index.html"
    write_page(path, content)
    return path.as_uri()


@pytest.fixture(params=[DESK, PHONE], ids=["desk", "phone"])
def page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with chromium.new_context(viewport=request.param) as context:
        shown = context.new_page()
        events: list[str] = []
        shown.on("console", lambda message: events.append(message.text))
        shown.on("pageerror", lambda error: events.append(str(error)))
        yield shown
        assert events == []


def opened(page: Page, address: str, fragment: str = "") -> Page:
    page.goto(address + fragment)
    page.locator("#list > li").first.wait_for()
    return page


def data_of(page: Page) -> dict[str, Any]:
    packed = page.locator("#data-0").text_content() or ""
    return dict(json.loads(gzip.decompress(base64.b64decode(packed))))


def test_an_address_opens_its_sentence(page: Page, address: str) -> None:
    opened(page, address, "#sentence/nmt_ende/PRM/77")
    page.locator("#sentence-77").wait_for()
    assert page.locator("#set option:checked").text_content() == "nmt_ende: PRM"
    row = page.locator("#list > li", has=page.locator("#sentence-77"))
    assert 0 <= row.evaluate("row => row.getBoundingClientRect().top") < 300
    # The link of another sentence leads to it, and a filter that hides a sentence is cleared.
    place = page.locator(".position").first
    link = place.get_attribute("href") or ""
    place.click()
    page.locator(f"#sentence-{link.rpartition('/')[2]}").wait_for()
    page.fill("#search", "no such text")
    page.evaluate("location.hash = '#sentence/nmt_ende/newstest14/7'")
    page.locator("#sentence-7").wait_for()
    assert page.input_value("#search") == ""
    page.go_back()
    page.locator(f"#sentence-{link.rpartition('/')[2]}").wait_for()
    assert page.locator("#set option:checked").text_content() == "nmt_ende: PRM"


@pytest.mark.parametrize(
    ("fragment", "message"),
    [
        ("#sentence/nmt_ende/PRM/9999", "This page has no sentence 9999 of PRM."),
        ("#sentence/asr/x%20%3Cb%3E/1", "This page has no test set x <b>."),
        ("#sentence/%FF/x/1", ""),
        ("#claims", ""),
    ],
)
def test_an_address_of_another_page_is_named(
    page: Page, address: str, fragment: str, message: str
) -> None:
    opened(page, address, fragment)
    if message:
        page.get_by_text(message).wait_for()
    assert (page.text_content("#unknown") or "") == message
    assert page.locator("#list > li").count() == 50


def test_speech_is_shown_by_transcript_and_can_be_played(page: Page, address: str) -> None:
    opened(page, address)
    data = data_of(page)
    assert len(data["sound"]) == 20
    assert page.locator(".play").count() == 20  # the page begins with sentences that have sound
    assert "holds the sound of 20 of the most uncertain" in (page.text_content("#decode") or "")
    row = page.locator("#list > li", has=page.locator(".play")).first
    position = int(row.locator(".position").text_content() or "")
    assert row.locator(".given").text_content() == data["reference"][position]
    row.locator(".play").click()
    assert page.evaluate(DURATION, "playing") == pytest.approx(0.5, abs=0.2)
    assert page.evaluate("!playing.paused || playing.ended")
    row.locator("> button").click()
    names = row.locator("dl.texts dt").all_text_contents()
    assert names == ["Transcript", "Recording"]
    assert row.locator("dd.file").text_content() == data["source"][position]
    assert page.evaluate(DURATION, "audio") == pytest.approx(0.5, abs=0.2)
    # The others say where their file is.
    silent = page.locator("#list > li", has_not=page.locator(".play")).first
    silent.locator("> button").click()
    assert silent.locator("audio").count() == 0
    assert silent.locator("dd.file").text_content()


def test_the_scatter_plot_shows_outliers(page: Page, address: str) -> None:
    opened(page, address)
    page.evaluate(
        """() => {
          state.data.measures.prex_entropy_c = state.data.source.map((_, at) => at % 2 ? 1 : 2);
          state.data.measures.prex_entropy_c[3] = 400;
          state.data.error_percent = state.data.source.map((_, at) => at === 5 ? null : at % 7);
          byId("measure").value = "prex_entropy_c";
          applyFilters();
        }"""
    )
    caption = page.locator("#cloud figcaption").text_content() or ""
    label = "PrEx total H, C-IW"
    assert f"1 sentence with {label} above 2, up to 400." in caption
    assert "without a finite value of both: 1 sentence." in caption
    path = page.locator("#cloud .match").get_attribute("d") or ""
    assert path.count("M") == 119
    assert path.count("h8") == 1
    drawn = page.evaluate(
        """() => {
          const picture = document.querySelector("#cloud svg").getBoundingClientRect();
          const marks = document.querySelector("#cloud .match").getBoundingClientRect();
          return marks.right <= picture.right + 3 && marks.left >= picture.left;
        }"""
    )
    assert drawn


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("state.set = { ...state.set, teacher_forced: true }", "teacher forcing"),
        ("state.data.reference.fill(null)", "has no references"),
        ("", "no sentence of this test set has an error"),
    ],
)
def test_a_set_without_scatter_plot_says_why(
    page: Page, address: str, change: str, reason: str
) -> None:
    opened(page, address)
    page.evaluate(f"state.data.error_percent.fill(null); {change}; applyFilters()")
    caption = page.locator("#cloud").text_content() or ""
    assert caption.startswith("No scatter plot: ")
    assert reason in caption


def test_a_claim_opens_to_the_numbers_behind_it(page: Page, address: str) -> None:
    opened(page, address, "#claim-c")
    page.locator("#claim-c summary").click()
    assert page.locator("#claim-c .numbers tbody tr").all_text_contents() == [
        "newstest14, single: BLEU17.2 ± 0.6 [15.3, 19.1] n\u00a0=\u00a060",
        "newstest14, random-init PrEx: BLEU20.7 [18.4, 23.0]",
    ]


def test_nothing_is_cut_and_texts_have_their_direction(
    page: Page, address: str, tmp_path: Path
) -> None:
    opened(page, address)
    page.select_option("#order", "position")
    for nth in range(6):
        page.locator("#list > li > button").nth(nth).click()
    page.get_by_text("All measures of this sentence").first.click()
    page.locator("#claims summary").first.click()
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert page.evaluate(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert page.evaluate(WITHOUT_DIRECTION, RIGHT_TO_LEFT) == []


def test_texts_of_users_have_their_direction_in_every_section(
    page: Page, write_results: WriteResults, tmp_path: Path
) -> None:
    name = f"{RIGHT_TO_LEFT} 12"
    content = write_results(n_sentence=4, test_sets=("newstest14", name))
    card = tmp_path / "card.md"
    card.write_text(f"# {name}\n\n{name}\n\n- {name}\n\n| a |\n| --- |\n| {name} |\n", "utf-8")
    table = content.tables[0]
    named_table = replace(
        table,
        title=name,
        header=((Heading(name), *table.header[0][1:]), *table.header[1:]),
        rows=(replace(table.rows[0], labels=(name, name)),),
        notes=(name,),
    )
    own = replace(
        content,
        tables=[named_table],
        claims=[
            replace(verdict, label=name, compared=name, reason=name) for verdict in content.claims
        ],
        figures=[replace(figure, title=name, caption=name) for figure in content.figures],
        tasks=[replace(content.tasks[0], data_card=card)],
        cells=content.cells.assign(data=name, task_label=name, reason=name, roles=name),
    )
    write_page(tmp_path / "index.html", own)
    opened(page, (tmp_path / "index.html").as_uri())
    for details in page.locator("details").all():
        details.evaluate("details => { details.open = true }")
    assert page.evaluate(WITHOUT_DIRECTION, RIGHT_TO_LEFT) == []
