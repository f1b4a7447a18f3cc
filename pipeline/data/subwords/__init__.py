"""Subword models of prepared data: they cut text into subwords, and join subwords to text."""

from pipeline.data.subwords.bpe_codes import MosesBpeModel
from pipeline.data.subwords.models import (
    CODES_FILE,
    MODEL_FILE,
    SentencePieceModel,
    SubwordModel,
    detokenise,
    detokeniser,
    read_sentencepiece_model,
    read_subword_model,
)

__all__ = [
    "CODES_FILE",
    "MODEL_FILE",
    "MosesBpeModel",
    "SentencePieceModel",
    "SubwordModel",
    "detokenise",
    "detokeniser",
    "read_sentencepiece_model",
    "read_subword_model",
]
