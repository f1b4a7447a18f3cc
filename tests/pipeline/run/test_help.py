"""Help of stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.run.help import print_help


def uncertainty() -> None:
    """Compute measures."""


def test_help_lists_options_of_the_users_own_folder_with_its_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "uncertainty").mkdir()
    option = "defaults: [default]\nname: mine\nbeam: [3]\n"
    (tmp_path / "uncertainty" / "mine.yaml").write_text(option)
    arguments = ["--help", f"--config-dir={tmp_path}", "uncertainty=mine"]
    print_help(uncertainty, arguments, ())
    text = capsys.readouterr().out
    assert "uncertainty: default, mine" in text
    assert "uncertainty.beam=[3]" in text
