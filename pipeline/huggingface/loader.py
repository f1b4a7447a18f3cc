"""Load Hugging Face models as members, and their tokenizers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pipeline.errors import DataError, MachineError
from pipeline.huggingface import import_transformers
from pipeline.huggingface.adapters import adapted_model
from pipeline.huggingface.causal import CausalMember
from pipeline.huggingface.dropout_masks import fold_dropout
from pipeline.huggingface.encoder_decoder import EncoderDecoderMember, SpeechMember
from pipeline.huggingface.folder import SPEECH_MODELS
from pipeline.huggingface.speech import SpeechTokenizer
from pipeline.huggingface.tokenizer import HuggingFaceTokenizer


def load_tokenizer(member: Any) -> HuggingFaceTokenizer:
    """The tokenizer of a member, from the settings in its description.

    That of the first member cuts texts, and encodes audio, for all members of an ensemble.
    """
    model: Mapping[str, Any] = member.description["model"]
    settings = model["settings"]
    languages = settings["source_language"], settings["target_language"]
    is_speech = model["_name"] in SPEECH_MODELS
    tokenizer = SpeechTokenizer if is_speech else HuggingFaceTokenizer
    return tokenizer(Path(member.description["folder"]), settings["prompt"], languages)


def load(
    member: Any, tokenizer: HuggingFaceTokenizer, device: str, dtype: str
) -> EncoderDecoderMember | CausalMember:
    """Load the model of a `Member` from its folder, with its adapter or dropout mask if it has one.

    Raises MachineError if there is no such device, DataError if weights are missing, if an adapter
    does not fit, or if the model has another number of tokens than its configuration; ConfigError
    if dropout masks are not known for the model.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise MachineError("decode.device: this machine has no GPU (got cuda). Set it to cpu.")
    transformers = import_transformers()
    folder = Path(member.description["folder"])
    config = tokenizer.config
    wrap: Any = EncoderDecoderMember
    if isinstance(tokenizer, SpeechTokenizer):
        tokenizer.check_same_input(load_tokenizer(member))
        auto, wrap = transformers.AutoModelForSpeechSeq2Seq, SpeechMember
    elif config.is_encoder_decoder:
        auto = transformers.AutoModelForSeq2SeqLM
    else:
        auto, wrap = transformers.AutoModelForCausalLM, CausalMember

    def load_model() -> Any:
        return _pretrained(auto, folder, dtype).to(device)

    adapter = member.description["adapter"]
    if adapter is None:
        model = load_model()
    else:
        model = adapted_model((str(folder), device, dtype), load_model, Path(adapter))
    if member.mask is not None:
        fold_dropout(model, member.mask.rate, member.mask.seed)
    loaded = wrap(model, tokenizer.tokens)
    if loaded.vocab_size != tokenizer.vocab_size:
        raise DataError(
            f"{folder}: config.json has {tokenizer.vocab_size} tokens, but the model has "
            f"{loaded.vocab_size}. Save it again with save_pretrained."
        )
    result: EncoderDecoderMember | CausalMember = loaded
    return result


def _pretrained(auto: Any, folder: Path, dtype: str) -> Any:
    """The model in a folder. Raises DataError if weights are missing."""
    model, info = auto.from_pretrained(
        folder,
        dtype=getattr(torch, dtype),
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    missing = sorted(info["missing_keys"])
    if missing:
        raise DataError(
            f"{folder}: weights are missing ({', '.join(missing[:3])}; {len(missing)} in all). "
            f"Give the model that its config.json describes."
        )
    return model
