"""Between texts and the token ids of models: the interface, and the subwords of stage prepare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.data.speech.waveforms import WaveformFile
from pipeline.decoding.test_set import Dictionary, PreparedSentence, Source, token_ids
from pipeline.errors import DataError


class Tokenizer(Protocol):
    """What cuts the text of a test set for the members of an ensemble, and joins hypotheses."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens of the target vocabulary."""

    @property
    def pieces(self) -> list[str]:
        """The piece of text of every token id of the target vocabulary, with ▁ for spaces."""

    @property
    def eos(self) -> int:
        """Token id of EOS."""

    @property
    def control(self) -> Sequence[int]:
        """Token ids that are no part of a text."""

    def source(self, sentence: PreparedSentence) -> Source:
        """What the model encodes: token ids with control tokens, or frames; [] for an empty text"""

    def target(self, sentence: PreparedSentence) -> list[int] | None:
        """The reference as token ids without start symbols, with EOS; None if there is none."""

    def target_of_text(self, text: str) -> list[int]:
        """A text of the target side as token ids, with EOS; [] if it has no token."""

    def text(self, token_id: Sequence[int]) -> str:
        """Token ids of a hypothesis as detokenised text, without control tokens."""


@dataclass(frozen=True)
class SubwordTokenizer:
    """A `Tokenizer` for sentences that stage prepare has cut into subwords.

    detokenise joins subwords to text; cut is its inverse, for hypotheses from a text file. The
    control tokens of `target_dictionary` are those of fairseq.
    """

    source_dictionary: Dictionary
    target_dictionary: Dictionary
    detokenise: Callable[[Sequence[str]], str]
    cut: Callable[[str], Sequence[str]] = str.split

    @property
    def vocab_size(self) -> int:
        """Number of tokens of the target vocabulary."""
        return len(self.target_dictionary)

    @property
    def pieces(self) -> list[str]:
        """The subword of every token id."""
        return self.target_dictionary.symbols

    @property
    def eos(self) -> int:
        """Token id of EOS."""
        return int(self.target_dictionary.eos())

    @property
    def control(self) -> Sequence[int]:
        """Token ids of `<s>`, padding and EOS."""
        dictionary = self.target_dictionary
        return [int(token) for token in (dictionary.bos(), dictionary.pad(), dictionary.eos())]

    def source(self, sentence: PreparedSentence) -> Source:
        """Token ids with EOS, or the frames of an utterance.

        Raises DataError if waveforms were prepared instead of frames.
        """
        if isinstance(sentence.utterances, WaveformFile):
            raise DataError(
                f"{sentence.utterances.path}: has waveforms, for models that compute features of "
                f"their own. Run python -m stages.prepare with data/units=learnt."
            )
        if sentence.utterances is not None:
            return sentence.utterances.features(sentence.id)
        return self._ids(sentence.source_subwords, self.source_dictionary)

    def target(self, sentence: PreparedSentence) -> list[int] | None:
        """The reference as token ids with EOS; an empty one is EOS only."""
        subwords = sentence.reference_subwords
        return None if subwords is None else token_ids(subwords, self.target_dictionary)

    def target_of_text(self, text: str) -> list[int]:
        """A text as token ids with EOS."""
        return self._ids(self.cut(text), self.target_dictionary)

    def text(self, token_id: Sequence[int]) -> str:
        """Join the subwords of a hypothesis."""
        control, symbols = {*self.control}, self.pieces
        return self.detokenise([symbols[token] for token in token_id if token not in control])

    def _ids(self, subwords: Sequence[str], dictionary: Dictionary) -> list[int]:
        return token_ids(subwords, dictionary) if subwords else []
