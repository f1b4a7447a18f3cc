"""What is missing of the paper's corpora, and what has another size than the paper says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from pipeline.config import CONF, PipelineConfig, typed
from pipeline.data.paper_check import check_present, size_differences
from pipeline.errors import DataError


def _settings(*overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return typed(compose("pipeline", ["experiment=paper", *overrides]))


def test_every_missing_corpus_is_named_with_its_publisher(tmp_path: Path) -> None:
    settings = _settings("task=asr", f"data.speech.ami={tmp_path}")
    assert settings.data.check_paper_sizes
    with pytest.raises(DataError) as error:
        check_present(settings.data, settings.task)
    text = str(error.value)
    for words in ("train-clean-100", "281,200", "openslr.org/12", "14,760", "Mozilla", "2,939"):
        assert words in text
    assert "AMI" not in text
    assert "\n" not in text


def test_a_side_of_the_training_text_is_enough_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "train.en.gz").touch()
    settings = _settings(
        f"data.train={tmp_path}/train", f"data.librispeech={tmp_path}", f"data.khresmoi={tmp_path}"
    )
    check_present(settings.data, settings.task)
    (tmp_path / "train.en.gz").unlink()
    with pytest.raises(DataError, match=r"data\.train .*WMT'17 EN-DE, 4,500,000 .*statmt\.org"):
        check_present(settings.data, settings.task)


def test_sizes_are_held_against_the_papers_tables() -> None:
    sets = {"newstest14": {"rows": 3003}, "MED": {"rows": 1000}, "TYPO": {"rows": 5}}
    (text,) = counts = size_differences(
        "nmt_ende", {"test_sets": sets, "split": {"train": 4_400_000}}
    )
    assert len(counts) == 1
    assert "MED has 1,000 sentences" in text
    assert "1,500" in text
    speech = {"train": {"utterances_read": 28_539}, "LTC": {"utterances_read": 2620}}
    (text,) = size_differences("asr", speech)
    assert "train has 28,539" in text
