from __future__ import annotations

import json
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
import soundfile
import yaml
from hydra import compose, initialize_config_dir

from pipeline.errors import ConfigError, DataError
from pipeline.run.artifacts import Artifact
from pipeline.run.files import file_sha256
from pipeline.run.settings import CONF, ROOT, PipelineConfig, typed
from stages.prepare import prepare
from tests.pipeline.data.speech.conftest import WriteAudio, fake_espeak, write_audio

__all__ = ["fake_espeak", "write_audio"]
_WORDS = ("red", "green", "blue", "door", "lamp", "it's")


def _settings(root: Path, *overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        settings = compose(
            "pipeline",
            [
                "task=asr",
                *("~task.test_sets.french-prompts", "~task.test_sets.english-prompts"),
                *("data.dev_sentences=4", "data.test_sentences=5", "data.train_sentences=null"),
                *("data.speech.commands=30", "data.speech.unit_kind=word"),
                *overrides,
            ],
        )
    settings.io.root = str(root)
    return typed(settings)


def _librispeech(folder: Path, write: WriteAudio, n_utterance: int = 10) -> Path:
    """Write a folder with one chapter of short utterances; return it."""
    chapter = folder / "84" / "121123"
    lines = []
    for number in range(n_utterance):
        name = f"84-121123-{number:04d}"
        write(chapter / f"{name}.flac", 0.5 + 0.1 * number)
        lines.append(f"{name} IT'S {_WORDS[number % 5].upper()} {_WORDS[number % 3].upper()}\n")
    (chapter / "84-121123.trans.txt").write_text("".join(lines))
    return folder


def _rows(folder: Path, role: str) -> list[dict[str, object]]:
    with (folder / "test" / f"{role}.jsonl").open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def _user_speech(folder: Path, write: WriteAudio) -> list[str]:
    paths = {name: _librispeech(folder / name, write) for name in ("train", "dev", "test")}
    return [
        "data.speech.corpus=LibriSpeech",
        f"data.speech.train=['{paths['train']}']",
        f"data.speech.dev=['{paths['dev']}']",
        f"data.speech.test='{paths['test']}'",
        "~task.test_sets.fish-fillets",
    ]


def test_synthetic_speech_has_every_file_and_repeats_bit_by_bit(
    help_packages: Path, fake_espeak: Path, tmp_path: Path
) -> None:
    from fairseq.data import Dictionary

    downloads = tmp_path / "down: 日本"
    folders = []
    for name in ("one", "two"):
        settings = _settings(
            tmp_path / name,
            f"data.downloads='{downloads}'",
            f"data.packages='{help_packages}'",
        )
        prepare(settings)
        folders.append(tmp_path / name / "prepare" / "asr")
    folder = folders[0]
    manifest = Artifact(folder, "prepare").description
    roles = ("commands", "commands-noisy", "fish-fillets")
    artifacts = [Artifact(folder, "prepare") for folder in folders]
    assert set(artifacts[0].names()) == {
        *("units.model", "units.vocab", "data_card.md", "dev.h5", "dev.jsonl"),
        *("fairseq/dict.en.txt", "fairseq/train.h5", "fairseq/valid.h5"),
        *(f"test/{role}.{kind}" for role in roles for kind in ("h5", "jsonl", "sounds.h5")),
    }
    for name in artifacts[0].names():
        assert artifacts[1].sha256(name) == file_sha256(folder / name), name

    dictionary = Dictionary.load(str(folder / "fairseq" / "dict.en.txt"))
    with h5py.File(folder / "fairseq" / "train.h5") as file:
        assert file["/utterance/frame_offset"].shape == (31,)
        assert file["/frame/feature"].shape[1] == file.attrs["feature_bins"] == 40
        assert len(file["/frame/feature"]) == file["/utterance/frame_offset"][-1]
        assert np.isfinite(file["/frame/feature"][:]).all()
        first = file["/token/id"][: file["/utterance/token_offset"][1]]
        subwords = [dictionary[int(token)] for token in first]
        assert dictionary.unk() not in first
        assert all(subword.startswith("▁") for subword in subwords)
    for role in roles:
        rows = _rows(folder, role)
        assert [row["id"] for row in rows] == list(range(5))
        assert all(row["source_pieces"] == [] and row["reference"] for row in rows)
        assert len({row["reference"] for row in rows}) == 5
        assert [row["original"] for row in rows] == [f"{role}:{number}" for number in range(5)]
        if role in ("commands", "commands-noisy"):  # a text is one group, whichever set has it
            name = settings.data.speech.corpus
            assert [row["group"] for row in rows] == [f"{name}:{row['reference']}" for row in rows]
        with h5py.File(folder / "test" / f"{role}.h5") as file:
            lengths = np.diff(file["/utterance/frame_offset"][:]).tolist()
        assert lengths == [row["n_frame"] for row in rows]
    card = " ".join((folder / "data_card.md").read_text(encoding="utf-8").split())
    assert "| Words / Utterance | Distinct texts | Groups | Domain |" in card
    assert "| espeak-ng commands (SYNTHETIC) | train |" in card
    assert manifest["counts"]["fish-fillets"]["unknown_reference_pieces"] > 0
    assert manifest["packages"]["fillets-ng-data"]["version"] == "1.0"


def test_bpe_vocabulary_covers_words_outside_the_train_set(
    help_packages: Path, fake_espeak: Path, tmp_path: Path
) -> None:
    prepare(
        _settings(
            tmp_path,
            "data.speech.unit_kind=bpe",
            "data.speech.vocabulary_size=60",
            f"data.packages='{help_packages}'",
        )
    )
    manifest = Artifact(tmp_path / "prepare" / "asr", "prepare").description
    assert {counts["unknown_reference_pieces"] for counts in _of_test_sets(manifest)} == {0}


def _of_test_sets(manifest: dict[str, dict[str, dict[str, int]]]) -> list[dict[str, int]]:
    return [counts for name, counts in manifest["counts"].items() if name not in ("train", "dev")]


def test_librispeech_folder_is_prepared(write_audio: WriteAudio, tmp_path: Path) -> None:
    settings = _settings(
        tmp_path / "out", *_user_speech(tmp_path / "Libri Speech", write_audio),
        "data.test_sentences=100", "data.dev_sentences=100",
    )  # fmt: skip
    prepare(settings)
    folder = tmp_path / "out" / "prepare" / "asr"
    manifest = Artifact(folder, "prepare").description
    assert manifest["absent_sets"] == {
        "librispeech-other": "data.speech.test_other names no corpus"
    }
    assert {subset["subset"]: subset["utterances"] for subset in manifest["subsets"]} == {
        "train": "10",
        "dev": "10",
        "librispeech": "10",
    }
    rows = _rows(folder, "librispeech")
    assert rows[3]["source"] == "84/121123/84-121123-0003.flac"
    assert rows[3]["reference"] == "it's door red"
    assert {row["group"] for row in rows} == {"LibriSpeech:84"}
    assert rows[3]["original"] == "librispeech:3"
    assert [(size["distinct_texts"], size["groups"]) for size in manifest["subsets"]] == 3 * [
        ("10", "1")
    ]
    assert [row["n_frame"] for row in rows] == [50 + 10 * number for number in range(10)]


def test_vocabulary_size_is_refused_before_test_sets_are_read(
    write_audio: WriteAudio, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says first that speech has no copies, which an experiment may set for all tasks."""
    caplog.set_level("INFO")
    overrides = _user_speech(tmp_path, write_audio)
    overrides += ["data.speech.unit_kind=bpe", f"data.speech.test='{tmp_path / 'absent'}'"]
    for size in (40, 5000):
        with pytest.raises(ConfigError, match=rf"^data\.speech\.vocabulary_size: .*got {size}"):
            prepare(
                _settings(
                    tmp_path / "out",
                    *overrides,
                    *("data.copies.source=0.5", f"data.speech.vocabulary_size={size}"),
                )
            )
    assert "data.copies has no effect" in caplog.text


def test_bad_audio_keeps_its_row_in_a_test_set_and_is_dropped_from_training(
    write_audio: WriteAudio, tmp_path: Path
) -> None:
    overrides = _user_speech(tmp_path, write_audio)
    for name in ("train", "test"):
        chapter = tmp_path / name / "84" / "121123"
        paths = [chapter / f"84-121123-{number:04d}.flac" for number in range(10)]
        paths[1].write_bytes(b"")
        paths[2].write_text("no audio\n")
        paths[3].write_bytes(paths[3].read_bytes()[:9000])
        soundfile.write(paths[4], np.full(320, 0.1), 16000)
        soundfile.write(paths[5], np.full(16000, 0.1), 16000)
        transcripts = chapter / "84-121123.trans.txt"
        lines = transcripts.read_text().splitlines(keepends=True)
        transcripts.write_text("".join([*lines[:6], *lines[7:], "84-121123-0099 LOST\n"]))
    settings = _settings(tmp_path / "out", *overrides, "data.test_sentences=100")
    prepare(settings)
    folder = tmp_path / "out" / "prepare" / "asr"
    manifest = Artifact(folder, "prepare").description
    audio = {1: "empty", 2: "unreadable", 3: "unreadable", 4: "too_short"}
    faults = {f"84/121123/84-121123-{number:04d}.flac": fault for number, fault in audio.items()}
    lost = {"84/121123/84-121123-0099.flac": "transcript without audio"}
    silent = {"84/121123/84-121123-0006.flac": "no_transcript"}
    assert manifest["faults"] == {"train": faults | lost | silent, "librispeech": faults | lost}
    assert manifest["counts"]["train"]["utterances"] == 5
    rows = _rows(folder, "librispeech")
    assert [row["id"] for row in rows] == list(range(10))
    assert [row["n_frame"] == 0 for row in rows] == [number in audio for number in range(10)]
    assert [row["reference"] is None for row in rows] == [number == 6 for number in range(10)]
    assert rows[7]["reference"] == "it's blue green"
    with h5py.File(folder / "test" / "librispeech.h5") as file:
        lengths = np.diff(file["/utterance/frame_offset"][:]).tolist()
    assert lengths == [row["n_frame"] for row in rows]


def test_test_set_without_audio_is_refused(write_audio: WriteAudio, tmp_path: Path) -> None:
    overrides = _user_speech(tmp_path, write_audio)
    for path in (tmp_path / "test").rglob("*.flac"):
        os.truncate(path, 0)
    with pytest.raises(
        DataError, match="no utterance with sound for the librispeech set of LibriSpeech"
    ):
        prepare(_settings(tmp_path / "out", *overrides))
    assert not list((tmp_path / "out" / "prepare").iterdir())


def test_one_corpus_is_split_by_its_sentences(write_audio: WriteAudio, tmp_path: Path) -> None:
    for number in range(40):
        write_audio(tmp_path / "mine" / f"{number:02d}.wav", 0.3)
        (tmp_path / "mine" / f"{number:02d}.txt").write_text(f"sentence {number // 2}")
    prepare(
        _settings(
            tmp_path / "out",
            "data.speech.corpus=my own speech",
            f"data.speech.train=['{tmp_path / 'mine'}']",
            *("data.test_sentences=100", "data.dev_sentences=100", "~task.test_sets.fish-fillets"),
        )
    )
    folder = tmp_path / "out" / "prepare" / "asr"
    manifest = Artifact(folder, "prepare").description
    sizes = [int(subset["utterances"]) for subset in manifest["subsets"]]
    assert sum(sizes) == 40
    assert all(size % 2 == 0 < size for size in sizes)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.speech.train=[x]"], r"data\.speech\.corpus: must name the corpus of"),
        (["data.speech.test=x"], r"data\.speech\.test: must be empty if data\.speech\.train is"),
        (
            ["data.speech.shortest_seconds=50"],
            r"shortest_seconds: must be at most data\.speech",
        ),
        (["data.speech.unit_kind=letter"], r"unit_kind: must be one of bpe, unigram, word \(got l"),
        (
            ["task.test_sets.fish-fillets.kind=typos"],
            r"fish-fillets\.kind: must be a kind for task\.family=speech",
        ),
        (
            ["task=nmt_ende", "task.test_sets.debian-reference.kind=meetings"],
            r"debian-reference\.kind: must be a kind for",
        ),
    ],
)
def test_contradictory_settings_are_refused(
    overrides: list[str], message: str, tmp_path: Path
) -> None:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        settings = compose("pipeline", ["task=asr", *overrides])
    with pytest.raises(ConfigError, match=message):
        typed(settings)


_OWN = ("data/units=own", "ensemble=huggingface", "ensemble.seeds=[]")


def test_own_models_get_held_out_waveforms_and_no_training_set(
    tmp_path: Path, write_audio: WriteAudio
) -> None:
    speech = _librispeech(tmp_path / "speech", write_audio, n_utterance=30)
    (speech / "84" / "121123" / "84-121123-0000.flac").unlink()
    dev = _librispeech(tmp_path / "dev", write_audio)
    overrides = (
        "data.speech.corpus=L", f"data.speech.train=['{speech}']", f"data.speech.dev=['{dev}']",
        "~task.test_sets.fish-fillets",
    )  # fmt: skip
    prepare(_settings(tmp_path / "own", *_OWN, *overrides))
    prepare(_settings(tmp_path / "learnt", *overrides))
    own, learnt = tmp_path / "own" / "prepare" / "asr", tmp_path / "learnt" / "prepare" / "asr"
    assert {*Artifact(own, "prepare").names()} == {
        *("data_card.md", "dev.h5", "dev.jsonl", "fairseq/README"),
        *(f"test/l.{kind}" for kind in ("h5", "jsonl", "sounds.h5")),
    }
    # DVC runs no stage that depends on what is missing, such as stage train.
    dag = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    prepared = "outputs/prepare/${item.task}"
    needed = {path for stage in dag.values() for path in stage["deps"] if prepared in path}
    assert needed == {prepared, f"{prepared}/fairseq"}
    assert all(Path(path.replace(prepared, str(own))).is_dir() for path in needed)
    sources = [[row["source"] for row in _rows(folder, "l")] for folder in (own, learnt)]
    assert sources[0] == sources[1]
    # What is left out of the corpus is recorded although there is no training set.
    assert "84-121123-0000.flac" in json.dumps(Artifact(own, "prepare").description["faults"])


def test_own_models_have_synthetic_test_sets_without_training_speech(
    help_packages: Path, fake_espeak: Path, tmp_path: Path
) -> None:
    prepare(_settings(tmp_path, *_OWN, f"data.packages='{help_packages}'"))
    folder = tmp_path / "prepare" / "asr"
    roles = ("commands", "commands-noisy", "fish-fillets")
    assert {*Artifact(folder, "prepare").names()} == {
        "data_card.md", "fairseq/README",
        *(f"test/{role}.{kind}" for role in roles for kind in ("h5", "jsonl", "sounds.h5")),
    }  # fmt: skip
    assert len(_rows(folder, "commands")) == 5
