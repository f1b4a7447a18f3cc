"""The head, the glossary and the tables of the page in headless Chromium, at several widths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page

from pipeline.metrics.cell import Cell
from pipeline.report.page import Origin, PageContent, write_page
from pipeline.report.table import Heading, Row, Table, TableCell

WriteResults = Callable[..., PageContent]
WIDTHS = {"screen": 1280, "phone": 390, "wide screen": 1920}
N_COLUMN = 24
TRAIN = {"dataset": "LibreOffice help", "subset": "train", "sentences": "19154"}
COPIES = TRAIN | {"subset": "train, copies of the target side (SYNTHETIC)", "sentences": "575"}
CARD = "# Card\n\n" + "".join(f"## Part {number}\n\nText.\n\n" for number in range(40))
# Whether a cell of the wide table is in sight, which starts right of the column of labels.
IN_SIGHT = """cell => {
  const box = cell.getBoundingClientRect();
  const scroll = cell.closest(".scroll").getBoundingClientRect();
  const label = cell.closest("table").querySelector("tbody th").getBoundingClientRect();
  return box.left >= label.right - 1 && box.right <= scroll.right + 1;
}"""


# Whether a click in the middle of a link meets the link.
ON_TOP = """link => {
  const box = link.getBoundingClientRect();
  return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2) === link;
}"""


def wide_table() -> Table:
    """A table that is wider than any screen here, with settings below the labels of its rows."""
    columns = [f"Measure {number}" for number in range(N_COLUMN)]
    key = ("nmt_ende", "newstest14", "random_init", "prex", "beam")
    cells = [Cell(*key, column=name, value=10.0, low=9.0, high=11.0) for name in columns]
    header = (tuple(map(Heading, ("Task", "Test set", "T", "B", *columns))),)
    rows = [
        Row(("EN-DE", "help (nwt14)", "10", beam), tuple(map(TableCell, cells))) for beam in "15"
    ]
    return Table("tab:ood-detection", "Detection: ROC-AUC in %", header, tuple(rows), number=4)


def grouped_table() -> Table:
    """A table with a group of several columns and one of a single column, whose cell it lacks."""
    cell = TableCell(Cell("nmt_ende", "newstest14", "random_init", "prex", "beam", value=10.0))
    header = (
        (Heading("Test set"), Heading("PrEx, total"), Heading("Beyond the paper")),
        (Heading(""), Heading("H"), Heading("Copied share")),
    )
    return Table("beyond:group", "Groups", header, (Row(("help",), (cell, None)),))


def empty_table() -> Table:
    cell = TableCell(Cell("nmt_ende", "MED", "single", "-", "beam", reason="MED was not decoded"))
    header = ((Heading("Model"), Heading("BLEU")),)
    return Table("tab:empty", "Nothing", header, (Row(("Single",), (cell,)),), number=8)


@pytest.fixture(scope="module")
def address(write_results: WriteResults, tmp_path_factory: pytest.TempPathFactory) -> str:
    content = write_results(n_sentence=5)
    card = tmp_path_factory.mktemp("card") / "card.md"
    card.write_text(CARD, encoding="utf-8")
    content = replace(
        content,
        tables=[*content.tables, wide_table(), grouped_table(), empty_table()],
        tasks=[replace(task, data_card=card) for task in content.tasks],
        origin=Origin(
            "demo", "program 1.2, commit abc", {"nmt_ende": {"subsets": [TRAIN, COPIES]}}
        ),
    )
    path = tmp_path_factory.mktemp("report") / "index.html"
    write_page(path, content)
    return path.as_uri()


@contextmanager
def opened(chromium: Browser, address: str, width: int = 1280) -> Iterator[Page]:
    with chromium.new_context(viewport={"width": width, "height": 900}) as context:
        page = context.new_page()
        page.goto(address)
        page.locator("#list > li").first.wait_for()
        yield page


def test_the_head_says_what_made_the_page_and_how_it_compares(
    chromium: Browser, address: str
) -> None:
    with opened(chromium, address) as page:
        head = page.locator("header").inner_text()
        assert "EXPERIMENT DEMO" in head.upper()
        assert "Uncertainty of ensembles: nmt_ende" in head
        assert "reproduced" not in page.inner_text("main").lower() + head.lower()
        assert "trained on 235 times as many sentences" in head
        run = page.locator("#run").inner_text()
        for text in (
            "LibreOffice help: 19,154 sentences",
            "WMT'17: 4,500,000 sentences",
            "copies of the target side (SYNTHETIC): 575 sentences",
            "Members learn to copy a source in their target language well only if",
            "3: seed 1, seed 2, seed 3",
            "program 1.2, commit abc",
            "Python 3.",
        ):
            assert text in run, text


def test_the_glossary_comes_before_the_first_number(chromium: Browser, address: str) -> None:
    with opened(chromium, address) as page:
        sections = [section.get_attribute("id") for section in page.locator("main > section").all()]
        assert sections[:3] == ["run", "terms", "summary"]
        terms = " ".join(page.locator("#terms dt").all_inner_texts())
        for term in ("single", "B, T", "AUPR", "NLL", "X-BLEU", "PRR", "ROC-AUC", "(LTC)", "V[P]"):
            assert term in terms
        assert "in squared percent" in page.inner_text("#terms")


def test_tables_have_numbers_and_an_empty_one_is_a_sentence(
    chromium: Browser, address: str
) -> None:
    with opened(chromium, address) as page:
        titles = page.locator("#tables h3").all_inner_texts()
        assert titles == ["BLEU <of> all #", "Table 4. Detection: ROC-AUC in % #", "Groups #"]
        assert page.locator("#tables .contents a").all_inner_texts() == [
            "BLEU <of> all",
            "Table 4. Detection: ROC-AUC in %",
            "Groups",
        ]
        assert "tab:" not in page.inner_text("#tables")
        reason = page.locator("#tables > .reason")
        assert "since they have no numbers: Table 8. Nothing." in reason.inner_text()
        assert reason.locator("li").all_inner_texts() == ["MED was not decoded (cells: 1)"]


@pytest.mark.parametrize("device", WIDTHS)
def test_the_labels_of_a_wide_table_stay_in_sight_and_a_cue_says_that_it_scrolls(
    chromium: Browser, address: str, device: str
) -> None:
    with opened(chromium, address, WIDTHS[device]) as page:
        box = page.locator("#table-tab-ood-detection .scroll.wide")
        cue = "box => getComputedStyle(box, '::before').content"
        assert box.evaluate(cue) == '"more columns: scroll →"'
        narrow = page.locator("#table-tab-bleu .scroll")
        assert narrow.evaluate(cue) == "none"
        label = box.locator("tbody th").first
        left = label.evaluate("cell => cell.getBoundingClientRect().left")
        box.evaluate("box => box.scrollTo(box.scrollWidth, 0)")
        assert label.evaluate("cell => cell.getBoundingClientRect().left") == left
        assert box.locator("tbody tr").first.locator("td").last.evaluate(IN_SIGHT)
        assert label.inner_text().split("\n") == ["EN-DE: help (nwt14)", "T = 10, B = 1"]
        assert page.evaluate("document.documentElement.scrollWidth") == WIDTHS[device]


@pytest.mark.parametrize("device", WIDTHS)
def test_the_width_of_the_screen_is_used_and_nothing_is_cut(
    chromium: Browser, address: str, device: str
) -> None:
    with opened(chromium, address, WIDTHS[device]) as page:
        width = page.locator("#table-tab-ood-detection .scroll").evaluate("box => box.clientWidth")
        assert width >= WIDTHS[device] - 80
        # Whatever is wider than its box can be scrolled to.
        cut = page.evaluate(
            """[...document.querySelectorAll("body *")].filter(one => {
              const right = one.getBoundingClientRect().right;
              return right > innerWidth + 1 && !one.closest(".scroll, svg");
            }).map(one => one.outerHTML.slice(0, 80))"""
        )
        assert cut == []


def test_a_table_that_is_hardly_too_wide_has_a_cue_and_a_shadow(
    chromium: Browser, address: str
) -> None:
    with opened(chromium, address) as page:
        box = page.locator("#table-tab-bleu .scroll")
        overflow = "box => box.scrollWidth - box.clientWidth"
        box.evaluate("box => { box.style.width = '0'; }")
        box.evaluate("box => { box.style.width = `${box.scrollWidth - 1}px`; }")
        assert box.evaluate(overflow) == 1
        page.locator("#table-tab-bleu .scroll.wide").wait_for()
        # The cover that hides the shadow at the end is no wider than the shadow.
        sizes = box.evaluate("box => getComputedStyle(box).backgroundSize").split(", ")
        assert len({size.split()[0] for size in sizes}) == 1


def test_a_group_of_one_column_does_not_make_the_header_higher(
    chromium: Browser, address: str
) -> None:
    with opened(chromium, address) as page:
        group = page.get_by_text("Beyond the paper", exact=True)
        other = page.get_by_text("PrEx, total", exact=True)
        heights = [cell.evaluate("cell => cell.offsetHeight") for cell in (group, other)]
        assert heights[0] == heights[1] < 40


def test_a_number_that_a_table_does_not_have_is_a_dash(chromium: Browser, address: str) -> None:
    with opened(chromium, address) as page:
        texts = page.locator("#table-beyond-group tbody td").all_inner_texts()
        assert [text.split() for text in texts] == [["10.0"], ["\u2013"]]
        assert "A dash marks a number that a table does not have." in page.inner_text("#tables")


def test_figures_are_listed_and_readable_on_a_phone(chromium: Browser, address: str) -> None:
    for width in WIDTHS.values():
        with opened(chromium, address, width) as page:
            links = page.locator("#figures .contents a")
            assert links.all_inner_texts() == ["Rejection curve", "Ablation"]
            links.first.click()
            assert page.url.endswith("#figure-rejection-curve")
            figure = page.locator("figure:target img")
            own = figure.evaluate("image => image.naturalWidth")
            assert own > WIDTHS["phone"]
            shown = figure.bounding_box()
            assert shown is not None
            assert shown["width"] >= own  # with padding and border
            cue = page.locator("figure:target .scroll.wide").count()
            assert cue == (1 if width == WIDTHS["phone"] else 0)
            assert page.evaluate("document.documentElement.scrollWidth") == width


def test_rows_and_columns_can_be_linked_to(chromium: Browser, address: str) -> None:
    with opened(chromium, address) as page:
        column = page.get_by_role("link", name=f"Measure {N_COLUMN - 1}", exact=True)
        column.click()
        assert page.url.endswith(f"#column-tab-ood-detection-measure-{N_COLUMN - 1}")
        page.locator("#row-tab-ood-detection-en-de-help-nwt14-10-5 .self").click()
        assert page.url.endswith("#row-tab-ood-detection-en-de-help-nwt14-10-5")
        marked = page.locator("tr:target > *").evaluate_all(
            "cells => cells.map(cell => getComputedStyle(cell).backgroundColor)"
        )
        assert len(set(marked)) == 1
    last = f"column-tab-ood-detection-measure-{N_COLUMN - 1}"
    with opened(chromium, f"{address}#{last}") as page:
        assert page.locator(f"#{last}").evaluate(IN_SIGHT)
        heading = page.locator(f"#{last}").bounding_box()
        assert heading is not None
        assert 0 < heading["y"] < 900
        marked = page.locator(f"#{last}").evaluate("cell => getComputedStyle(cell).backgroundColor")
        other = page.locator("#column-tab-ood-detection-measure-0")
        assert marked != other.evaluate("cell => getComputedStyle(cell).backgroundColor")


def test_labels_that_stay_in_sight_do_not_cover_the_navigation(
    chromium: Browser, address: str
) -> None:
    with opened(chromium, address) as page:
        page.set_viewport_size({"width": 1280, "height": 300})
        page.locator("#table-tab-ood-detection thead").evaluate(
            "head => scrollTo(0, head.getBoundingClientRect().top + scrollY)"
        )
        assert page.locator("body > nav a").first.evaluate(ON_TOP)


def test_all_anchors_are_unique_and_lead_somewhere(chromium: Browser, address: str) -> None:
    with opened(chromium, address) as page:
        names = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
        assert len(names) == len(set(names))
        targets = page.evaluate(
            "[...document.querySelectorAll('a[href^=\"#\"]:not(#sentences a)')]"
            ".map(one => decodeURIComponent(one.hash.slice(1)))"
        )
        assert [target for target in targets if target not in names] == []


def test_a_long_data_card_is_folded(chromium: Browser, address: str) -> None:
    with opened(chromium, address) as page:
        assert page.get_by_text("Part 39").is_hidden()
        page.get_by_text("Data card of nmt_ende").click()
        assert page.get_by_text("Part 39").is_visible()
