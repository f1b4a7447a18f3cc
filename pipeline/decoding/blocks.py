"""One decode job from a test set to a whole store, in bounded memory, going on where it stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipeline.decoding.beam import length_limit
from pipeline.decoding.dump import with_distributions
from pipeline.decoding.model import ScoringModel
from pipeline.decoding.posterior import NotANumberError, refuse_impossible
from pipeline.decoding.test_set import Dictionary, PreparedSentence, Sentence, batches
from pipeline.run.progress import Progress
from pipeline.run.settings import DecodeConfig, DumpConfig
from pipeline.store import Flag, Hypothesis, Store, StoreWriter, TokenStatistics, TopK, open_store
from pipeline.store.statistics import STATISTICS


@dataclass(frozen=True)
class Found:
    """What a store holds of one sentence."""

    hypotheses: list[Hypothesis]
    flag: int


def joined_blocks(paths: Sequence[Path]) -> Iterator[Found]:
    """Sentence by sentence what stores hold, one store after the other."""
    for path in paths:
        with open_store(path) as store:
            yield from read_hypotheses(store)


def read_hypotheses(store: Store) -> Iterator[Found]:
    """The hypotheses of every sentence, as they were written; whole distributions one by one."""
    columns = {name: store.read(f"/token/{name}") for name in ("id", *STATISTICS)}
    rows = {name: store.read(f"/hypothesis/{name}") for name in ("text", "score", "finished")}
    members = store.read("/hypothesis/member")
    token_offset = store.read("/hypothesis/token_offset")
    first_last = zip(store.hypothesis_offset[:-1], store.hypothesis_offset[1:], strict=True)
    for (first, last), flag in zip(first_last, store.flag, strict=True):
        hypotheses = []
        for place in range(first, last):
            start, stop = token_offset[place], token_offset[place + 1]
            hypotheses.append(
                Hypothesis(
                    columns["id"][start:stop],
                    str(rows["text"][place]),
                    float(rows["score"][place]),
                    bool(rows["finished"][place]),
                    TokenStatistics(*(columns[name][start:stop] for name in STATISTICS)),
                    int(members[place]),
                    store.read("/token/full_logprob", start, stop)
                    if store.has("/token/full_logprob")
                    else None,
                    _topk(store, start, stop),
                )
            )
        yield Found(hypotheses, int(flag))


def _topk(store: Store, start: int, stop: int) -> TopK | None:
    names = ("topk_id", "topk_logprob", "tail_logprob")
    if not store.has("/token/topk_id"):
        return None
    return TopK(*(store.read(f"/token/{name}", start, stop) for name in names))


# <s>, <pad> and </s> of fairseq's dictionaries, which no text shows.
_CONTROL_IDS = (0, 1, 2)

Search = Callable[[Any, Sequence[Sentence], str, DecodeConfig], Sequence[Sequence[Hypothesis]]]


@dataclass(frozen=True)
class Decoder:
    """What turns sentences into hypotheses: vocabularies, models, a search and its settings.

    detokenise: what puts the units of a hypothesis together. has_length_limit: whether hypotheses
    were found under `length_limit`, not given from outside.
    """

    source_dictionary: Dictionary
    target_dictionary: Dictionary
    model: ScoringModel
    search: Search
    decode: DecodeConfig
    dump: DumpConfig
    detokenise: Callable[[Sequence[str]], str]
    has_length_limit: bool = True


@dataclass(frozen=True)
class Block:
    """A run of sentences that are decoded into a store of their own."""

    path: Path
    sentences: slice


def block_plan(folder: Path, n_sentence: int, part_sentences: int) -> list[Block]:
    """The blocks of a decode: so many sentences each, in stores in `folder`."""
    return [
        Block(folder / f"block_{place:06d}.h5", slice(start, start + part_sentences))
        for place, start in enumerate(range(0, n_sentence, part_sentences))
    ]


def decode_blocks(
    decoder: Decoder,
    test_set: Sequence[PreparedSentence],
    blocks: Sequence[Block],
    attributes: dict[str, Any],
    title: str,
    row: int = 0,
) -> None:
    """Find the hypotheses of the sentences of those blocks that are missing.

    attributes: root attributes of the store, `regime` and `combination` among them; title and
    row: of the progress bar. A sentence whose source is empty or longer than the models' positions
    (a target to be scored likewise) is a flagged row without hypotheses. NO_FINISHED_HYPOTHESIS is
    set where no hypothesis ended before the length limit. Raises DataError, naming task, set,
    sentence, member and statistic, for a number that is NaN or out of its range.

    Batches never cross blocks, so that an interrupted run ends with the bytes of an undisturbed
    one.
    """
    missing = [block for block in blocks if not block.path.exists()]
    n_sentence = sum(len(range(len(test_set))[block.sentences]) for block in missing)
    with Progress(n_sentence, title, row) as shown:
        for block in missing:
            block.path.parent.mkdir(parents=True, exist_ok=True)
            for left_over in block.path.parent.glob(f".{block.path.name}.*.writing"):
                left_over.unlink()
            _decode_block(decoder, test_set[block.sentences], block.path, attributes, shown)


def join_blocks(
    test_set: Sequence[PreparedSentence],
    blocks: Sequence[Block],
    path: Path,
    attributes: dict[str, Any],
) -> None:
    """Write what blocks hold as one store; a single block is that store."""
    if len(blocks) == 1:
        shutil.move(blocks[0].path, path)
        return
    with StoreWriter(path, **attributes) as store:
        found_of_each = joined_blocks([block.path for block in blocks])
        for place, (sentence, found) in enumerate(zip(test_set, found_of_each, strict=True)):
            store.add_sentence(
                place, sentence.source, sentence.reference, found.hypotheses, found.flag
            )


def _decode_block(
    decoder: Decoder,
    block: Sequence[PreparedSentence],
    path: Path,
    attributes: dict[str, Any],
    shown: Progress,
) -> None:
    """Decode one block into a store of its own, in which its sentences count from 0."""
    model, decode, regime = decoder.model, decoder.decode, attributes["regime"]
    sentences = [_encoded(decoder, one) for one in block]
    flags = [_input_flag(one, model, regime) for one in sentences]
    fine = [one for one, flag in zip(sentences, flags, strict=True) if not flag]
    shown.advance(len(sentences) - len(fine))
    found: dict[int, Sequence[Hypothesis]] = {}
    for batch in batches(fine, decode.batch_sentences):
        try:
            hypotheses = decoder.search(model, batch, attributes["combination"], decode)
        except NotANumberError as error:
            raise error.named(attributes) from None
        found |= {one.id: best for one, best in zip(batch, hypotheses, strict=True)}
        shown.advance(len(batch))
    hypotheses_of_each = with_distributions(
        model,
        sentences,
        [found.get(one.id, ()) for one in sentences],
        decoder.dump,
        decode.batch_sentences,
    )
    rows = zip(block, sentences, flags, hypotheses_of_each, strict=True)
    limited = decoder.has_length_limit and regime != "teacher_forcing"
    with StoreWriter(path, **attributes) as store:
        for place, (prepared, sentence, flag, best) in enumerate(rows):
            refuse_impossible(best, sentence.id, attributes)
            best = [_with_text(decoder, one) for one in best]
            if best and limited:
                flag |= _search_flag(best, length_limit(sentence.source, model, decode))
            store.add_sentence(place, prepared.source, prepared.reference, best, flag)


def _encoded(decoder: Decoder, sentence: PreparedSentence) -> Sentence:
    return sentence.encoded(decoder.source_dictionary, decoder.target_dictionary)


def _input_flag(sentence: Sentence, model: ScoringModel, regime: str) -> int:
    if sentence.is_empty:
        return Flag.EMPTY_SOURCE
    target = sentence.target if regime == "teacher_forcing" else None
    if len(sentence.source) > model.max_source_tokens:
        return Flag.TOO_LONG
    return Flag.TOO_LONG if target and len(target) > model.max_target_tokens else Flag(0)


def _search_flag(hypotheses: Sequence[Hypothesis], limit: int) -> int:
    ended = any(one.finished and len(one.token_id) <= limit for one in hypotheses)
    return Flag(0) if ended else Flag.NO_FINISHED_HYPOTHESIS


def _with_text(decoder: Decoder, hypothesis: Hypothesis) -> Hypothesis:
    symbols = decoder.target_dictionary.symbols
    pieces = [symbols[one] for one in hypothesis.token_id if one not in _CONTROL_IDS]
    return replace(hypothesis, text=decoder.detokenise(pieces))
