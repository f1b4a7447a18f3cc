"""The control tokens of a Hugging Face model, from its configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipeline.errors import DataError

# Models with relative positions, such as T5 and BLOOM, have no limit of their own.
UNLIMITED = 2**20


@dataclass(frozen=True)
class ControlTokens:
    """Control tokens as in `MemberModel`.

    suppressed: never chosen; suppressed_first: never chosen as the first token of a hypothesis.
    Both are what the model's own `generate` suppresses, and padding.
    """

    eos: int
    unk: int | None
    start: tuple[int, ...]
    suppressed: tuple[int, ...]
    suppressed_first: tuple[int, ...]

    def at(self, n_token: int) -> tuple[int, ...]:
        """Token ids that are never chosen after a hypothesis of n_token tokens."""
        return self.suppressed if n_token else (*self.suppressed, *self.suppressed_first)


def control_tokens(
    config: Any,
    generation: Any,
    where: str,
    unk: int | None = None,
    start: tuple[int, ...] | None = None,
) -> ControlTokens:
    """Read the control tokens of a model.

    config, generation: its `PretrainedConfig` and `GenerationConfig`. start: the tokens that every
    prefix begins with, if the tokenizer knows more than the model, such as languages. Raises
    DataError naming `where` if the model has no EOS, several, or no start of a prefix.
    """
    eos = _first_set(generation.eos_token_id, config.eos_token_id)
    if isinstance(eos, list | tuple) and len(eos) == 1:
        eos = eos[0]
    if not isinstance(eos, int):
        raise DataError(
            f"{where}: eos_token_id must be one token (got {eos}). Set it to one of them in "
            f"generation_config.json."
        )
    if start is None:
        start = _start(config, generation, where) if config.is_encoder_decoder else ()
    pad = _first_set(generation.pad_token_id, config.pad_token_id)
    single = [words[0] for words in generation.bad_words_ids or () if len(words) == 1]
    suppressed = {*single, *(generation.suppress_tokens or ()), *([] if pad is None else [pad])}
    # Padding may be EOS, which must stay possible.
    suppressed = {token for token in suppressed if 0 <= token != eos}
    first = {*(generation.begin_suppress_tokens or ())} - suppressed
    return ControlTokens(
        eos,
        None if unk == eos else unk,  # tokenizers that need no unknown token name EOS
        start,
        tuple(sorted(suppressed)),
        tuple(sorted(first)),
    )


def _start(config: Any, generation: Any, where: str) -> tuple[int, ...]:
    first = _first_set(
        generation.decoder_start_token_id,
        getattr(config, "decoder_start_token_id", None),
        generation.bos_token_id,
    )
    if first is None:
        raise DataError(
            f"{where}: decoder_start_token_id is missing. Set it in generation_config.json."
        )
    forced = generation.forced_bos_token_id
    return (first,) if forced is None else (first, forced)


def _first_set(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
