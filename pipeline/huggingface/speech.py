"""Tokenizer and feature extractor of Whisper and Speech2Text, for waveforms of stage prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ConfigError, DataError
from pipeline.huggingface import import_transformers
from pipeline.huggingface.tokenizer import HuggingFaceTokenizer

Frames = NDArray[np.float32]
# Whisper's vocabularies of English only are smaller.
_MULTILINGUAL_TOKENS = 51865


class SpeechTokenizer(HuggingFaceTokenizer):
    """A `Tokenizer` whose sources are the features that the model's own extractor computes.

    languages: for Whisper, the first is that of the speech, such as de or german, None for that of
    the model's configuration; for Speech2Text, the second is that of the text. Raises ConfigError
    if languages or the prompt do not fit the model, DataError if the folder has no feature
    extractor, or one that is random.
    """

    def __init__(
        self, folder: Path, prompt: str | None, languages: tuple[str | None, str | None]
    ) -> None:
        if prompt is not None:
            raise ConfigError(
                f"settings.prompt: must be null for models of speech (got {prompt}). Leave it out."
            )
        self._languages = languages
        super().__init__(folder, None, (None, None))
        self.folder = folder
        self._extractor = _feature_extractor(folder)
        own_bins = {"num_mel_bins", "input_feat_per_channel"} & {*self.config.to_dict()}
        for name in own_bins:
            if getattr(self.config, name) != self._extractor.feature_size:
                raise DataError(
                    f"{folder}: the feature extractor gives {self._extractor.feature_size} bins, "
                    f"but {name} is {getattr(self.config, name)} in config.json. Save the model "
                    f"and its processor together."
                )

    def check_same_input(self, other: HuggingFaceTokenizer) -> None:
        """Raise DataError if another model has other features or another start of a prefix.

        Members get the source and the start of the first of them.
        """
        assert isinstance(other, SpeechTokenizer)
        for what, own, others in (
            ("feature extractor", self._extractor_settings(), other._extractor_settings()),
            ("start of a prefix", self.tokens.start, other.tokens.start),
        ):
            if own != others:
                raise DataError(
                    f"{other.folder}: must have the same {what} as {self.folder} (got {others}, "
                    f"not {own}). Choose members with the same input."
                )

    def source(self, sentence: Any) -> Frames:
        """Features [frame, bin] of an utterance; none if it has no sound or is silent.

        Audio is never cut: what is longer than the model's window has more frames than it takes.
        Raises ConfigError if the test set is text, or was prepared at another sampling rate,
        DataError if it has no waveforms.
        """
        utterances = sentence.utterances
        if utterances is None:
            raise ConfigError(
                f"ensemble=huggingface: {self.folder} is a model of speech, and the test sets are "
                f"text. Choose models of text, or a task of speech."
            )
        prepared_hz = getattr(utterances, "sampling_rate_hz", None)
        if prepared_hz is None:
            raise DataError(
                f"{utterances.path}: has features, but the models compute their own from "
                f"waveforms. Run python -m stages.prepare with data/units=own."
            )
        rate_hz = int(self._extractor.sampling_rate)
        if prepared_hz != rate_hz:
            raise ConfigError(
                f"data.speech.sampling_rate_hz: must be {rate_hz}, the rate of the models (got "
                f"{prepared_hz} in {utterances.path}). Set it, and run python -m stages.prepare "
                f"again."
            )
        samples = utterances.samples(sentence.id)
        return self._features(samples) if len(samples) else np.zeros((0, 1), np.float32)

    def target_of_text(self, text: str) -> list[int]:
        """A transcript as token ids, with EOS; [] for a blank one."""
        if not text.strip():
            return []
        token_id = self._cut(text_target=text, add_special_tokens=False)["input_ids"]
        return [*map(int, token_id), self.tokens.eos]

    def _extractor_settings(self) -> dict[str, Any]:
        # Older files name the class of the processor, too.
        settings = self._extractor.to_dict().items()
        return {name: value for name, value in settings if name != "processor_class"}

    def _features(self, samples: NDArray[np.float32]) -> Frames:
        settings = {"sampling_rate": self._extractor.sampling_rate, "return_tensors": "np"}
        if self.config.model_type == "whisper":
            # Filled up with silence to the model's window.
            features = self._extractor(
                samples, truncation=False, padding="max_length", **settings
            )["input_features"][0].T  # fmt: skip
            return np.ascontiguousarray(features[: self._n_distinct_frame(len(samples))])
        with np.errstate(divide="ignore", invalid="ignore"):  # silence has no variance
            features = self._extractor(samples, **settings)["input_features"][0]
        frames: Frames = np.asarray(features, np.float32)
        return frames if np.isfinite(frames).all() else frames[:0]

    def _n_distinct_frame(self, n_sample: int) -> int:
        """Number of frames up to the first of those of silence, which are all equal.

        A frame is centred on a multiple of the hop length. `SpeechMember` adds the other frames.
        """
        hop, reach = self._extractor.hop_length, self._extractor.n_fft // 2
        return int((n_sample + reach) // hop + 2)

    def _start(self, generation: Any, *_: Any) -> tuple[int, ...] | None:
        """The tokens that every prefix begins with: for Whisper language, task, no timestamps."""
        source, target = self._languages
        if self.config.model_type == "whisper":
            _must_be_null("target_language", target)
            return _whisper_prompt(self._tokenizer, generation, source)
        _must_be_null("source_language", source)
        languages = getattr(self._tokenizer, "lang_code_to_id", None) or {}
        if not languages:
            _must_be_null("target_language", target)
        elif target in languages:
            generation.forced_bos_token_id = int(languages[target])
        elif target is not None or generation.forced_bos_token_id is None:
            raise ConfigError(
                f"settings.target_language: must be one of {', '.join(languages)} (got {target})."
            )
        return None


def _feature_extractor(folder: Path) -> Any:
    try:
        extractor = import_transformers().AutoFeatureExtractor.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{folder}: has no feature extractor ({reason}). Save the model's processor with "
            f"save_pretrained."
        ) from None
    if extractor.dither:
        raise DataError(
            f"{folder}: the feature extractor adds noise, so that results are random (dither is "
            f"{extractor.dither}). Set it to 0 in preprocessor_config.json."
        )
    return extractor


def _whisper_prompt(tokenizer: Any, generation: Any, chosen: str | None) -> tuple[int, ...]:
    """Whisper's start symbols: as its own `generate`, but the language is never guessed.

    It is `chosen`, or that of the configuration of `generate`, or that of the tokenizer.
    """
    known = tokenizer.get_vocab()
    language = chosen
    for owner in (generation, tokenizer):
        language = language or getattr(owner, "language", None)
    is_multilingual = getattr(generation, "is_multilingual", None)
    if is_multilingual is None:  # in older configurations
        is_multilingual = language is not None or len(known) >= _MULTILINGUAL_TOKENS
    words = ["<|startoftranscript|>"]
    if is_multilingual:
        names = import_transformers("transformers.models.whisper.tokenization_whisper")
        code = (language or "").lower().strip("<|>")
        words.append(f"<|{names.TO_LANGUAGE_CODE.get(code, code)}|>")
        if words[1] not in known:
            raise ConfigError(
                f"settings.source_language: must be a language of the model, such as en (got "
                f"{language}). Set it to the language of the speech."
            )
        words.append(f"<|{getattr(generation, 'task', None) or 'transcribe'}|>")
    else:
        _must_be_null("source_language", chosen)
    words.append("<|notimestamps|>")
    for word in words:
        if word not in known:
            raise DataError(
                f"{tokenizer.name_or_path}: has no token {word}. Give the tokenizer of Whisper."
            )
    return tuple(int(known[word]) for word in words)


def _must_be_null(setting: str, value: str | None) -> None:
    if value is not None:
        raise ConfigError(
            f"settings.{setting}: must be null for these models, which have no choice of it "
            f"(got {value}). Leave it out."
        )
