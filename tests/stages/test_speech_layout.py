"""Run all stages on ten utterances in LibriSpeech's layout, from audio files to tables."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf, open_dict

from pipeline.run.artifacts import Artifact, PartFolder
from pipeline.run.settings import CONF, PipelineConfig, typed
from stages.decode import decode
from stages.metrics import metrics
from stages.prepare import prepare
from stages.tables import tables
from stages.train import train
from stages.uncertainty import uncertainty
from tests.pipeline.data.speech.conftest import WriteAudio, write_audio
from tests.speech_toy import BINS, MODEL_SETTINGS
from tests.stages.trained_members import ONE_FIGURE

__all__ = ["write_audio"]
_WORDS = ("RED", "GREEN", "BLUE", "DOOR", "LAMP")
# Folder -> seconds of its shortest utterance.
_SETS = {"train": 0.3, "dev": 0.3, "test": 0.3, "test_other": 0.6}
_TOKENS = "beyond_token-error-detection"


def _librispeech(folder: Path, write: WriteAudio, seconds: float) -> None:
    chapter = folder / "84" / "121123"
    lines = []
    for number in range(10):
        name = f"84-121123-{number:04d}"
        write(chapter / f"{name}.flac", seconds + 0.05 * number)
        lines.append(f"{name} IT'S {_WORDS[number % 5]} {_WORDS[number % 3]}\n")
    (chapter / "84-121123.trans.txt").write_text("".join(lines))


def _overrides(folder: Path) -> list[str]:
    return [
        *("task=asr", "experiment=smoke", "tracking=off", "metrics.resamples=20"),
        *(
            f"~task.test_sets.{role}"
            for role in ("fish-fillets", "french-prompts", "english-prompts")
        ),
        "data.speech.corpus=LibriSpeech",
        *(f"data.speech.{name}=['{folder / name}']" for name in ("train", "dev")),
        *(f"data.speech.{name}='{folder / name}'" for name in ("test", "test_other")),
        *("data.speech.unit_kind=bpe", "data.speech.vocabulary_size=46"),
        f"data.speech.feature_bins={BINS}",
        *("train.updates=8", "train.warmup_updates=2", "train.batch_tokens=2000"),
        *("train.validate_interval_updates=8", "train.checkpoint_interval_updates=4"),
        *("decode.beam=3", "uncertainty.beam=[1,3]"),
        *("decode.max_length_ratio=0", "decode.max_length_offset=12"),
        *ONE_FIGURE,
    ]


@pytest.fixture
def settings(write_audio: WriteAudio, tmp_path: Path) -> Callable[..., PipelineConfig]:
    folder = tmp_path / "Libri Speech: 日本"
    for name, seconds in _SETS.items():
        _librispeech(folder / name, write_audio, seconds)

    def make(*overrides: str) -> PipelineConfig:
        with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
            composed = compose("pipeline", [*_overrides(folder), *overrides])
        with open_dict(composed):
            composed.io.root = str(tmp_path / "out")
            composed.model.settings = OmegaConf.create(
                MODEL_SETTINGS | {"max_source_positions": 200}
            )
        return typed(composed)

    return make


def _cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_stage_runs_on_a_librispeech_folder(
    settings: Callable[..., PipelineConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for stage in (train, decode):
        # Run the parts one after the other in this process instead of in a multirun.
        def run_here(
            _: PipelineConfig, folder: PartFolder, *__: int, stage: Callable[..., None] = stage
        ) -> list[str]:
            missing = folder.missing()
            for part in missing:
                stage(settings(f"part={part}"))
            folder.write_manifest()
            return missing

        monkeypatch.setattr(f"stages.{stage.__name__}.run_parts", run_here)
    for stage in (prepare, train, decode, uncertainty, metrics, tables):
        stage(settings())

    out = tmp_path / "out"
    parts = Artifact(out / "decode" / "asr", "decode").parts()
    assert {
        "random_init.prex.librispeech",
        "random_init.teacher_forcing.librispeech-other",
        "seed_2.beam.librispeech",
    } < {*parts}
    cells = _cells(out / "metrics" / "asr" / "cells.csv")
    shown = _cells(out / "tables" / "results.csv")
    for cell in (*cells, *shown):
        assert bool(cell["value"]) or bool(cell["reason"]), cell
        assert cell["value"].lower() not in ("nan", "inf", "-inf"), cell
    for metric in ("wer_percent", "cer_percent", "nll"):
        of_metric = [cell for cell in cells if cell["metric"] == metric]
        assert {cell["test_set"] for cell in of_metric} == {"librispeech", "librispeech-other"}
        assert all(cell["value"] for cell in of_metric)
        assert {cell["n"] for cell in of_metric} == {"10"}
    tokens = [cell for cell in shown if cell["table"] == "beyond:token-error-detection"]
    assert {(cell["test_set"], cell["test_set_name"]) for cell in tokens} == {
        ("LTC", "librispeech"),
        ("LTO", "librispeech-other"),
    }
    assert "Words missing before a token" in (out / "tables" / f"{_TOKENS}.md").read_text()
    assert "CER %" in (out / "tables" / "tab_nmt-bleu-asr-wer.md").read_text()
    assert (out / "report" / "index.html").stat().st_size > 10**5
