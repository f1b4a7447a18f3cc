from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.data.text.game_dialogue import parse_dialogue, read_game_dialogue
from pipeline.errors import DataError
from pipeline.run.settings import DataConfig


def _data(packages: Path, downloads: Path) -> DataConfig:
    return DataConfig(downloads=str(downloads), packages=str(packages), pin=False)


def test_lines_are_read_with_their_escapes() -> None:
    script = r"""
      dialogId("a", "font_big", "Say \"now\", \\ then
        go.")
      dialogStr("Sag, (jetzt)")
      dialogId("b", "font_big", "no translation")
      dialogId("a", "font_big", "again")
      dialogStr("noch einmal")
    """
    assert parse_dialogue(script) == {"a": ('Say "now", \\ then go.', "Sag, (jetzt)")}


def test_languages_are_joined_on_level_and_line(help_packages: Path, tmp_path: Path) -> None:
    corpus = read_game_dialogue(_data(help_packages, tmp_path), ["de", "en", "fr"])
    paragraphs = list(corpus.paragraphs())
    assert len(paragraphs) == 24
    assert {paragraph.page for paragraph in paragraphs} == {"cave"}
    assert paragraphs[0].sentences == {
        "de": ["Warum schwimmt Anna denn eight?"],
        "en": ["So why is Anna swimming eight?"],
        "fr": ["Pourquoi Anna nage-t-il eight ?"],
    }


def test_language_without_a_translation_is_refused(help_packages: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must hold dialogue in en, it, got no such line"):
        read_game_dialogue(_data(help_packages, tmp_path), ["en", "it"])
