"""BLEU in every language: the choice of tokeniser, equality with sacrebleu, and refusals."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers import tokenizer_ja_mecab, tokenizer_ko_mecab, tokenizer_spm

from pipeline.errors import MachineError
from pipeline.metrics import corpus_bleu, sentence_bleu
from pipeline.quality.registry import bleu_quality
from pipeline.quality.speech import corpus_cer_percent, corpus_wer_percent
from pipeline.quality.tokenisers import bleu_tokeniser, check_tokeniser
from pipeline.quality.translation import bleu_signature, corpus_chrf
from pipeline.run.schema import BLEU_TOKENISERS
from pipeline.run.settings import ROOT

_LINES = (ROOT / "tests/golden/bleu_tokenisers.tsv").read_text(encoding="utf-8").splitlines()
GOLDEN = [line.split("\t") for line in _LINES if not line.startswith("#")]
_MODULES = {"ja-mecab": tokenizer_ja_mecab, "ko-mecab": tokenizer_ko_mecab}
WORDS = ["打开", "文件", "。", "a", "b,", "3.5", "größer", unicodedata.normalize("NFC", "é")]
SENTENCE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=6)
GERMAN = "Öffnen Sie das Menü für größere Übersichten"
GERMAN_NFD = unicodedata.normalize("NFD", GERMAN)


@pytest.mark.parametrize(
    ("codes", "tokeniser"),
    [
        ("zh zh_CN zh-TW zho zho_Hans cmn cmn_Hant ZH chi yue", "zh"),
        ("ja jpn ja_JP jpn_Jpan", "ja-mecab"),
        ("ko kor ko-KR kor_Hang", "ko-mecab"),
        ("de fr en en_GB pt_BR jav kok zhx", "13a"),
    ],
)
def test_tokeniser_follows_the_target_language(codes: str, tokeniser: str) -> None:
    assert {bleu_tokeniser("auto", code) for code in codes.split()} == {tokeniser}
    assert {bleu_tokeniser("flores200", code) for code in codes.split()} == {"flores200"}


def test_settings_offer_the_tokenisers_of_sacrebleu() -> None:
    assert {*BLEU_TOKENISERS} == {*BLEU.TOKENIZERS} - {"spm"}


@pytest.mark.parametrize(("tokeniser", "percent", "hypotheses", "references"), GOLDEN)
def test_bleu_is_that_of_the_program_or_names_the_missing_package(
    tokeniser: str, percent: str, hypotheses: str, references: str
) -> None:
    texts = hypotheses.split(" / "), references.split(" / ")
    if tokeniser in _MODULES and _MODULES[tokeniser].MeCab is None:
        with pytest.raises(MachineError, match=r"Run pip install 'sacrebleu\[(ja|ko)\]', or"):
            check_tokeniser(tokeniser)
        return
    check_tokeniser(tokeniser)
    assert corpus_bleu(*texts, tokeniser) == pytest.approx(float(percent), abs=1e-4)


def test_a_perfect_chinese_output_has_bleu_100() -> None:
    text = ["打开文件菜单。然后选择另存为。"]
    assert corpus_bleu(text, text, bleu_tokeniser("auto", "zho_Hans")) == pytest.approx(100)
    assert corpus_bleu(text, text, "13a") == 0


@pytest.mark.parametrize("tokeniser", ["13a", "zh", "char", "intl", "none"])
@given(pairs=PAIRS)
def test_counts_give_bleu_of_sacrebleu_under_every_tokeniser(
    tokeniser: str, pairs: list[tuple[str, str]]
) -> None:
    hypotheses, references = (list(side) for side in zip(*pairs, strict=True))
    is_empty = [not hypothesis and not reference for hypothesis, reference in pairs]
    scorer = BLEU(effective_order=True, tokenize=tokeniser)
    each = [
        100 if empty else scorer.sentence_score(hypothesis, [reference]).score
        for empty, (hypothesis, reference) in zip(is_empty, pairs, strict=True)
    ]
    np.testing.assert_allclose(sentence_bleu(hypotheses, references, tokeniser), each)
    if not all(is_empty):
        corpus = BLEU(tokenize=tokeniser).corpus_score(hypotheses, [references]).score
        assert corpus_bleu(hypotheses, references, tokeniser) == pytest.approx(corpus)


@pytest.mark.parametrize("metric", [corpus_bleu, corpus_chrf])
def test_one_text_in_two_unicode_forms_is_perfect(metric: Any) -> None:
    assert BLEU().corpus_score([GERMAN_NFD], [[GERMAN]]).score < 100
    assert metric([GERMAN_NFD], [GERMAN]) == pytest.approx(100)
    assert metric([GERMAN], [GERMAN_NFD]) == pytest.approx(100)
    assert sentence_bleu([GERMAN_NFD], [GERMAN]) == pytest.approx(100)


@pytest.mark.parametrize("metric", [corpus_wer_percent, corpus_cer_percent])
def test_speech_is_compared_in_one_unicode_form(metric: Any) -> None:
    assert metric([GERMAN_NFD], [GERMAN]) == 0


def test_signatures_name_tokeniser_and_unicode_form() -> None:
    assert "|tok:zh|" in bleu_signature("zh")
    assert bleu_signature("zh").endswith("|norm:NFC")
    assert bleu_quality("zh").sentence_signature == "sentence-bleu|tok:zh|norm:NFC"


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_a_missing_package_is_named(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokeniser = bleu_tokeniser("auto", language)
    monkeypatch.setattr(_MODULES[tokeniser], "MeCab", None)
    with pytest.raises(MachineError, match=rf"pip install 'sacrebleu\[{language}\]', or") as error:
        check_tokeniser(tokeniser)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("tokeniser", ["flores200", "flores101", "spBLEU-1K"])
def test_a_missing_model_is_named_and_not_downloaded(
    tokeniser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "download_file", None)
    with pytest.raises(MachineError, match=rf"{tokeniser} needs the file {tmp_path}/models/\S+ "):
        check_tokeniser(tokeniser)
    assert not list(tmp_path.iterdir())


def test_a_damaged_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "flores200sacrebleuspm").write_bytes(b"no model")
    with pytest.raises(MachineError, match="flores200 does not work on this machine"):
        check_tokeniser("flores200")
