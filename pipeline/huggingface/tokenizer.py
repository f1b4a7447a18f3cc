"""The tokenizer of a Hugging Face model, with its control tokens and the prompt of a task."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import ConfigError, DataError
from pipeline.huggingface import import_transformers
from pipeline.huggingface.control_tokens import ControlTokens, control_tokens
from pipeline.huggingface.folder import TOKENIZER_CONFIG, TOKENIZER_FILES
from pipeline.huggingface.languages import is_language_last, language_token, set_languages

SOURCE, TARGET = "{source}", "{target}"
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


class HuggingFaceTokenizer:
    """A `Tokenizer` that cuts texts as the model's own does.

    prompt: a template with `{source}`. For a causal model, it ends with `{target}`: what comes
    before, without spaces at its end, is the source of the model, and the spaces belong to the
    target, as they do in the subwords of such models. languages: codes of source and target, for
    models of many languages. Raises ConfigError if the prompt or the languages do not fit the
    model, DataError if the folder is not that of a model with a tokenizer.
    """

    def __init__(
        self, folder: Path, prompt: str | None, languages: tuple[str | None, str | None]
    ) -> None:
        transformers = import_transformers()
        self._tokenizer = read_tokenizer(folder)
        with _as_data_error(folder):
            self.config = transformers.AutoConfig.from_pretrained(folder, **_LOCAL)
            generation = _generation_config(folder, self.config)
        set_languages(self._tokenizer, *languages)
        self.is_causal = not self.config.is_encoder_decoder
        self._before, self._gap = _prompt(prompt, self.is_causal)
        unk = self._tokenizer.unk_token_id
        start = None if self.is_causal else self._start(generation)
        self.tokens: ControlTokens = control_tokens(
            self.config, generation, str(folder), unk=unk, start=start
        )
        if self.is_causal and self._tokenizer("a")["input_ids"][-1] == self.tokens.eos:
            raise DataError(
                f"{folder}: its tokenizer ends every text with EOS, so that a prompt could not be "
                f"continued. Set add_eos_token to false in tokenizer_config.json."
            )

    @property
    def vocab_size(self) -> int:
        """Number of tokens that the model has logits of."""
        own = getattr(self.config, "decoder_vocab_size", None)
        return int(own or self.config.get_text_config().vocab_size)

    @property
    def pieces(self) -> list[str]:
        """The piece of every token id, with ▁ for spaces; ids that it lacks are <unused>."""
        known = min(len(self._tokenizer), self.vocab_size)
        pieces = self._tokenizer.convert_ids_to_tokens(list(range(known)))
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is not None and "ByteLevel" in repr(backend.decoder):
            # These pieces are bytes in an alphabet of their own, in which a space is Ġ.
            decode = import_transformers("tokenizers.decoders").ByteLevel().decode
            pieces = [decode([piece]).replace(" ", "▁") for piece in pieces]
        return [*pieces, *["<unused>"] * (self.vocab_size - known)]

    @property
    def eos(self) -> int:
        """Token id of EOS."""
        return self.tokens.eos

    @property
    def control(self) -> Sequence[int]:
        """Token ids that the tokenizer leaves out of texts."""
        return [token for token in self._tokenizer.all_special_ids if token < self.vocab_size]

    def source(self, sentence: Any) -> Sequence[int] | NDArray[np.float32]:
        """Token ids of the source text in the prompt, with the model's control tokens.

        Raises ConfigError if the test set is one of speech.
        """
        if sentence.utterances is not None:
            raise ConfigError(
                f"ensemble=huggingface: {self._tokenizer.name_or_path} is a model of text, and the "
                f"test sets are speech. Choose models of speech, or a task of translation."
            )
        if not sentence.source.strip():
            return []
        text = self._before.replace(SOURCE, sentence.source)
        return [int(token) for token in self._cut(text)["input_ids"]]

    def target(self, sentence: Any) -> list[int] | None:
        """The reference as token ids with EOS."""
        if sentence.reference is None:
            return None
        return self.target_of_text(sentence.reference) or [self.tokens.eos]

    def target_of_text(self, text: str) -> list[int]:
        """A text of the target side as token ids, with EOS; [] for a blank one."""
        if not text.strip():
            return []
        eos, start = self.tokens.eos, self.tokens.start
        if self.is_causal:
            encoded = self._cut(self._gap + text, add_special_tokens=False)
            return [*map(int, encoded["input_ids"]), eos]
        token_id = [*map(int, self._cut(text_target=text)["input_ids"])]
        # The labels of a model may begin with what every prefix begins with.
        for control in (start, start[1:]):
            if control and tuple(token_id[: len(control)]) == control:
                token_id = token_id[len(control) :]
                break
        end = token_id.index(eos) if eos in token_id else len(token_id)
        return [*token_id[:end], eos]

    def text(self, token_id: Sequence[int]) -> str:
        """The text of a hypothesis, by the tokenizer's own decode."""
        text: str = self._tokenizer.decode(list(token_id), skip_special_tokens=True)
        return text.strip()

    def _cut(self, *texts: str, **settings: Any) -> Any:
        """What the tokenizer makes of a text, without its warning of texts that are too long.

        Such sentences are flagged.
        """
        return self._tokenizer(*texts, verbose=False, **settings)

    def _start(self, generation: Any) -> tuple[int, ...] | None:
        """The tokens that every prefix begins with, where the tokenizer knows them."""
        language = language_token(self._tokenizer)
        if language is not None:
            if is_language_last(self._tokenizer):
                return (language,)
            generation.forced_bos_token_id = language
        return None


def read_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder as transformers has it.

    Raises DataError if there is none: some classes of transformers then fail, each in its own way,
    and others return a tokenizer that knows no word.
    """
    transformers = import_transformers()
    present = {path.name for path in folder.iterdir()}
    tokenizer, reason = None, ""
    try:
        with warnings.catch_warnings():
            # Marian's tokenizer recommends a package for a normalisation that it does not apply.
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **_LOCAL)
    except Exception as error:  # noqa: BLE001 - which one depends on the class
        reason = " ".join(str(error).split())
    # Tokenizers of bytes need no file.
    own_files = {*getattr(tokenizer, "vocab_files_names", {"": ""}).values()}
    if own_files and present.isdisjoint({*own_files, *TOKENIZER_FILES} - {TOKENIZER_CONFIG}):
        raise DataError(f"{folder}: no tokenizer. Save it there with save_pretrained.")
    if tokenizer is None:
        raise DataError(
            f"{folder}: its tokenizer cannot be read ({reason}). Save it there with "
            f"save_pretrained."
        )
    return tokenizer


@contextmanager
def _as_data_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{folder}: its configuration cannot be read ({reason}). Save the model there with "
            f"save_pretrained."
        ) from None


def _generation_config(folder: Path, config: Any) -> Any:
    """The file generation_config.json, or what an older configuration says about generation."""
    configs = import_transformers().GenerationConfig
    if (folder / "generation_config.json").is_file():
        return configs.from_pretrained(folder, local_files_only=True)
    return configs.from_model_config(config)


def _prompt(prompt: str | None, is_causal: bool) -> tuple[str, str]:
    """The template of the source, and the spaces between it and the target."""
    if prompt is None and not is_causal:
        return SOURCE, ""
    if prompt is None or prompt.count(SOURCE) != 1:
        advice = (
            f"Write the text that the model was trained to continue, such as "
            f"'English: {SOURCE}\\nGerman: {TARGET}'."
            if is_causal
            else f"Write it as in training, such as 'translate English to German: {SOURCE}'."
        )
        raise ConfigError(f"settings.prompt: must contain {SOURCE} once (got {prompt}). {advice}")
    if not is_causal:
        return prompt, ""
    before, target, after = prompt.partition(TARGET)
    if not target or after:
        raise ConfigError(
            f"settings.prompt: must end with {TARGET} for a causal model (got {prompt}). Write "
            f"the text that the model was trained to continue."
        )
    stripped = before.rstrip(" ")
    return stripped, before[len(stripped) :]
