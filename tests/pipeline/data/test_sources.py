from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.data.text.sources import read_task_text
from pipeline.run.settings import DataConfig

PAIR = ("en", "de")


def _write(prefix: Path, sides: Mapping[str, str]) -> str:
    prefix.parent.mkdir(parents=True, exist_ok=True)
    for side, text in sides.items():
        Path(f"{prefix}.{side}").write_text(text)
    return str(prefix)


def test_files_give_the_pair_and_what_else_is_there(tmp_path: Path) -> None:
    data = DataConfig(
        source="files",
        corpus="mine",
        train=_write(tmp_path / "train", {"en": "a\n", "de": "A\n"}),
        test=_write(tmp_path / "test", {"en": "b\n", "de": "B\n", "fr": "C\n"}),
    )
    text = read_task_text(data, PAIR, {"fr"})
    assert text.train.languages == {"en", "de"}
    assert text.test_languages == {"en", "de", "fr"}
    assert (text.train.name, text.test_name) == ("mine, to train on", "mine")
    assert text.dev is None


def test_sacrebleu_gives_the_test_set_and_files_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    _write(tmp_path / "wmt14" / "wmt14.en-de", {"src": "b\n", "ref": "B\n"})
    data = DataConfig(
        source="sacrebleu",
        corpus="WMT",
        train=_write(tmp_path / "train", {"en": "a\n", "de": "A\n"}),
        test="wmt14",
    )
    text = read_task_text(data, PAIR, {"fr"})
    assert text.test is not None
    assert [one.sentences for one in text.test.paragraphs()] == [{"en": ["b"], "de": ["B"]}]
    assert text.test_languages == {"en", "de"}
