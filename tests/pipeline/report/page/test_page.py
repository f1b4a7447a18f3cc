from __future__ import annotations

import base64
import gzip
import json
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


def test_the_page_is_complete_and_loads_nothing(
    write_results: WriteResults, tmp_path: Path
) -> None:
    page = written(write_results(n_sentence=5), tmp_path)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy[1]
    assert not re.findall(r'(?:src|href|action)="(?!#|data:)', page)
    assert not re.findall(r"url\(|@import|fetch\(|innerHTML|insertAdjacent|document\.write", page)
    for text in (
        "BLEU &lt;of&gt; all",
        '<th dir="auto" scope="col" id="column-tab-bleu-task-set" rowspan="2">',
        '<th dir="auto" scope="colgroup" colspan="2">Scores</th>',
        '<span class="value">17.2</span><span class="unseen"> (best)</span>',
        '<span class="unseen">paper </span>28.8',
        "Ensembles &lt;beat&gt; singles.",
        'id="claim-c"',
        'dir="auto">newstest14, single: BLEU</th><td>17.2 <span class="spread">± 0.6</span>',
        "Not drawn: there is one member.",
        'PRM</span> <strong class="tag">SYNTHETIC</strong> '
        '<span class="detail-of-row" dir="auto">Help pages, permuted</span>',
        "Decodes: 1",
        "LTO is absent: no folder &lt;was&gt; named.",
        "at most the first 3,000 sentences of a test set",
    ):
        assert text in page, text


def test_html_in_the_data_is_escaped(write_results: WriteResults, tmp_path: Path) -> None:
    page = written(write_results(n_sentence=5), tmp_path)
    assert (
        page.count("<script") == page.count("</script>") == 4
    )  # index, two test sets, the program
    assert "<img src=x" not in page
    packed = re.findall('application/gzip" id="data-[01]">([A-Za-z0-9+/=]+)</script>', page)
    assert len(packed) == 2
    assert "{{ 7 * 7 }}" in gzip.decompress(base64.b64decode(packed[0])).decode()


def test_the_same_results_give_the_same_bytes(write_results: WriteResults, tmp_path: Path) -> None:
    content = write_results(n_sentence=5)
    assert written(content, tmp_path / "a") == written(content, tmp_path / "b")


def test_a_run_without_decodes_claims_or_figures_has_a_page(
    write_results: WriteResults, tmp_path: Path
) -> None:
    content = write_results(n_sentence=5)
    page = written(replace(content, tasks=[], claims=[], figures=[]), tmp_path)
    for text in ("tested no claims", "has no figures", "has no decodes", "BLEU"):
        assert text in page


def test_figures_are_read_from_their_list(tmp_path: Path) -> None:
    listed = [
        {"title": "A", "caption": "B.", "files": ["a.csv", "a.svg"], "reason": ""},
        {"title": "C", "caption": "D.", "files": ["c.csv"], "reason": "no data"},
    ]
    (tmp_path / "asr_figures.json").write_text(json.dumps(listed), encoding="utf-8")
    assert page_figures(tmp_path, "asr", "ASR") == [
        PageFigure("ASR: A", "B.", tmp_path / "a.svg"),
        PageFigure("ASR: C", "D.", None, "no data"),
    ]


def test_the_papers_numbers_can_be_left_out(write_results: WriteResults, tmp_path: Path) -> None:
    page = written(replace(write_results(n_sentence=5), beside_paper=False), tmp_path)
    assert "28.8" not in page


def test_html_in_the_name_of_a_test_set_is_escaped(
    write_results: WriteResults, tmp_path: Path
) -> None:
    name = "<img src=x onerror=alert(1)>"
    page = written(write_results(n_sentence=5, test_sets=("newstest14", name)), tmp_path)
    assert "<img src=x" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert page.count("<script") == page.count("</script>") == 4
