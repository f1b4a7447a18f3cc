"""Hugging Face models for use from Python, without stages and without their settings files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.model import EnsembleModel
from pipeline.decoding.test_set import PreparedSentence, Sentence
from pipeline.decoding.tokenizer import Tokenizer
from pipeline.ensembles import load_member, load_tokenizer
from pipeline.ensembles.ensemble import check_ensembles
from pipeline.ensembles.kinds import huggingface
from pipeline.errors import DataError
from pipeline.run.settings import CONF, EnsembleConfig


def huggingface_ensemble(
    models: Sequence[str | Path], device: str = "cpu", dtype: str = "float32", **settings: Any
) -> tuple[EnsembleModel, Tokenizer]:
    """Load models from folders as one ensemble, with their tokenizer.

    settings: those of `ensemble.settings` in conf/ensemble/huggingface.yaml, such as prompt. Raises
    ConfigError for a setting that does not exist or does not fit, DataError if a model cannot be
    read or its tokenizer differs from that of the first one.
    """
    defaults = OmegaConf.to_container(OmegaConf.load(CONF / "ensemble" / "huggingface.yaml"))
    assert isinstance(defaults, dict)
    own = defaults["settings"] | {"seed": 0, "models": [*map(str, models)]} | settings
    config = EnsembleConfig(defaults["name"], defaults["_target_"], [], own)
    (ensemble,) = huggingface(Path(), config)
    check_ensembles(config.name, [ensemble], [])
    tokenizer = load_tokenizer(ensemble)
    members = [load_member(member, tokenizer, device, dtype) for member in ensemble.members]
    return as_ensemble(members), tokenizer


def sentences_of(
    texts: Sequence[str], tokenizer: Tokenizer, references: Sequence[str] | None = None
) -> list[Sentence]:
    """Texts as the sentences of a batch, with references if these are to be scored.

    Raises DataError if a text is blank.
    """
    given = [None] * len(texts) if references is None else references
    sentences = [
        PreparedSentence(index, text, reference, [], None).encoded(tokenizer)
        for index, (text, reference) in enumerate(zip(texts, given, strict=True))
    ]
    for sentence in sentences:
        if sentence.is_empty:
            raise DataError(f"text {sentence.id}: is blank. Leave it out.")
    return sentences
