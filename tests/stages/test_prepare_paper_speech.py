"""experiment=paper_asr reads the paper's corpora in their published layouts; the audio is noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import soundfile
from hydra import compose, initialize_config_dir

from pipeline.errors import DataError
from pipeline.run.artifacts import Artifact
from pipeline.run.settings import CONF, PipelineConfig, typed
from stages.prepare import prepare
from tests.pipeline.data.speech.conftest import WriteAudio, write_audio

__all__ = ["write_audio"]
_LIBRISPEECH = (
    *("train-clean-100", "train-clean-360", "train-other-500"),
    *("dev-clean", "dev-other", "test-clean", "test-other"),
)
_HEADER = '<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n'
_NITE = 'xmlns:nite="http://nite.sourceforge.net/"'
_RECORDING = "amicorpus/ES2004a/audio/ES2004a.Headset"
_MEETINGS = "ami/ami_public_manual_1.6.2"
_CLIPS = ("common_voice_fr_17299384.mp3", "common_voice_fr_17299386.mp3")


def _librispeech(folder: Path, write: WriteAudio) -> None:
    for speaker, subset in enumerate(_LIBRISPEECH, start=1000):
        chapter = folder / subset / str(speaker) / "7"
        lines = []
        for number in range(2):
            name = f"{speaker}-7-{number:04d}"
            write(chapter / f"{name}.flac", 0.5 + 0.1 * number)
            lines.append(f"{name} {subset.upper().replace('-', ' ')} QUICK BROWN FOXES JUMP\n")
        (chapter / f"{speaker}-7.trans.txt").write_text("".join(lines))


def _ami(folder: Path, recordings: Path) -> None:
    """Write NITE XML of a meeting with two speakers and of a meeting without recordings."""
    texts = {("ES2004a", "A"): "Okay", ("ES2004a", "B"): "Caf\xe9", ("ES2014a", "A"): "Gone"}
    for (meeting, speaker), text in texts.items():
        stem = f"{meeting}.{speaker}"
        words = (
            f'{_HEADER}<nite:root nite:id="{stem}.words" {_NITE}>'
            f'<w nite:id="{stem}.words0" starttime="1.0" endtime="1.2">{text}</w>'
            f'<w nite:id="{stem}.words1" starttime="1.2" endtime="1.2" punc="true">.</w>'
            f'<vocalsound nite:id="{stem}.words2" starttime="2" endtime="3" type="laugh"/>'
            "</nite:root>"
        )
        segments = f'{_HEADER}<nite:root nite:id="{stem}.segs" {_NITE}>' + "".join(
            f'<segment nite:id="{stem}.sync.{index}" channel="0" transcriber_start="{start}" '
            f'transcriber_end="{end}"><nite:child href="{stem}.words.xml#{ids}"/></segment>'
            for index, (start, end, ids) in enumerate(
                [
                    ("1.0", "1.5", f"id({stem}.words0)..id({stem}.words1)"),
                    ("2.0", "3.0", f"id({stem}.words2)"),
                ]
            )
        )
        for kind, content in (("words", words), ("segments", f"{segments}</nite:root>")):
            path = folder / kind / f"{stem}.{kind}.xml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="latin-1")
    resources = folder / "corpusResources" / "meetings.xml"
    resources.parent.mkdir()
    resources.write_text(
        f'{_HEADER}<nite:root nite:id="meetings" {_NITE}><meeting nite:id="m1" '
        'observation="ES2004a"><speaker nite:id="s1" nxt_agent="A" channel="0"/>'
        '<speaker nite:id="s2" nxt_agent="B" channel="1"/></meeting></nite:root>'
    )
    recordings.mkdir(parents=True)
    for channel in (0, 1):
        sound = np.random.default_rng(channel).standard_normal(4 * 16000) * 0.1 * (1 + channel)
        soundfile.write(recordings / f"ES2004a.Headset-{channel}.wav", sound, 16000)


def _common_voice(folder: Path) -> None:
    columns = "client_id path sentence up_votes down_votes age gender accent locale segment"
    lines = [columns.replace(" ", "\t")]
    texts = ("Où est l'hôtel ?", 'Elle dit "non" - déjà.', "Rien.")
    for clip, text in zip((*_CLIPS, "common_voice_fr_1.mp3"), texts, strict=True):
        lines.append("\t".join(["a1b2", clip, text, "2", "0", "", "", "", "fr", ""]))
    (folder / "clips").mkdir(parents=True)
    for clip in _CLIPS:
        sound = np.random.default_rng(len(clip)).standard_normal(48000) * 0.1
        soundfile.write(folder / "clips" / clip, sound, 48000)
    (folder / "test.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.fixture
def settings(
    tmp_path: Path, write_audio: WriteAudio, monkeypatch: pytest.MonkeyPatch
) -> PipelineConfig:
    """Return the experiment with a smaller vocabulary and with its folders below cwd."""
    data = tmp_path / "paper_data"
    _librispeech(data / "LibriSpeech", write_audio)
    _ami(data / _MEETINGS, data / "ami" / "amicorpus" / "ES2004a" / "audio")
    _common_voice(data / "common_voice_fr")
    (tmp_path / "no packages").mkdir()
    monkeypatch.chdir(tmp_path)
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        overrides = ["data.packages='no packages'", "data.speech.vocabulary_size=42"]
        return typed(compose("pipeline", ["experiment=paper_asr", *overrides]))


def _rows(role: str) -> list[dict[str, Any]]:
    with Path(f"outputs/prepare/asr/test/{role}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _frames(role: str) -> list[int]:
    with h5py.File(f"outputs/prepare/asr/test/{role}.h5") as file:
        assert file["/frame/feature"].shape[1] == 80
        return np.diff(file["/utterance/frame_offset"][:]).tolist()


def test_ami_and_common_voice_become_test_sets(settings: PipelineConfig) -> None:
    prepare(settings)
    assert [(row["source"], row["reference"]) for row in _rows("ami")] == [
        (f"{_RECORDING}-0.wav#t=1.00,1.50", "okay"),
        (f"{_RECORDING}-1.wav#t=1.00,1.50", "café"),
    ]
    groups = {
        role: {row["group"] for row in _rows(role)}
        for role in ("ami", "common-voice-fr", "librispeech")
    }
    assert groups == {
        "ami": {"AMI:ES2004a"},
        "common-voice-fr": {"Common Voice, fr:a1b2"},
        "librispeech": {"LibriSpeech:1005"},
    }
    assert [row["reference"] for row in _rows("common-voice-fr")] == [
        "où est l'hôtel",
        "elle dit non déjà",
    ]
    manifest = Artifact(Path("outputs/prepare/asr"), "prepare").description
    # Half a second of each speaker's headset in the meeting, and complete clips of one second.
    assert (_frames("ami"), _frames("common-voice-fr")) == ([50, 50], [100, 100])
    counts = manifest["counts"]
    assert counts["common-voice-fr"]["resampled"] == 2
    # ù, ô, é and à are not in the English vocabulary.
    assert counts["common-voice-fr"]["unknown_reference_pieces"] == 4
    assert [
        counts[subset]["utterances"]
        for subset in ("train", "dev", "librispeech", "librispeech-other")
    ] == [
        6,
        4,
        2,
        2,
    ]
    assert manifest["faults"] == {
        "ami": {
            "ES2004a.A.segments.xml, ES2004a.A.sync.1": "no word",
            "ES2004a.B.segments.xml, ES2004a.B.sync.1": "no word",
            "ami_public_manual_1.6.2/segments/ES2014a.A.segments.xml": "transcript without audio",
        },
        "common-voice-fr": {"clips/common_voice_fr_1.mp3": "transcript without audio"},
    }
    corpora = {subset["subset"]: subset["dataset"] for subset in manifest["subsets"]}
    assert (corpora["ami"], corpora["common-voice-fr"]) == (
        "AMI",
        "Common Voice, fr",
    )


def test_sizes_that_differ_from_the_paper_are_listed_and_prompts_may_be_absent(
    settings: PipelineConfig,
) -> None:
    prepare(settings)
    manifest = Artifact(Path("outputs/prepare/asr"), "prepare").description
    deviations = " ".join(manifest["not_as_in_the_paper"])
    assert "ami has 2 sentences where the paper's AMI, evaluation part has 12,643" in deviations
    assert (
        "common-voice-fr has 2 sentences where the paper's Common Voice FR, test part has 14,760"
        in deviations
    )
    reason = "the package of telephone prompts in en cannot be had on this machine"
    assert manifest["absent_sets"] == {"english-prompts": reason}


def test_missing_corpus_is_named_before_anything_is_written(
    settings: PipelineConfig,
) -> None:
    Path("paper_data/common_voice_fr/test.tsv").unlink()
    with pytest.raises(DataError, match=r"data\.speech\.common_voice \(got no .*test\.tsv\)"):
        prepare(settings)
    assert not Path("outputs/prepare").exists()
