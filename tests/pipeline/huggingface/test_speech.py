"""Whisper and Speech2Text against their own `generate` and loss, on the same audio."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from pipeline.data.speech.waveforms import WaveformFile, writing_waveforms
from pipeline.decoding.beam import beam_search
from pipeline.decoding.blocks import _input_flag
from pipeline.decoding.ensemble import MembersInTurn
from pipeline.decoding.scoring import score_targets
from pipeline.decoding.test_set import PreparedSentence, Sentence, padded
from pipeline.ensembles.ensemble import load_member
from pipeline.ensembles.huggingface import huggingface_members
from pipeline.errors import ConfigError, DataError
from pipeline.huggingface.loader import load_tokenizer
from pipeline.huggingface.speech import SpeechTokenizer
from pipeline.huggingface.tokenizer import HuggingFaceTokenizer
from pipeline.store import Flag
from tests.pipeline.huggingface.folders import save_marian
from tests.pipeline.huggingface.speech_folders import (
    RATE,
    save_speech2text,
    save_whisper,
    utterances,
    whisper_processor,
)
from tests.pipeline.huggingface.test_loader import SETTINGS

pytestmark = pytest.mark.slow

BEAM, LIMIT = 5, 12
SAVE: dict[str, Callable[[Path, int], Path]] = {
    "whisper": save_whisper,
    "speech2text": save_speech2text,
}
LANGUAGE = {"whisper": "en", "speech2text": None}


@dataclass(frozen=True)
class Loaded:
    """A model twice: as transformers loads it, and as a member with its tokenizer."""

    name: str
    folder: Path
    own: Any
    extractor: Any
    member: Any
    tokenizer: SpeechTokenizer

    def features(self, samples: Any) -> torch.Tensor:
        """Features of the model's own extractor [1, bin, frame] or [1, frame, bin]."""
        inputs = self.extractor(samples, sampling_rate=RATE, return_tensors="pt")
        features: torch.Tensor = inputs["input_features"]
        return features


@pytest.fixture(scope="module", params=SAVE)
def loaded(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    name = request.param
    folder = SAVE[name](tmp_path_factory.mktemp("speech") / name, 1)
    settings = SETTINGS | {"models": [str(folder)], "source_language": LANGUAGE[name]}
    (member,) = huggingface_members("mine", settings)
    tokenizer = load_tokenizer(member)
    assert isinstance(tokenizer, SpeechTokenizer)
    return Loaded(
        name,
        folder,
        transformers.AutoModelForSpeechSeq2Seq.from_pretrained(folder).eval(),
        transformers.AutoFeatureExtractor.from_pretrained(folder),
        load_member(member, tokenizer, "cpu", "float32"),
        tokenizer,
    )


def prepared(folder: Path, *waveforms: Any, rate_hz: int = RATE) -> list[PreparedSentence]:
    """Write waveforms as stage prepare does, and read them."""
    with writing_waveforms(folder / "x.h5", rate_hz) as add:
        for samples in waveforms:
            add(np.asarray(samples, np.float32))
    file = WaveformFile(folder / "x.h5")
    return [
        PreparedSentence(index, f"{index}.wav", None, [], None, utterances=file)
        for index in range(len(waveforms))
    ]


@pytest.fixture
def spoken(loaded: Loaded, tmp_path: Path) -> list[tuple[Any, Sentence]]:
    """Samples, and the sentences that the member decodes, of different lengths."""
    drawn = utterances(12, seed=5)
    rows = prepared(tmp_path, *(samples for _, samples in drawn))
    return [
        (samples, Sentence(row.id, loaded.tokenizer.source(row), _target(loaded, words)))
        for (words, samples), row in zip(drawn, rows, strict=True)
    ]


def _target(loaded: Loaded, words: list[str]) -> list[int]:
    return loaded.tokenizer.target_of_text(" ".join(words))


def generated(loaded: Loaded, samples: Any, **settings: Any) -> list[tuple[list[int], float]]:
    """Return the hypotheses of `generate` with EOS, and their scores."""
    inputs = {"input_features": loaded.features(samples)}
    generate = loaded.own.generate
    if loaded.name == "whisper":
        # Whisper's own generate returns the best hypothesis only.
        inputs = {
            "encoder_outputs": loaded.own.get_encoder()(**inputs),
            "decoder_input_ids": torch.tensor([loaded.tokenizer.tokens.start]),
        }
        generate = partial(transformers.GenerationMixin.generate, loaded.own)
    output = generate(
        **inputs, num_beams=BEAM, num_return_sequences=BEAM, max_new_tokens=LIMIT + 1,
        do_sample=False, return_dict_in_generate=True, output_scores=True, **settings,
    )  # fmt: skip
    n_start = len(loaded.tokenizer.tokens.start)
    eos = loaded.tokenizer.tokens.eos
    found = []
    for row, score in zip(output.sequences.tolist(), output.sequences_scores, strict=True):
        tokens = row[n_start:]
        end = tokens.index(eos) + 1 if eos in tokens else len(tokens)
        found.append((tokens[:end], float(score)))
    return found


def test_all_hypotheses_are_those_of_generate(
    loaded: Loaded, spoken: list[tuple[Any, Sentence]], decode_config: Any
) -> None:
    config = decode_config(ending="early", max_length_offset=LIMIT)
    found = beam_search(
        MembersInTurn([loaded.member]), [sentence for _, sentence in spoken], "prex", config
    )
    compared = 0
    for (samples, _), ours in zip(spoken, found, strict=True):
        theirs = generated(loaded, samples, early_stopping=True)
        # At the limit our rule differs: generate cuts hypotheses, which take the place of others.
        if any(token_id[-1] != loaded.tokenizer.tokens.eos for token_id, _ in theirs):
            continue
        assert [hypothesis.token_id.tolist() for hypothesis in ours] == [
            token_id for token_id, _ in theirs
        ]
        for hypothesis, (_, score) in zip(ours, theirs, strict=True):
            assert hypothesis.score == pytest.approx(score, abs=1e-5)
        compared += 1
    assert compared > 0.8 * len(spoken)


@pytest.mark.parametrize("loaded", ["whisper"], indirect=True)
def test_the_best_text_is_that_of_whispers_own_generate(
    loaded: Loaded, spoken: list[tuple[Any, Sentence]], decode_config: Any
) -> None:
    processor = transformers.AutoProcessor.from_pretrained(loaded.folder)
    config = decode_config(ending="early", max_length_offset=LIMIT)
    sentences = [sentence for _, sentence in spoken]
    found = beam_search(MembersInTurn([loaded.member]), sentences, "prex", config)
    features = torch.cat([loaded.features(samples) for samples, _ in spoken])
    sequences = loaded.own.generate(
        features, language="en", task="transcribe", num_beams=BEAM, early_stopping=True,
        max_new_tokens=LIMIT + 1,
    )  # fmt: skip
    texts = processor.batch_decode(sequences, skip_special_tokens=True)
    assert [loaded.tokenizer.text(best.token_id) for best, *_ in found] == texts


def test_teacher_forcing_is_the_models_own_loss(
    loaded: Loaded, spoken: list[tuple[Any, Sentence]], decode_config: Any
) -> None:
    scored = score_targets(
        MembersInTurn([loaded.member]), [sentence for _, sentence in spoken], "prex",
        decode_config(),
    )  # fmt: skip
    start = list(loaded.tokenizer.tokens.start)
    for (samples, sentence), (hypothesis,) in zip(spoken, scored, strict=True):
        target = sentence.target or []
        labels = [-100] * (len(start) - 1) + target
        prefix = [*start, *target[:-1]]
        with torch.inference_mode():
            loss = loaded.own(
                input_features=loaded.features(samples),
                decoder_input_ids=torch.tensor([prefix]), labels=torch.tensor([labels]),
            ).loss  # fmt: skip
        nll = -hypothesis.statistics.logprob.mean()
        assert nll == pytest.approx(float(loss), abs=1e-5)


def test_labels_are_those_that_such_models_are_trained_on(loaded: Loaded) -> None:
    own = transformers.AutoTokenizer.from_pretrained(loaded.folder)
    labels = own("red lamp")["input_ids"]
    tokenizer = loaded.tokenizer
    assert tokenizer.target_of_text("red lamp") == labels[-len(_target(loaded, ["red", "lamp"])) :]
    assert tokenizer.text(labels) == "red lamp"
    assert tokenizer.target_of_text(" ") == []


def test_a_sentence_does_not_depend_on_others(
    loaded: Loaded, spoken: list[tuple[Any, Sentence]]
) -> None:
    sources = [sentence.source for _, sentence in spoken]
    together = loaded.member.encode(padded(sources, None)).hidden
    for index, source in enumerate(sources):
        alone = loaded.member.encode(padded([source], None)).hidden[0]
        torch.testing.assert_close(together[index, : len(alone)], alone, atol=1e-5, rtol=0)


def test_audio_beyond_the_window_is_flagged_and_not_cut(loaded: Loaded, tmp_path: Path) -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(2 * RATE)
    whole, longer, silent, faulty = map(
        loaded.tokenizer.source,
        prepared(tmp_path, noise[:RATE], noise[: RATE + 400], np.zeros(RATE // 2), []),
    )
    sentences = [Sentence(0, source, None) for source in (whole, longer, faulty)]
    flags = [_input_flag(sentence, loaded.member, "beam") for sentence in sentences]
    assert flags == [Flag(0), Flag.TOO_LONG, Flag.EMPTY_SOURCE]
    # Speech2Text divides by the variance, of which silence has none.
    assert len(silent) == (53 if loaded.name == "whisper" else 0)


def test_features_need_no_torchaudio(loaded: Loaded) -> None:
    utils = pytest.importorskip("transformers.utils")
    assert not utils.is_speech_available()
    assert hasattr(loaded.extractor, "mel_filters")


def test_other_kinds_of_input_are_named(loaded: Loaded, tmp_path: Path) -> None:
    text = PreparedSentence(0, "a text", None, [], None)
    with pytest.raises(ConfigError, match=r"is a model of speech, and the test sets are text"):
        loaded.tokenizer.source(text)
    (slow,) = prepared(tmp_path, np.zeros(800), rate_hz=8000)
    with pytest.raises(ConfigError, match=r"sampling_rate_hz: must be 16000, .* \(got 8000 in"):
        loaded.tokenizer.source(slow)
    marian = HuggingFaceTokenizer(save_marian(tmp_path / "marian", 1), None, (None, None))
    with pytest.raises(ConfigError, match=r"is a model of text, and the test sets are speech"):
        marian.source(slow)


@pytest.fixture
def processor_folder(tmp_path: Path) -> Path:
    """A Whisper model without weights."""
    whisper_processor().save_pretrained(tmp_path)
    token = transformers.WhisperTokenizer.from_pretrained(tmp_path).get_vocab()
    end = token["<|endoftext|>"]
    transformers.WhisperConfig(
        vocab_size=len(token), eos_token_id=end, num_mel_bins=16
    ).save_pretrained(tmp_path)
    return tmp_path


def _write_generation(folder: Path, **settings: Any) -> None:
    end = transformers.WhisperTokenizer.from_pretrained(folder).eos_token_id
    content = {"eos_token_id": end, "pad_token_id": end} | settings
    (folder / "generation_config.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("generation", "language", "prompt"),
    [
        ({"is_multilingual": True}, "en", "en transcribe notimestamps"),
        ({"is_multilingual": True}, "German", "de transcribe notimestamps"),
        ({"is_multilingual": True, "language": "<|de|>"}, None, "de transcribe notimestamps"),
        ({"language": "de"}, "en", "en transcribe notimestamps"),
        ({"task": "translate"}, "de", "de translate notimestamps"),
        ({"is_multilingual": False}, None, "notimestamps"),
    ],
)
def test_whispers_prompt_is_language_task_and_no_timestamps(
    processor_folder: Path, generation: dict[str, Any], language: str | None, prompt: str
) -> None:
    _write_generation(processor_folder, **generation)
    tokenizer = SpeechTokenizer(processor_folder, None, (language, None))
    pieces = [tokenizer.pieces[token] for token in tokenizer.tokens.start]
    expected = ["startoftranscript", *prompt.split()]
    assert pieces == [f"<|{word}|>" for word in expected]


def test_an_older_whisper_has_its_language_in_the_tokenizer(processor_folder: Path) -> None:
    _write_generation(processor_folder)
    path = processor_folder / "tokenizer_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | {"language": "german"}), encoding="utf-8")
    tokenizer = SpeechTokenizer(processor_folder, None, (None, None))
    assert tokenizer.pieces[tokenizer.tokens.start[1]] == "<|de|>"


@pytest.mark.parametrize(
    ("generation", "prompt", "languages", "match"),
    [
        ({"is_multilingual": True}, None, (None, None), r"source_language: must be a.*got None\)"),
        ({}, None, ("xx", None), r"source_language: must be a language .* \(got xx\)"),
        ({"is_multilingual": False}, None, ("en", None), r"source_language: must be null"),
        ({}, None, ("en", "de"), r"target_language: must be null"),
        ({}, "{source}", ("en", None), r"settings\.prompt: must be null .* \(got \{source\}\)"),
    ],
)
def test_settings_that_do_not_fit_whisper_are_named(
    processor_folder: Path, generation: Any, prompt: Any, languages: Any, match: str
) -> None:
    _write_generation(processor_folder, **generation)
    with pytest.raises(ConfigError, match=match):
        SpeechTokenizer(processor_folder, prompt, languages)


def test_feature_extractors_must_be_there_fixed_and_equal(processor_folder: Path) -> None:
    _write_generation(processor_folder)
    first = SpeechTokenizer(processor_folder, None, ("en", None))
    first.check_same_input(SpeechTokenizer(processor_folder, None, ("en", None)))
    with pytest.raises(DataError, match="must have the same start of a prefix"):
        first.check_same_input(SpeechTokenizer(processor_folder, None, ("de", None)))
    whisper_processor(hop_length=80).save_pretrained(processor_folder)
    with pytest.raises(DataError, match="must have the same feature extractor"):
        first.check_same_input(SpeechTokenizer(processor_folder, None, ("en", None)))
    whisper_processor(dither=1.0).save_pretrained(processor_folder)
    with pytest.raises(DataError, match=r"results are random \(dither is 1\.0\)"):
        SpeechTokenizer(processor_folder, None, ("en", None))
    whisper_processor(feature_size=8).save_pretrained(processor_folder)
    with pytest.raises(DataError, match="gives 8 bins, but num_mel_bins is 16 in config"):
        SpeechTokenizer(processor_folder, None, ("en", None))
    (processor_folder / "processor_config.json").unlink()
    with pytest.raises(DataError, match="has no feature extractor"):
        SpeechTokenizer(processor_folder, None, ("en", None))
