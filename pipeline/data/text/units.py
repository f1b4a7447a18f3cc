"""Joint sub-word units: learn them, cut text into them, put text together again."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pipeline.errors import ConfigError, DataError

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


_CONTINUES = "@@"
_VERSION_MARK = "#version:"
_VERSIONS = ("0.1", "0.2")


class MosesBpeUnits:
    """Codes of subword-nmt or of fastBPE, for text of one language.

    Raises DataError, naming file and line, where the codes are of another form.
    """

    def __init__(self, codes: Path, language: str) -> None:
        from sacremoses import MosesDetokenizer, MosesTokenizer
        from subword_nmt.apply_bpe import BPE

        self._bpe = BPE(io.StringIO(_codes_of_subword_nmt(codes), newline="\n"))
        self._tokeniser = MosesTokenizer(language)
        self._detokeniser = MosesDetokenizer(language)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text; one that does not end its token has `@@` at its end."""
        tokens: str = self._tokeniser.tokenize(
            text, aggressive_dash_splits=True, return_str=True, escape=True
        )
        pieces: list[str] = self._bpe.segment_tokens(tokens.split(" "))
        return pieces

    def text(self, pieces: Sequence[str]) -> str:
        """The detokenised text that pieces stand for."""
        tokens = "".join(f"{piece} " for piece in pieces).replace(f"{_CONTINUES} ", "")
        text: str = self._detokeniser.detokenize(tokens.split())
        return text


def _codes_of_subword_nmt(path: Path) -> str:
    """The codes with their version in the first line; fastBPE's, which have counts, without them.

    A fastBPE code is one of version 0.2: the end of a word is marked in its last unit.
    """
    try:
        lines = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} must hold BPE codes in UTF-8: {error}") from None
    marked = lines[0].startswith(_VERSION_MARK)
    counted = not marked and _is_counted(lines[0].split(" "))
    version = "0.2" if counted else "0.1"
    if marked:
        version = lines[0].removeprefix(_VERSION_MARK).strip()
    if version not in _VERSIONS:
        raise DataError(
            f"{path}, line 1: BPE codes must be of version {' or '.join(_VERSIONS)}, got {version}"
        )
    merges = _merges(path, lines[marked:], 1 + marked, counted=counted)
    return "\n".join([f"{_VERSION_MARK} {version}", *merges])


def _merges(path: Path, lines: Sequence[str], first: int, *, counted: bool) -> Iterator[str]:
    for number, line in enumerate(lines, start=first):
        fields = line.strip("\r ").split(" ")
        if len(fields) != 2 + counted or (counted and not _is_counted(fields)) or "" in fields:
            what = "two units and their count" if counted else "two units"
            raise DataError(f"{path}, line {number}: a BPE code must be {what}, got {line!r}")
        yield " ".join(fields[:2])


def _is_counted(fields: Sequence[str]) -> bool:
    return len(fields) == 3 and fields[2].isdecimal()


MODEL_FILE = "units.model"  # of a prepared folder: a sentencepiece model
CODES_FILE = "units.codes"  # in its place: BPE codes of the user's own
_SPACE = "▁"
# Of longer text an even sample is enough, and all that sentencepiece keeps in memory.
_MOST_TEXTS = 4_000_000


class Units(Protocol):
    """What cuts text of one language into sub-word pieces, and puts pieces together again."""

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text."""

    def text(self, pieces: Sequence[str]) -> str:
        """The detokenised text that pieces stand for."""


class SentencePieceUnits:
    """A sentencepiece model as functions and a list; its pieces are of any language."""

    def __init__(self, model: bytes) -> None:
        from sentencepiece import SentencePieceProcessor

        self._processor: SentencePieceProcessor = SentencePieceProcessor(model_proto=model)
        self.model = model

    def pieces(self, text: str) -> list[str]:
        """The sub-word pieces of a text; white space of any kind is a plain space to the model."""
        pieces: list[str] = self._processor.encode(" ".join(text.split()), out_type=str)
        return pieces

    def text(self, pieces: Sequence[str]) -> str:
        """The text that pieces stand for."""
        return detokenise(pieces)

    def vocabulary(self) -> list[str]:
        """Every piece that stands for text, in the model's order; no control symbols."""
        processor = self._processor
        return [
            processor.id_to_piece(index)
            for index in range(processor.get_piece_size())
            if not processor.is_control(index) and not processor.is_unknown(index)
        ]

    def write(self, model: Path, vocabulary: Path) -> None:
        """Write the model, and its pieces one a line."""
        model.write_bytes(self.model)
        text = "".join(f"{piece}\n" for piece in self.vocabulary())
        vocabulary.write_text(text, encoding="utf-8", newline="\n")


def evenly(texts: Iterable[str], n_text: int, most: int = _MOST_TEXTS) -> Iterator[str]:
    """At most `most` of `n_text` texts, evenly spaced; all of them where there are no more."""
    step = max(1, math.ceil(n_text / most))
    # An even step would take one side only, where the sides of sentences stand in turn.
    return islice(texts, 0, None, step if step == 1 or step % 2 else step + 1)


def learn_units(
    texts: Iterable[str],
    vocabulary_size: int,
    key: str = "data.vocabulary_size",
    letters: str = "",
    kind: str = "bpe",
) -> SentencePieceUnits:
    """Units of `texts`, byte-pair ones or by a unigram model, the same bytes for the same texts.

    `kind` is bpe or unigram; `key` is the setting that the size is of. `letters` are units even
    where no text has them.
    Characters are kept as they are (no Unicode normalisation), so that pieces give the text back.
    `vocabulary_size` counts the three control symbols. Raises ConfigError where the texts are too
    few or too varied for it.
    """
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=(" ".join(text.split()) for text in texts),
            model_writer=model,
            model_type=kind,
            vocab_size=vocabulary_size,
            character_coverage=1.0,
            required_chars=letters,
            normalization_rule_name="identity",
            num_threads=1,
            shuffle_input_sentence=False,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2].strip()
        raise ConfigError(
            f"{key} must suit the training text, got {vocabulary_size}: {reason}"
        ) from None
    return SentencePieceUnits(model.getvalue())


def word_units(texts: Iterable[str]) -> SentencePieceUnits:
    """Every word of `texts` as one unit, the same bytes for the same texts."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=(" ".join(text.split()) for text in texts),
        model_writer=model,
        model_type="word",
        use_all_vocab=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        num_threads=1,
        shuffle_input_sentence=False,
        minloglevel=2,
    )
    return SentencePieceUnits(model.getvalue())


def read_units(path: Path, language: str) -> Units:
    """The units of a prepared folder's file, for text of a language.

    Raises DataError where it holds neither a sentencepiece model nor BPE codes.
    """
    return MosesBpeUnits(path, language) if path.name == CODES_FILE else read_sentencepieces(path)


def read_sentencepieces(path: Path) -> SentencePieceUnits:
    """The units of a sentencepiece model; DataError where the file is none."""
    try:
        return SentencePieceUnits(path.read_bytes())
    except RuntimeError as error:
        raise DataError(f"{path} must be a sentencepiece model: {error}") from None


def detokeniser(path: Path, language: str) -> Callable[[Sequence[str]], str]:
    """What puts pieces of such a file together; a sentencepiece model is not read for it."""
    return read_units(path, language).text if path.name == CODES_FILE else detokenise


def detokenise(pieces: Sequence[str]) -> str:
    """The text that pieces of sentencepiece stand for."""
    return "".join(pieces).replace(_SPACE, " ").strip()


def piece_counts(vocabulary: Sequence[str], sides: Iterable[Sequence[str]]) -> dict[str, int]:
    """Piece -> how often it stands in `sides`, for every piece of the vocabulary, in its order."""
    counts = Counter(piece for side in sides for piece in side)
    return {piece: counts[piece] for piece in vocabulary}
