"""All stages on Whisper and Speech2Text models, from folders of audio and models to tables."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile
import torch
import transformers
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf, open_dict

from pipeline.data.speech.audio import read_audio
from pipeline.errors import ConfigError, DataError
from pipeline.run.artifacts import Artifact, PartFolder
from pipeline.run.settings import CONF, PipelineConfig, typed
from pipeline.store import Flag, open_store
from stages.decode import decode
from stages.metrics import metrics
from stages.prepare import prepare
from stages.tables import tables
from stages.uncertainty import uncertainty
from tests.composed_settings import composed_settings
from tests.pipeline.huggingface.folders import save_marian
from tests.pipeline.huggingface.speech_folders import (
    RATE,
    WINDOW_SECONDS,
    save_speech2text,
    save_whisper,
    utterances,
    write_audio_folder,
)
from tests.speech_toy import prepare_toy, write_toy_manifest
from tests.stages.trained_members import prepare as prepare_text

BEAM = 4
TEST_SETS = {
    "talks": {"in_domain": True, "baseline": True},
    "calls": {"in_domain": False, "baseline": False},
}


def _write_librispeech(folder: Path) -> None:
    """Write FLAC files at 8 kHz, which stage prepare resamples."""
    chapter = folder / "84" / "121123"
    chapter.mkdir(parents=True)
    lines = []
    for number, (words, samples) in enumerate(utterances(10, seed=7)):
        name = f"84-121123-{number:04d}"
        soundfile.write(chapter / f"{name}.flac", samples[::2], RATE // 2)
        lines.append(f"{name} {' '.join(words).upper()}\n")
    (chapter / "84-121123.trans.txt").write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with models and audio; the calls have a long, a damaged and a silent file."""
    folder = tmp_path_factory.mktemp("speech: a=b 日本")
    for seed in (1, 2):
        save_whisper(folder / f"whisper_{seed}", seed)
    save_speech2text(folder / "speech2text_1", 1)
    _write_librispeech(folder / "talks")
    calls = write_audio_folder(folder / "calls", 6, seed=8)
    noise = 0.1 * np.random.default_rng(0).standard_normal(round(1.5 * WINDOW_SECONDS * RATE))
    soundfile.write(calls / "long.wav", noise, RATE)
    (calls / "mute.wav").write_bytes(b"")
    write_audio_folder(folder / "dev", 4, seed=9)
    return folder


@pytest.fixture(scope="module")
def settings(folder: Path) -> Callable[..., PipelineConfig]:
    """Return a function that composes settings, with the models of a name as members."""

    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        base = compose("pipeline", [
            "task=asr", "experiment=smoke", "tracking=off", "data/units=own",
            "ensemble=huggingface", "ensemble.seeds=[]", "data.speech.sampling_rate_hz=16000",
            "data.speech.corpus=tones", f"data.speech.dev=['{folder / 'dev'}']",
            "decode.ending=early", "decode.min_length=0", f"decode.beam={BEAM}",
            "decode.max_length_ratio=0", "decode.max_length_offset=12",
            "decode.self_check=true", "uncertainty.beam=[1,4]", "metrics.resamples=0",
            "~report.figures",
        ])  # fmt: skip

    def make(
        part: str | None = None, models: str = "whisper_*", root: str = "out",
        transcripts: str = "as_decoded",
    ) -> PipelineConfig:  # fmt: skip
        composed = copy.deepcopy(base)
        with open_dict(composed):
            composed.metrics.transcripts = transcripts
            composed.part = part
            composed.io.root = str(folder / root)
            composed.ensemble.settings.models = [str(path) for path in sorted(folder.glob(models))]
            if "whisper" in models:
                composed.ensemble.settings.source_language = "en"
            composed.task.test_sets = OmegaConf.create({
                name: fields | {"kind": "files", "corpus": name, "path": str(folder / name)}
                for name, fields in TEST_SETS.items()
            })  # fmt: skip
        return typed(composed)

    prepare(make())
    return make


@pytest.fixture
def run_parts_here(
    settings: Callable[..., PipelineConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decode the parts one after the other in this process instead of in a multirun."""

    def run_here(_: PipelineConfig, parts: PartFolder, *__: int) -> list[str]:
        missing = parts.missing()
        for part in missing:
            decode(settings(part))
        parts.write_manifest()
        return missing

    monkeypatch.setattr("stages.decode.run_parts", run_here)


def test_prepare_keeps_waveforms_and_trains_nothing(
    settings: Callable[..., PipelineConfig], folder: Path
) -> None:
    prepared = Artifact(folder / "out" / "prepare" / "asr", "prepare")
    assert {*prepared.names()} == {
        "data_card.md", "dev.jsonl", "dev.h5", "fairseq/README",
        *(f"test/{name}.{kind}" for name in TEST_SETS for kind in ("jsonl", "h5", "sounds.h5")),
    }  # fmt: skip
    counts = prepared.description["counts"]
    assert [counts[name]["utterances"] for name in ("dev", "talks", "calls")] == [4, 10, 7]
    assert counts["talks"]["resampled"] == 10
    assert counts["calls"]["empty"] == 1
    with h5py.File(prepared.file("test/talks.h5")) as file:
        offset = file["/utterance/sample_offset"][:]
        first = file["/sample/value"][: offset[1]]
    path = folder / "talks" / "84" / "121123" / "84-121123-0000.flac"
    np.testing.assert_array_equal(first, read_audio(path, RATE).samples)
    rows = prepared.file("test/calls.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(rows[0])
    assert row["reference"] == " ".join(utterances(6, seed=8)[0][0])
    assert row["reference_pieces"] == row["reference"].split()
    assert row["n_frame"] == round(100 * len(utterances(6, seed=8)[0][1]) / RATE)


@pytest.mark.parametrize("kind", ["whisper", "speech2text"])
def test_the_store_has_the_hypotheses_of_generate(
    settings: Callable[..., PipelineConfig], folder: Path, kind: str
) -> None:
    config = settings("huggingface.prex.talks", models=f"{kind}_1")
    decode(config)
    model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(folder / f"{kind}_1").eval()
    processor = transformers.AutoProcessor.from_pretrained(folder / f"{kind}_1")
    generate = partial(transformers.GenerationMixin.generate, model)
    with open_store(folder / "out/decode/asr/huggingface.prex.talks/store.h5") as store:
        texts = store.read("/hypothesis/text")
        tokens = np.split(store.read("/token/id"), store.read("/hypothesis/token_offset")[1:-1])
        compared = 0
        for index, source in enumerate(store.sources()):
            samples = read_audio(folder / "talks" / source, RATE).samples
            features = processor.feature_extractor(
                samples, sampling_rate=RATE, return_tensors="pt"
            )["input_features"]
            start = [model.generation_config.decoder_start_token_id]
            if kind == "whisper":
                words = ("en", "transcribe", "notimestamps")
                start += processor.tokenizer.convert_tokens_to_ids([f"<|{w}|>" for w in words])
            output = generate(
                encoder_outputs=model.get_encoder()(features), num_beams=BEAM,
                decoder_input_ids=torch.tensor([start]), num_return_sequences=BEAM,
                max_new_tokens=13, early_stopping=True,
            )  # fmt: skip
            theirs = [row[len(start) :] for row in output.tolist()]
            eos = model.generation_config.eos_token_id
            if not all(eos in row for row in theirs):
                continue  # at the length limit our rule differs
            first = store.hypothesis_offset[index]
            for rank, row in enumerate(theirs):
                row = row[: row.index(eos) + 1]
                assert tokens[first + rank].tolist() == row
                text = processor.tokenizer.decode(row, skip_special_tokens=True)
                assert texts[first + rank] == text.strip()
            compared += 1
    assert compared > 5


def test_two_whisper_models_go_from_audio_to_tables(
    settings: Callable[..., PipelineConfig], folder: Path, run_parts_here: None
) -> None:
    for stage in (decode, uncertainty, metrics, tables):
        stage(settings(transcripts="words"))
    out = folder / "out"
    parts = Artifact(out / "decode" / "asr", "decode").parts()
    assert {
        "huggingface.prex.talks", "huggingface.expr.calls", "huggingface_1.beam.talks",
        "huggingface.teacher_forcing.talks",
    } < {*parts}  # fmt: skip
    with open_store(out / "decode/asr/huggingface.prex.calls/store.h5") as store:
        flags = dict(zip(store.sources(), store.flag, strict=True))
        assert flags["long.wav"] & Flag.TOO_LONG
        assert flags["mute.wav"] & Flag.EMPTY_SOURCE
        assert store.members == ["huggingface_1", "huggingface_2"]
    diversity = json.loads((out / "decode/asr/diversity.json").read_text(encoding="utf-8"))
    assert diversity["ensembles"]["huggingface"]["sentences"] == 4
    with (out / "metrics/asr/cells.csv").open(encoding="utf-8", newline="") as file:
        cells = list(csv.DictReader(file))
    wer = {
        cell["ensemble"]: float(cell["value"])
        for cell in cells
        if cell["metric"] == "wer_percent" and cell["test_set"] == "talks" and cell["value"]
    }
    assert wer
    assert all(0 < percent < 200 for percent in wer.values())
    table = (out / "tables" / "beyond_performance.md").read_text(encoding="utf-8")
    assert "WER" in table
    page = (out / "report" / "index.html").read_text(encoding="utf-8")
    for text in (table, page):
        assert "compare lower-case words of letters, digits and apostrophes" in text
    assert "WER %, lower-case words" in page
    said = {
        "wer_percent": "case:lc|transcripts:words", "cer_percent": "case:lc|transcripts:words",
        "prr": "error:sentence-wer_percent|case:lc|transcripts:words",
        "aupr": "case:lc|transcripts:words", "roc_auc": "xwer-transcripts:words",
    }  # fmt: skip
    for metric, part in said.items():
        valued = [cell for cell in cells if cell["metric"] == metric and cell["value"]]
        assert valued
        assert all(part in cell["signature"] for cell in valued)
    checks = out / "uncertainty/asr/huggingface.prex.talks/checks.json"
    assert json.loads(checks.read_text(encoding="utf-8"))["settings"]["transcripts"] == "words"


def test_models_and_prepared_data_of_another_kind_are_refused(
    settings: Callable[..., PipelineConfig], folder: Path
) -> None:
    for seed in (1, 2):
        save_marian(folder / f"marian_{seed}", seed)
    with pytest.raises(ConfigError, match=r"marian_\d\) is a model of text, and the test sets are"):
        decode(settings(models="marian_*"))
    prepare_toy(folder / "features" / "prepare" / "asr", dict.fromkeys(TEST_SETS, 0.3), train=1)
    write_toy_manifest(folder / "features" / "prepare" / "asr", {})
    with pytest.raises(DataError, match=r"talks\.h5: has features, .* with data/units=own"):
        decode(settings(root="features"))
    prepare_text(folder / "text" / "prepare" / "nmt_ende")
    names = ",".join(f"'{folder / f'whisper_{seed}'}'" for seed in (1, 2))
    text = composed_settings(
        f"io.root='{folder / 'text'}'", "ensemble=huggingface", "ensemble.seeds=[]",
        f"ensemble.settings.models=[{names}]",
        "tracking=off", "ensemble.also={}",
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"whisper_1\) is a model of speech, .* are text"):
        decode(text)
