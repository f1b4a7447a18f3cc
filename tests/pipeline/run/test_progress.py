from __future__ import annotations

import re

import pytest

from pipeline.run.logs import DETAILS
from pipeline.run.progress import Progress, progress


def test_without_a_terminal_the_end_is_logged_as_a_detail_of_short_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    assert list(progress("abc", 3, "letters")) == ["a", "b", "c"]
    assert re.findall(r"letters: (.*), \d+ s elapsed, 0 s left", caplog.text) == ["3 of 3"]
    assert [record.name for record in caplog.records] == [DETAILS.name]


def test_single_item_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert list(progress("a", 1, "letters")) == ["a"]
    assert caplog.text == ""


def test_remaining_time_is_logged_at_intervals(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    clock = iter([0.0, 5.0, 30.0])
    monkeypatch.setattr("pipeline.run.progress.time.monotonic", lambda: next(clock))
    with Progress(9, "sentences") as shown:
        shown.advance(2)
        shown.advance(4)
    assert "sentences: 6 of 9, 30 s elapsed, 15 s left" in caplog.text
    assert caplog.text.count("sentences") == 1
    assert DETAILS.name not in {record.name for record in caplog.records}


def test_terminal_has_a_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress(4, "sentences") as shown:
        shown.advance(0)
        shown.advance(4)
    assert "sentences" in capsys.readouterr().err
