from __future__ import annotations

import base64
import gzip
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pipeline.report.page import PageContent, PageFigure, page_figures, write_page

WriteResults = Callable[..., PageContent]


def written(content: PageContent, tmp_path: Path) -> str:
    path = tmp_path / "report" / "index.html"
    write_page(path, content)
    return path.read_text(encoding="utf-8")


def test_it_holds_everything_and_loads_nothing(write_results: WriteResults, tmp_path: Path) -> None:
    page = written(write_results(n_sentence=5), tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy[1]
    assert not re.findall(r'(?:src|href|action)="(?!#|data:)', page)
    assert not re.findall(r"url\(|@import|fetch\(|innerHTML|insertAdjacent|document\.write", page)
    for text in (
        "BLEU &lt;of&gt; all",
        '<th scope="col" rowspan="2">Task</th>',
        '<th scope="colgroup" colspan="2">Scores</th>',
        '<span class="value">17.2</span><span class="unseen"> (best)</span>',
        '<span class="unseen">paper </span>28.8',
        "Ensembles &lt;beat&gt; singles.",
        "Not drawn: there is one member.",
        "Help pages, permuted (SYNTHETIC) <strong",
        "Decodes: 1",
        "LTO is absent: no folder &lt;was&gt; named.",
        "the first 3,000 sentences of a set at most",
    ):
        assert text in page, text


def test_hostile_text_of_the_data_becomes_no_tag(
    write_results: WriteResults, tmp_path: Path
) -> None:
    page = written(write_results(n_sentence=5), tmp_path)
    assert page.count("<script") == page.count("</script>") == 4  # index, two sets, the program
    assert "<img src=x" not in page
    packed = re.findall('application/gzip" id="data-[01]">([A-Za-z0-9+/=]+)</script>', page)
    assert len(packed) == 2
    assert "{{ 7 * 7 }}" in gzip.decompress(base64.b64decode(packed[0])).decode()


def test_the_same_results_give_the_same_bytes(write_results: WriteResults, tmp_path: Path) -> None:
    content = write_results(n_sentence=5)
    assert written(content, tmp_path / "a") == written(content, tmp_path / "b")


def test_a_run_without_decodes_claims_or_figures_has_a_page_too(
    write_results: WriteResults, tmp_path: Path
) -> None:
    content = write_results(n_sentence=5)
    page = written(replace(content, tasks=[], claims=[], figures=[]), tmp_path)
    for text in ("No claim was tested", "No figure was made", "No decode of this run", "BLEU"):
        assert text in page


def test_figures_are_taken_from_their_list(tmp_path: Path) -> None:
    listed = [
        {"task": "asr", "title": "A", "caption": "B.", "files": ["a.csv", "a.svg"], "reason": ""},
        {"task": "mine", "title": "C", "caption": "D.", "files": ["c.csv"], "reason": "no data"},
    ]
    assert page_figures(tmp_path, listed) == [
        PageFigure("ASR: A", "B.", tmp_path / "a.svg"),
        PageFigure("mine: C", "D.", None, "no data"),
    ]


def test_without_the_paper_beside_it(write_results: WriteResults, tmp_path: Path) -> None:
    page = written(replace(write_results(n_sentence=5), beside_paper=False), tmp_path)
    assert "28.8" not in page


def test_hostile_name_of_a_set_is_shown_as_text(
    write_results: WriteResults, tmp_path: Path
) -> None:
    name = "<img src=x onerror=alert(1)>"
    page = written(write_results(n_sentence=5, test_sets=("newstest14", name)), tmp_path)
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert page.count("<script") == page.count("</script>") == 4
