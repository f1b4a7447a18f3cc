"""Stage metrics in a language that does not separate words, and with texts that are not NFC."""

from __future__ import annotations

import json
import logging
import unicodedata
from itertools import cycle
from pathlib import Path
from typing import Literal

import pytest

from pipeline.errors import DataError, MachineError
from stages.metrics import metrics
from tests.stages.synthetic_run import FORCED, N, SyntheticRun, settings

_PART = "random_init.prex.help"
_CHINESE = "task.target_language=zh"
_KEY = ("help", "random_init", "prex", "", "bleu", "bleu")


class SameText(SyntheticRun):
    """A run whose hypotheses equal the references, except for their Unicode form."""

    def __init__(self, root: Path, text: str, form: Literal["NFC", "NFD"] = "NFC") -> None:
        self._texts = cycle([""])
        super().__init__(root)
        self.references = [f"{text} {number}" for number in range(N)]
        self._texts = cycle(unicodedata.normalize(form, text) for text in self.references)
        self.stores = [(_PART, {}, True), (FORCED, {"regime": "teacher_forcing"}, True)]

    def _text(self) -> str:
        return next(self._texts)


def test_identical_chinese_text_has_bleu_100(tmp_path: Path) -> None:
    run = SameText(tmp_path, "打开文件菜单。然后选择另存为。")
    run.write()
    cell = run.cells(_CHINESE)[_KEY]
    assert float(cell["value"]) == pytest.approx(100)
    assert "|tok:zh|" in cell["signature"]
    assert cell["signature"].count("|norm:NFC") == 1


def test_bleu_that_is_0_for_a_perfect_output_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = SameText(tmp_path, "打开文件菜单。然后选择另存为。")
    run.write()
    with caplog.at_level(logging.WARNING):
        cell = run.cells(_CHINESE, "metrics.bleu_tokenize=none")[_KEY]
    assert float(cell["value"]) == 0
    assert "help: no reference has 4 tokens under the tokeniser none" in caplog.text


def test_texts_in_another_unicode_form_are_counted_and_score_100(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = SameText(tmp_path, "Öffnen Sie das Menü für größere Übersichten", form="NFD")
    run.write()
    with caplog.at_level(logging.WARNING):
        cell = run.cells()[_KEY]
    assert float(cell["value"]) == pytest.approx(100)
    assert f"{N} of {N} hypotheses and 0 of {N} references are brought to Unicode" in caplog.text


def test_a_missing_model_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(MachineError, match="flores200 needs the file"):
        metrics(settings(tmp_path, "metrics.bleu_tokenize=flores200"))


def test_measures_with_another_tokeniser_are_refused(tmp_path: Path) -> None:
    run = SameText(tmp_path, "打开文件菜单")
    run.write()
    path = run.root / "uncertainty" / run.task / _PART / "checks.json"
    used = {"weights_from": "decoding", "eos": "include", "bleu_tokeniser": "13a"}
    path.write_text(json.dumps({"null": {}, "settings": used}))
    with pytest.raises(DataError, match=r"'bleu_tokeniser': '13a'.*settings ask for .*'zh'"):
        run.cells(_CHINESE)
