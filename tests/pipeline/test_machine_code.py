from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.compiled import cache_folder


def test_machine_code_is_not_kept_over_an_edit_of_any_source(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    called = tmp_path / "inner" / "called.py"
    called.write_text("ONE = 1\n")
    before = cache_folder(tmp_path)
    assert before == cache_folder(tmp_path)
    assert before.is_relative_to(tmp_path)
    called.write_text("ONE = 2\n")
    assert cache_folder(tmp_path) != before


def test_a_package_that_cannot_be_written_has_its_code_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder(tmp_path / "package").is_relative_to(tmp_path / "cache")
