"""The LaTeX document of all tables; it is compiled only if LaTeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from pipeline.metrics.cell import Cell
from pipeline.report.beyond import copy_through
from pipeline.report.cells import CellIndex
from pipeline.report.dataset_tables import dataset_tables
from pipeline.report.formats import latex
from pipeline.report.general import ood_detection
from pipeline.report.paper_tables import LAYOUTS, paper_table
from pipeline.report.table import Heading, Row, Table, TableCell

pytestmark = pytest.mark.process

ENGINE = shutil.which("pdflatex") or shutil.which("tectonic")
SUBSET = {
    "dataset": "corpus_a & b",
    "subset": "train",
    "language": "de",
    "sentences": "9",
    "words_a_sentence": "7.5",
    "domain": "100 % {help}",
}
HOSTILE = r"50 % & a_b #1 $x^2$ {~} \n <|> ±"


@pytest.fixture(scope="module", params=[(), ("nmt_ende",), ("nmt_ende", "nmt_enfr", "asr")])
def document(request, frame_of, like_paper):
    """Write all tables of a run of some tasks, and a table of LaTeX's special characters."""
    cells = {cell.key: cell for label in LAYOUTS for cell in like_paper(label, *request.param)}
    frame = frame_of(*cells.values())
    tables = [paper_table(label, CellIndex(frame)) for label in LAYOUTS]
    tables += [ood_detection(frame), copy_through(frame)]
    tables += dataset_tables({"nmt_ende": {"subsets": [SUBSET]}}, CellIndex(frame))
    absent = TableCell(Cell("t", HOSTILE, "-", "-", "-", reason=HOSTILE, signature=HOSTILE))
    headings = ((Heading(HOSTILE), Heading(HOSTILE, 2)),)
    tables.append(Table("tab:hostile", HOSTILE, headings, (Row((HOSTILE,), (absent, None)),)))
    return latex(tables, beside_paper=True)


def test_environments_and_braces_are_balanced(document):
    opened = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+)\}", document):
        if command == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    depth = 0
    for brace in re.findall(r"[{}]", re.sub(r"\\[\\{}]", "", document)):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    assert document.startswith("\\documentclass")
    assert document.rstrip().endswith("\\end{document}")
    n_table = document.count("\\begin{table}")
    assert n_table == len(LAYOUTS) + 4
    for command in ("label{", "caption{", "toprule", "midrule\n", "bottomrule"):
        assert document.count(f"\\{command}") >= n_table, command


def test_every_row_has_all_columns(document):
    tabulars = re.findall(
        r"\\begin\{tabular\}\{([lc]+)\}(.*?)\\end\{tabular\}", document, flags=re.DOTALL
    )
    assert len(tabulars) == document.count("\\begin{table}")
    for columns, body in tabulars:
        rows = [line for line in body.splitlines() if line.endswith(" \\\\")]
        assert rows
        for row in rows:
            spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            separators = len(re.findall(r"(?<!\\)&", row))
            assert separators + 1 + sum(spans) - len(spans) == len(columns), row


def test_special_characters_are_escaped(document):
    body = document[document.index("\\begin{document}") :]
    # A percent sign at the end of a line is LaTeX syntax that joins two lines.
    names = re.sub(r"\\(?:label|begin|end)\{[^}]*\}|%$", "", body, flags=re.MULTILINE)
    outside_mathematics = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", names)
    for character in "#%_^~<>|±":
        assert not re.search(rf"(?<!\\){re.escape(character)}", outside_mathematics), character


@pytest.mark.skipif(ENGINE is None, reason="no pdflatex or tectonic on PATH: install texlive")
def test_the_document_compiles(document, tmp_path):
    (tmp_path / "all.tex").write_text(document, encoding="utf-8")
    batch = ["-interaction=nonstopmode", "-halt-on-error"] if "pdflatex" in str(ENGINE) else []
    subprocess.run([str(ENGINE), *batch, "all.tex"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "all.pdf").stat().st_size > 0
