"""The LaTeX files of all tables, as they are written; compiled if LaTeX is installed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pandas as pd
import pytest

from pipeline.metrics.cell import Cell
from pipeline.report.beyond import copy_through
from pipeline.report.cells import CellIndex
from pipeline.report.dataset_tables import dataset_tables
from pipeline.report.formats import write_tables
from pipeline.report.general import ood_detection
from pipeline.report.paper_tables import LAYOUTS, paper_table
from pipeline.report.table import Heading, Row, Table, TableCell

pytestmark = pytest.mark.slow

ENGINE = shutil.which("pdflatex")
SUBSET = {
    "dataset": "corpus_a & b",
    "subset": "train",
    "language": "de",
    "sentences": "9",
    "words_a_sentence": "7.5",
    "domain": "100 % {help}",
}
HOSTILE = r"50 % & a_b #1 $x^2$ {~} \n <|> ±"
# A paper in two columns: the packages are those that each table names.
PAPER = r"""\documentclass[twocolumn]{article}
\usepackage{amsfonts,booktabs,graphicx}
\begin{document}
Text.
%s
\end{document}
"""


@pytest.fixture(scope="module", params=[(), ("nmt_ende",), ("nmt_ende", "nmt_enfr", "asr")])
def folder(request, frame_of, like_paper, tmp_path_factory):
    """Write all tables of a run of some tasks, and a table of LaTeX's special characters."""
    cells = {cell.key: cell for label in LAYOUTS for cell in like_paper(label, *request.param)}
    frame = frame_of(*cells.values())
    tables = [paper_table(label, CellIndex(frame)) for label in LAYOUTS]
    tables += [ood_detection(frame), copy_through(frame)]
    tables += dataset_tables({"nmt_ende": {"subsets": [SUBSET]}}, CellIndex(frame))
    absent = TableCell(Cell("t", HOSTILE, "-", "-", "-", reason=HOSTILE, signature=HOSTILE))
    headings = ((Heading(HOSTILE), Heading(HOSTILE, 2)),)
    tables.append(Table("tab:hostile", HOSTILE, headings, (Row((HOSTILE,), (absent, None)),)))
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder, tables, beside_paper=True)
    return folder


@pytest.fixture(scope="module")
def floats(folder):
    """Return the text of every file that is a table: name -> text."""
    paths = sorted(path for path in folder.glob("*.tex") if path.stem != "all_tables")
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


def test_every_table_is_a_float_to_input(floats):
    assert len(floats) == len(LAYOUTS) + 4
    for name, text in floats.items():
        without_comments = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
        assert re.match(r"\\begin\{table\*?\}", without_comments), name
        assert re.search(r"\\end\{table\*?\}\n$", without_comments), name
        for command in ("\\documentclass", "\\usepackage", "\\newcommand", "\\newsavebox"):
            assert command not in without_comments, (name, command)
        for command in ("label{", "caption{", "toprule", "midrule\n", "bottomrule"):
            assert f"\\{command}" in text, (name, command)


def test_environments_and_braces_are_balanced(floats):
    for name, text in floats.items():
        body = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
        opened = []
        for command, environment in re.findall(r"\\(begin|end)\{([\w*]+)\}", body):
            if command == "begin":
                opened.append(environment)
            else:
                assert opened.pop() == environment, name
        assert opened == [], name
        depth = 0
        for brace in re.findall(r"[{}]", re.sub(r"\\[\\{}]", "", body)):
            depth += 1 if brace == "{" else -1
            assert depth >= 0, name
        assert depth == 0, name


def test_the_document_has_every_table_with_a_value(folder, floats):
    with_value = [
        name for name in floats if pd.read_csv(folder / f"{name}.csv")["value"].notna().any()
    ]
    document = (folder / "all_tables.tex").read_text(encoding="utf-8")
    assert document.startswith("\\documentclass")
    assert document.rstrip().endswith("\\end{document}")
    assert sorted(re.findall(r"\\input\{([^}]*)\}", document)) == sorted(with_value)


def test_every_row_has_all_columns(floats):
    for name, text in floats.items():
        ((columns, body),) = re.findall(
            r"\\begin\{tabular\}\{([lc]+)\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL
        )
        rows = [line for line in body.splitlines() if line.endswith(" \\\\")]
        assert rows, name
        for row in rows:
            spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            separators = len(re.findall(r"(?<!\\)&", row))
            assert separators + 1 + sum(spans) - len(spans) == len(columns), row


def test_special_characters_are_escaped(floats):
    for text in floats.values():
        # Comments, and the two lines that fit a table to the text, are LaTeX syntax.
        syntax = r"\\(?:label|begin|end)\{[^}]*\}|^%.*|^\\resizebox.*|%$"
        names = re.sub(syntax, "", text, flags=re.MULTILINE)
        outside_mathematics = re.sub(r"(?<!\\)\$.*?(?<!\\)\$", "", names)
        for character in "#%_^~<>|±":
            assert not re.search(rf"(?<!\\){re.escape(character)}", outside_mathematics), character


@pytest.mark.skipif(ENGINE is None, reason="no pdflatex on PATH: install texlive-latex-recommended")
@pytest.mark.parametrize("document", ["all_tables", "paper"])
def test_the_tables_compile(document, folder, floats):
    if document == "paper":
        inputs = "\n".join(rf"\input{{{name}}}\clearpage" for name in floats)
        (folder / "paper.tex").write_text(PAPER % inputs, encoding="utf-8")
    command = [str(ENGINE), "-interaction=nonstopmode", "-halt-on-error", document]
    log = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert log.returncode == 0, log.stdout[-2000:]
    assert "Float too large" not in log.stdout
    assert "Overfull \\hbox" not in log.stdout
    assert (folder / f"{document}.pdf").stat().st_size > 0
