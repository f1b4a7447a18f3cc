import csv
from dataclasses import replace

import pytest

from pipeline.metrics.cell import KEY_COLUMNS
from pipeline.report.best import mark_best
from pipeline.report.cells import CellIndex
from pipeline.report.formats import (
    escape_latex,
    latex,
    markdown,
    write_csv,
    write_results,
    write_tables,
)
from pipeline.report.paper_numbers import paper_cells
from pipeline.report.paper_tables import paper_table

LABEL = "tab:sequence-error-detection"


@pytest.fixture
def table(frame_of, like_paper):
    cells = like_paper(LABEL, "nmt_ende")
    cells[3] = replace(cells[3], value=None, low=None, high=None, reason="50 % & no_reference")
    return mark_best(paper_table(LABEL, CellIndex(frame_of(*cells))), {})


def test_markdown_shows_interval_paper_and_reason(table):
    lines = markdown(table, beside_paper=True).splitlines()
    row = next(line for line in lines if line.startswith("| EN-DE"))
    assert row.count("|") == lines[2].count("|") == lines[3].count("|")
    assert [part[-1] for part in lines[3].strip("|").split("|")] == ["-", "-"] + [":"] * 12
    values = [value.strip() for value in row.strip("|").split("|")]
    assert values[:3] == ["EN-DE", "newstest14 (nwt14)", "29.1 [28.1, 30.1] (paper 28.1)"]
    assert values[3] == "**46.8** [45.8, 47.8] (paper 45.8)"
    assert values[5] == "n/a (a) (paper 45.5)"
    assert "- (a) 50 % & no\\_reference" in lines
    assert "- Signature: sig:nwt14" in lines
    data = next(line for line in lines if line.startswith("- newstest14 "))
    assert data.startswith("- newstest14 (EN-DE): corpus of nwt14. Cells use ")


def test_markdown_without_the_papers_numbers(table):
    text = markdown(table, beside_paper=False)
    assert "(paper " not in text
    assert "Each cell: ours [95 % interval]. In results.csv" in text


def test_a_table_has_the_number_of_the_paper_and_its_label_only_as_a_key(table):
    lines = markdown(table, beside_paper=True).splitlines()
    assert lines[0] == "### Table 2. Sentence error detection: PRR in %"
    assert f"In results.csv: `{LABEL}`." in "\n".join(lines)
    caption = next(line for line in latex(table, True).splitlines() if "\\caption" in line)
    assert "{Sentence error detection: PRR in \\%. As in Table 2 of the paper. Each" in caption
    own = replace(table, number=None)
    assert markdown(own, beside_paper=True).startswith("### Sentence error detection")
    assert "of the paper" not in latex(own, False)


def test_text_latex_and_csv_have_the_same_cells_in_bold(table, tmp_path):
    (best,) = (cell for cell in table.cells if cell.best)
    value = best.format(best.cell.value)
    assert f"**{value}**" in markdown(table, True)
    assert markdown(table, True).count("**") == 2
    assert latex(table, True).count("\\textbf") == 1
    assert f"\\textbf{{{value}}}" in latex(table, True)
    write_csv(tmp_path / "table.csv", table, beside_paper=True)
    lines = (tmp_path / "table.csv").read_text(encoding="utf-8").splitlines()
    assert [line.endswith(",true") for line in lines[1:]] == [cell.best for cell in table.cells]


def test_latex_shows_interval_paper_and_mathematical_headings(frame_of, like_paper):
    index = CellIndex(frame_of(*like_paper("tab:ood-detection", "nmt_ende")))
    text = latex(paper_table("tab:ood-detection", index), True)
    assert "\\begin{table*}[!t]" in text
    assert (
        "\\shortstack{\\rule{0pt}{2.4ex}83.2\\\\{\\tiny 82.2 to 84.2}\\\\{\\tiny (82.2)}}" in text
    )
    assert "\\hat{\\mathcal{H}}^{(B)}_{\\mathrm{C-IW}}" in text


def test_latex_shows_reasons_and_bold(table):
    text = latex(table, beside_paper=False)
    assert "--$^{a}$" in text
    assert "$^{a}$ 50 \\% \\& no\\_reference." in text
    assert "\\textbf{46.8}" in text
    assert "(the paper's number)" not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        ("{x}$#~^", r"\{x\}\$\#\textasciitilde{}\textasciicircum{}"),
        ("\\n|<>", r"\textbackslash{}n\textbar{}\allowbreak{}\textless{}\textgreater{}"),
        ("Öl ± 1", r"Öl $\pm$ 1"),
    ],
)
def test_latex_escapes_special_characters(text, expected):
    assert escape_latex(text) == expected


def test_results_can_be_joined_with_the_papers_file(table, tmp_path):
    path = tmp_path / "results.csv"
    write_results(path, [table])
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "table",
        *KEY_COLUMNS,
        *("value", "spread", "low", "high", "n", "groups", "runs", "members"),
        *("reason", "data", "signature", "test_set_name"),
    ]
    of_paper = {cell.key: cell.value for cell in paper_cells(LABEL)}
    joined = [
        (row["value"], of_paper[tuple(row[name] for name in KEY_COLUMNS)])  # type: ignore[index]
        for row in rows
    ]
    assert len(joined) == 12
    assert [paper + 1 for ours, paper in joined if ours] == pytest.approx(
        [float(ours) for ours, _ in joined if ours]
    )
    assert [row["reason"] for row in rows if not row["value"]] == ["50 % & no_reference"]


def test_csv_of_a_table_has_the_papers_numbers_on_demand(table, tmp_path):
    path = tmp_path / "table.csv"
    write_csv(path, table, beside_paper=True)
    header, first = path.read_text(encoding="utf-8").split("\n")[:2]
    assert header.endswith("signature,test_set_name,paper_value,paper_spread,best")
    assert first.endswith("sig:nwt14,newstest14,28.1,,false")
    write_csv(path, table, beside_paper=False)
    assert "paper" not in path.read_text(encoding="utf-8").split("\n")[0]


def test_results_have_one_row_for_a_repeated_cell(table, tmp_path):
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    write_results(once, [table])
    write_results(twice, [replace(table, rows=(*table.rows, *table.rows))])
    assert twice.read_bytes() == once.read_bytes()


def test_every_table_is_written_in_all_formats(table, tmp_path):
    write_tables(tmp_path, [table], beside_paper=True)
    name = "tab_sequence-error-detection"
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.csv",
        "all_tables.tex",
        *(f"{name}.{suffix}" for suffix in ("csv", "md", "tex")),
    }
