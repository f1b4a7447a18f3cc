"""Write a speech corpus as features (or waveforms), target tokens and rows of a test set."""

from __future__ import annotations

import json
import logging
import string
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pipeline.data.speech.audio import (
    FAULTS,
    NOTES,
    Audio,
    FeatureSettings,
    features,
    read_audio,
    writing_features,
)
from pipeline.data.speech.corpus import NOT_SCORED, SpeechCorpus, Utterance
from pipeline.data.speech.sounds import writing_sounds
from pipeline.data.speech.waveforms import Waveform, count_frames, writing_waveforms
from pipeline.data.subwords import SentencePieceModel
from pipeline.data.task_subwords import Words, learn_subwords, learn_words
from pipeline.data.text.test_sets import Row
from pipeline.errors import DataError
from pipeline.run.progress import progress
from pipeline.run.settings import SpeechDataConfig

REQUIRED_CHARACTERS = string.ascii_lowercase + string.digits + "'"
# fairseq's dictionary begins with four special symbols; the last of them is <unk>.
_FIRST_SUBWORD_ID, _UNKNOWN_ID = 4, 3
_NO_TRANSCRIPT = "no_transcript"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpeechRow(Row):
    """One utterance of a test set, without source subwords. `n_frame` is 0 for faulty audio."""

    n_frame: int


@dataclass(frozen=True)
class PreparedSet:
    """The size of a written set, as in the paper's table of speech corpora, and its faults.

    `n_text` counts distinct transcripts, and is None without transcripts. `n_group` is None if the
    group of an utterance is not known. `faults`: source -> one of FAULTS, 'no_transcript', or the
    reason why a reader left it out.
    """

    corpus: SpeechCorpus
    name: str
    hours: float
    n_utterance: int
    words_per_utterance: float | None
    n_text: int | None
    n_group: int | None
    counts: dict[str, int]
    faults: dict[str, str]
    samples: list[Utterance]


def learn_speech_subwords(speech: SpeechDataConfig, corpus: SpeechCorpus) -> SentencePieceModel:
    """Learn the subwords of a corpus' transcripts; raises DataError if it has none."""
    texts = [utterance.reference for utterance in corpus.utterances if utterance.reference]
    if not texts:
        raise DataError(
            f"{corpus.folder}: no transcripts. Set data.speech.train to a corpus with transcripts."
        )
    if speech.unit_kind == "word":
        return learn_words(texts)
    size_key = "data.speech.vocabulary_size"
    return learn_subwords(
        texts, speech.vocabulary_size, size_key, REQUIRED_CHARACTERS, speech.unit_kind
    )


def write_training_set(
    path: Path, name: str, corpus: SpeechCorpus, speech: SpeechDataConfig, model: SentencePieceModel
) -> PreparedSet:
    """Write features and target tokens of the utterances that can be trained on.

    Utterances without transcript or with faulty audio are left out, and recorded as faults. Raises
    DataError if no utterance remains.
    """
    token_id = _token_ids(model)
    settings = FeatureSettings(speech.sampling_rate_hz, speech.feature_bins)
    tally = _Tally(corpus, name)
    with writing_features(path, settings, with_tokens=True) as file:
        for utterance, audio in _read(corpus, speech, name):
            tally.note(utterance, audio)
            if audio.fault is None and utterance.reference:
                subwords = model.subwords(utterance.reference)
                frames = features(audio.samples, settings)
                file.add(frames, [token_id(subword) for subword in subwords])
                tally.keep(utterance, len(audio.samples) / speech.sampling_rate_hz, len(frames))
            elif audio.fault is None:
                tally.faults[utterance.source] = _NO_TRANSCRIPT
    return tally.result()


def write_test_set(
    folder: Path,
    name: str,
    corpus: SpeechCorpus,
    speech: SpeechDataConfig,
    model: SentencePieceModel | Words,
    *,
    keep_sound: bool = False,
) -> PreparedSet:
    """Write {name}.h5 and {name}.jsonl, with a row for every utterance.

    With `Words`, {name}.h5 holds waveforms, of which the models compute their own features. With
    `keep_sound`, {name}.sounds.h5 holds the utterances as MP3, for the report.

    Groups are named after the corpus, so that no other corpus has them unless it says so. Originals
    are named after the set and the number of the row, because two speakers may talk in the same
    segment. Faulty audio has no frames. Raises DataError if all audio is faulty.
    """
    has_own_models = isinstance(model, Words)
    vocabulary = None if isinstance(model, Words) else set(model.vocabulary())
    groups_of = corpus.groups_of or corpus.name
    tally = _Tally(corpus, name)
    path = folder / f"{name}.jsonl"
    sounds: AbstractContextManager[Callable[[Waveform], None]] = nullcontext(lambda samples: None)
    if keep_sound:
        sounds = writing_sounds(folder / f"{name}.sounds.h5", speech.sampling_rate_hz)
    with (
        _writing_sound(folder / f"{name}.h5", speech, has_own_models) as write,
        path.open("w", encoding="utf-8", newline="\n") as rows,
        sounds as add_sound,
    ):
        for number, (utterance, audio) in enumerate(_read(corpus, speech, name)):
            tally.note(utterance, audio)
            samples = audio.samples if audio.fault is None else audio.samples[:0]
            n_frame = write(samples)
            add_sound(samples)
            if audio.fault is None:
                tally.keep(utterance, len(audio.samples) / speech.sampling_rate_hz, n_frame)
            reference = utterance.reference
            subwords = None if reference is None else model.subwords(reference)
            tally.counts["without_reference"] += reference is None
            if vocabulary is not None:
                tally.counts["unknown_reference_pieces"] += sum(
                    subword not in vocabulary for subword in subwords or []
                )
            row = SpeechRow(
                number,
                utterance.source,
                reference,
                source_pieces=[],
                reference_pieces=subwords,
                group=None if utterance.group is None else f"{groups_of}:{utterance.group}",
                original=f"{name}:{number}",
                n_frame=n_frame,
            )
            rows.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
    return tally.result()


@contextmanager
def _writing_sound(
    path: Path, speech: SpeechDataConfig, as_waveforms: bool
) -> Iterator[Callable[[Waveform], int]]:
    """Write the samples of utterances, or their features; the function returns their frames."""
    rate_hz = speech.sampling_rate_hz
    if as_waveforms:
        with writing_waveforms(path, rate_hz) as add:

            def write_waveform(samples: Waveform) -> int:
                add(samples)
                return count_frames(len(samples), rate_hz)

            yield write_waveform
        return
    settings = FeatureSettings(rate_hz, speech.feature_bins)
    with writing_features(path, settings, with_tokens=False) as file:

        def write_features(samples: Waveform) -> int:
            frames = np.zeros((0, settings.bins), dtype=np.float32)
            if len(samples):
                frames = features(samples, settings)
            file.add(frames)
            return len(frames)

        yield write_features


def _token_ids(model: SentencePieceModel) -> Callable[[str], int]:
    """Return the function from a subword to its id in the dictionary of the same vocabulary."""
    ids = {subword: number for number, subword in enumerate(model.vocabulary(), _FIRST_SUBWORD_ID)}
    return lambda subword: ids.get(subword, _UNKNOWN_ID)


def _read(
    corpus: SpeechCorpus, speech: SpeechDataConfig, name: str
) -> Iterator[tuple[Utterance, Audio]]:
    n_utterance = len(corpus.utterances)
    for utterance in progress(corpus.utterances, n_utterance, f"features of {name}"):
        audio = read_audio(
            corpus.folder / utterance.file,
            speech.sampling_rate_hz,
            utterance.start_seconds,
            utterance.end_seconds,
            utterance.channel,
        )
        seconds = len(audio.samples) / speech.sampling_rate_hz
        if audio.fault is None and seconds < speech.shortest_seconds:
            audio = audio._replace(fault="too_short")
        elif seconds > speech.longest_seconds:
            audio = audio._replace(fault="too_long")
        yield utterance, audio


class _Tally:
    """Counts of a set while it is written."""

    def __init__(self, corpus: SpeechCorpus, name: str) -> None:
        self.counts: Counter[str] = Counter(
            dict.fromkeys(
                ("utterances_read", *FAULTS, _NO_TRANSCRIPT, *NOTES, "utterances", "frames"), 0
            )
        )
        self.faults = dict(corpus.left_out)
        self._corpus, self._name = corpus, name
        self._seconds, self._words, self._n_reference = 0.0, 0, 0
        self._texts: set[str] = set()
        self._groups: set[str | None] = set()

    def note(self, utterance: Utterance, audio: Audio) -> None:
        """Count an utterance that was read, and what is unusual or wrong about its audio."""
        self.counts["utterances_read"] += 1
        self.counts.update(utterance.notes)
        self.counts.update(audio.notes)
        if audio.fault is not None:
            self.faults[utterance.source] = audio.fault

    def keep(self, utterance: Utterance, seconds: float, n_frame: int) -> None:
        """Count an utterance that has sound."""
        self.counts["utterances"] += 1
        self.counts["frames"] += n_frame
        self._seconds += seconds
        self._groups.add(utterance.group)
        if utterance.reference is not None:
            self._n_reference += 1
            self._texts.add(utterance.reference)
            self._words += len(utterance.reference.split())

    def result(self) -> PreparedSet:
        """Summarise the set; raises DataError if no utterance has sound."""
        n_utterance = self.counts["utterances"]
        self.counts.update(self.faults.values())
        if not n_utterance:
            raise DataError(
                f"{self._corpus.folder}: no utterance with sound for the {self._name} set of "
                f"{self._corpus.name} (of {self.counts['utterances_read']}). Give other speech."
            )
        if n_ignored := self.counts[NOT_SCORED]:
            _log.info(
                "%s: segments that the corpus excludes from scoring: %d", self._name, n_ignored
            )
        faults = [(file, reason) for file, reason in self.faults.items() if reason != NOT_SCORED]
        if faults:
            _log.warning(
                "%s: %d left out or without sound, the first is %s (%s)",
                self._name, len(faults), *faults[0],
            )  # fmt: skip
        return PreparedSet(
            self._corpus,
            self._name,
            self._seconds / 3600,
            n_utterance,
            self._words / self._n_reference if self._n_reference else None,
            len(self._texts) if self._n_reference else None,
            None if None in self._groups else len(self._groups),
            dict(self.counts),
            self.faults,
            self._corpus.utterances[:3],
        )
