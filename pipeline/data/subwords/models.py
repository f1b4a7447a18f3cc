"""The subword model of a prepared folder: a sentencepiece model or BPE codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pipeline.data.subwords.bpe_codes import MosesBpeModel
from pipeline.errors import DataError

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

MODEL_FILE = "units.model"  # the sentencepiece model of a prepared folder
CODES_FILE = "units.codes"  # BPE codes that were imported instead
_SPACE = "▁"


class SubwordModel(Protocol):
    """Cuts text of one language into subwords and joins subwords to text again."""

    def subwords(self, text: str) -> list[str]:
        """Cut a text into subwords."""

    def text(self, subwords: Sequence[str]) -> str:
        """Join subwords to detokenised text."""


class SentencePieceModel:
    """A serialised sentencepiece model, for text of any language."""

    def __init__(self, model: bytes) -> None:
        from sentencepiece import SentencePieceProcessor

        self._processor: SentencePieceProcessor = SentencePieceProcessor(model_proto=model)
        self.model = model

    def subwords(self, text: str) -> list[str]:
        """Cut a text into subwords. White space of any kind counts as a plain space."""
        subwords: list[str] = self._processor.encode(" ".join(text.split()), out_type=str)
        return subwords

    def text(self, subwords: Sequence[str]) -> str:
        """Join subwords to text."""
        return detokenise(subwords)

    def vocabulary(self) -> list[str]:
        """List the subwords in the model's order, without control symbols and <unk>."""
        processor = self._processor
        return [
            processor.id_to_piece(index)
            for index in range(processor.get_piece_size())
            if not processor.is_control(index) and not processor.is_unknown(index)
        ]

    def write(self, model: Path, vocabulary: Path) -> None:
        """Write the model, and its vocabulary with one subword per line."""
        model.write_bytes(self.model)
        text = "".join(f"{subword}\n" for subword in self.vocabulary())
        vocabulary.write_text(text, encoding="utf-8", newline="\n")


def read_subword_model(path: Path, language: str) -> SubwordModel:
    """Read the subword model of a prepared folder, for text of a language.

    Raises DataError if the file is neither a sentencepiece model nor a file of BPE codes.
    """
    if path.name == CODES_FILE:
        return MosesBpeModel(path, language)
    return read_sentencepiece_model(path)


def read_sentencepiece_model(path: Path) -> SentencePieceModel:
    """Read a sentencepiece model; raises DataError if the file is not one."""
    try:
        return SentencePieceModel(path.read_bytes())
    except RuntimeError as error:
        raise DataError(
            f"{path}: not a sentencepiece model ({error}). Set data.units.sentencepiece to one."
        ) from None


def detokeniser(path: Path, language: str) -> Callable[[Sequence[str]], str]:
    """Return the function that joins the subwords of a prepared folder's model to text."""
    if path.name == CODES_FILE:
        return read_subword_model(path, language).text
    return detokenise  # the same for every sentencepiece model


def detokenise(subwords: Sequence[str]) -> str:
    """Join subwords of a sentencepiece model to text."""
    return "".join(subwords).replace(_SPACE, " ").strip()
