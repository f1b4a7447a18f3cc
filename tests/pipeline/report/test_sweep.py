"""The summary of a sweep as text for a terminal."""

from __future__ import annotations

from pathlib import Path

from pipeline.report.sweep import Point, summary_text, write_summary

NAMES = ["bleu", "nll", "prr", "roc_auc", *(f"roc_auc/set-{index}" for index in range(10))]


def point(number: int, temperature: int, *, failed: bool = False) -> Point:
    numbers = {
        name: 20.0 if name in NAMES[:2] else float(temperature)
        for name in sorted(NAMES, reverse=True)
    }
    overrides = {"uncertainty.temperature": str(temperature), "decode.beam": "5", "seed": "1"}
    reason = "no | data" if failed else None
    return Point(number, overrides, {} if failed else numbers, reason, f"point-{number}")


def test_numbers_that_react_come_first_and_ten_rows_fit() -> None:
    text = summary_text([point(1, 10), point(0, 1)])
    heading, line, *rows = text.splitlines()
    assert heading.split()[1::2] == ["`uncertainty.temperature`", "1", "10"]
    assert set(line) == set("|:-")
    assert [row.split()[1].strip("`") for row in rows[:10]] == NAMES[2:12]
    assert rows[0].split()[3::2] == ["1", "10"]
    assert rows[10:] == [
        "",
        "- `prr`: PRR of H S-IW (PrEx), in-domain, main ensemble",
        "- `roc_auc`: ROC-AUC of M S-IW (PrEx), mean over the other test sets",
        "",
        "In `stages.sweep`, numbers are at the B and T of the point. In `stages.metrics`,",
        "PRR is at B = 1, and ROC-AUC at the largest B and the first T of the point.",
        "",
        "All 14 numbers of each point are in summary.csv.",
    ]


def test_table_of_many_points_is_broken_into_tables_of_one_width_of_a_terminal() -> None:
    text = summary_text([point(number, number + 1) for number in range(20)])
    assert max(map(len, text.splitlines())) <= 80
    headings = [line for line in text.splitlines() if "`uncertainty.temperature`" in line]
    assert len(headings) > 1
    values = [value for heading in headings for value in heading.split()[3::2]]
    assert values == [str(number + 1) for number in range(20)]


def test_points_without_numbers_are_rows_with_their_folders() -> None:
    points = [Point(n, {"decode.beam": str(n)}, {}, None, f"p/{n}") for n in (1, 5)]
    rows = [line.split()[1::2] for line in summary_text(points).splitlines()[2:]]
    assert rows == [["1", "p/1"], ["5", "p/5"]]


def test_one_point_and_failed_points_have_a_summary() -> None:
    one = summary_text([Point(0, {}, {"bleu": 1.0})])
    assert one.split()[1::2][:2] == ["`point`", "0"]
    assert one.splitlines()[-1].split()[1::2] == ["`bleu`", "1"]
    text = summary_text([point(0, 1), point(1, 2, failed=True)])
    assert text.endswith("Failed: uncertainty.temperature=2 (no \\| data).\n")


def test_a_summary_without_a_figure_leaves_none_of_other_points(tmp_path: Path) -> None:
    write_summary(tmp_path, [point(0, 1), point(1, 2)])
    assert (tmp_path / "summary.svg").is_file()
    write_summary(tmp_path, [point(0, 1, failed=True), point(1, 2, failed=True)])
    assert not (tmp_path / "summary.svg").exists()
