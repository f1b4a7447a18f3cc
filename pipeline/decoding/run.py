"""One decode job from a test set to a whole store, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.config import DecodeConfig, DumpConfig
from pipeline.data.units import detokenise
from pipeline.decoding.beam import length_limit
from pipeline.decoding.dump import with_distributions
from pipeline.decoding.model import EnsembleModel
from pipeline.decoding.sentence import Sentence, batches
from pipeline.decoding.test_set import Dictionary, PreparedSentence
from pipeline.progress import progress
from pipeline.store import Flag, Hypothesis, StoreWriter

# Sentences of which some may wait in memory for one with a smaller id: the longest come first.
_WINDOW_SENTENCES = 2048
# <s>, <pad> and </s> of fairseq's dictionaries, which no text shows.
_CONTROL_IDS = (0, 1, 2)

Search = Callable[
    [EnsembleModel, Sequence[Sentence], str, DecodeConfig], Sequence[Sequence[Hypothesis]]
]


@dataclass(frozen=True)
class Decoder:
    """What turns sentences into hypotheses: vocabularies, models, a search and its settings."""

    source_dictionary: Dictionary
    target_dictionary: Dictionary
    model: EnsembleModel
    search: Search
    decode: DecodeConfig
    dump: DumpConfig


def decode_to_store(
    decoder: Decoder,
    test_set: Sequence[PreparedSentence],
    path: Path,
    attributes: dict[str, Any],
    title: str,
    row: int = 0,
) -> None:
    """Find the hypotheses of every sentence and write them, in the order of ids, to a store.

    attributes: root attributes of the store, `regime` and `combination` among them; title and
    row: of the progress bar. A sentence whose source is empty or longer than the models' positions
    (a target to be scored likewise) is a flagged row without hypotheses. NO_FINISHED_HYPOTHESIS is
    set where no hypothesis ended before the length limit.
    """
    model, decode = decoder.model, decoder.decode
    dictionaries = (decoder.source_dictionary, decoder.target_dictionary)
    sentences = [one.encoded(*dictionaries) for one in test_set]
    flags = [_input_flag(one, model, attributes["regime"]) for one in sentences]
    plan = [
        batch
        for start in range(0, len(sentences), _WINDOW_SENTENCES)
        for batch in batches(
            [one for one in sentences[start : start + _WINDOW_SENTENCES] if not flags[one.id]],
            decode.batch_sentences,
        )
    ]
    found: dict[int, Sequence[Hypothesis]] = {one.id: () for one in sentences if flags[one.id]}
    with StoreWriter(path, **attributes) as store:
        due = 0
        # The empty last batch writes what needs no search when nothing else is left.
        for batch in progress([*plan, []], len(plan) + 1, title, row):
            if batch:
                hypotheses = decoder.search(model, batch, attributes["combination"], decode)
                found |= {one.id: best for one, best in zip(batch, hypotheses, strict=True)}
            while due in found:
                source, flag = sentences[due].source, flags[due]
                best = with_distributions(model, source, found.pop(due), decoder.dump)
                best = [_with_text(one, decoder.target_dictionary) for one in best]
                if best and attributes["regime"] != "teacher_forcing":
                    flag |= _search_flag(best, length_limit(source, model, decode))
                store.add_sentence(due, test_set[due].source, test_set[due].reference, best, flag)
                due += 1


def _input_flag(sentence: Sentence, model: EnsembleModel, regime: str) -> int:
    if len(sentence.source) == 1:
        return Flag.EMPTY_SOURCE
    target = sentence.target if regime == "teacher_forcing" else None
    if len(sentence.source) > model.max_source_tokens:
        return Flag.TOO_LONG
    return Flag.TOO_LONG if target and len(target) > model.max_target_tokens else Flag(0)


def _search_flag(hypotheses: Sequence[Hypothesis], limit: int) -> int:
    ended = any(one.finished and len(one.token_id) <= limit for one in hypotheses)
    return Flag(0) if ended else Flag.NO_FINISHED_HYPOTHESIS


def _with_text(hypothesis: Hypothesis, dictionary: Dictionary) -> Hypothesis:
    words = [dictionary.symbols[one] for one in hypothesis.token_id if one not in _CONTROL_IDS]
    return replace(hypothesis, text=detokenise(words))
