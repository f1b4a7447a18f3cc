"""Decode a test set block by block, in bounded memory, and join the blocks to one store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.decoding.beam import length_limit
from pipeline.decoding.model import ScoringModel, Search, target_limit
from pipeline.decoding.posterior import NanLogprobError, sentence_place
from pipeline.decoding.scoring import with_distributions
from pipeline.decoding.test_set import PreparedSentence, Sentence, batches
from pipeline.decoding.tokenizer import Tokenizer
from pipeline.errors import DataError
from pipeline.run.progress import Progress
from pipeline.run.settings import DecodeConfig, DumpConfig
from pipeline.store import Flag, Hypothesis, StoreWriter, open_own_store, read_hypotheses
from pipeline.store.schema import value_range
from pipeline.store.statistics import STATISTICS


@dataclass(frozen=True)
class Decoder:
    """Everything that turns sentences into hypotheses: tokenizer, models, search, settings.

    has_length_limit: whether `length_limit` applied when the hypotheses were found; it does not
    apply to hypotheses from a text file.
    """

    tokenizer: Tokenizer
    model: ScoringModel
    search: Search
    decode: DecodeConfig
    dump: DumpConfig
    has_length_limit: bool = True


@dataclass(frozen=True)
class Block:
    """Consecutive sentences that are decoded and written together, to a store of their own."""

    path: Path
    sentences: slice


def block_plan(folder: Path, n_sentence: int, block_sentences: int) -> list[Block]:
    """Divide a test set into blocks of `block_sentences`, whose stores are in `folder`."""
    return [
        Block(folder / f"block_{index:06d}.h5", slice(start, start + block_sentences))
        for index, start in enumerate(range(0, n_sentence, block_sentences))
    ]


def decode_blocks(
    decoder: Decoder,
    test_set: Sequence[PreparedSentence],
    blocks: Sequence[Block],
    attributes: dict[str, Any],
    title: str,
    row: int = 0,
) -> None:
    """Decode the blocks whose stores do not exist yet.

    attributes: root attributes of the store, with `regime` and `combination`. title, row: of the
    progress bar. A sentence with an empty source, or with a source (in teacher forcing: target)
    that is longer than the models allow, is flagged and has no hypotheses. NO_FINISHED_HYPOTHESIS
    is set if no hypothesis finished before the length limit. Raises DataError naming task, test
    set, sentence and member if a statistic is NaN or out of range.

    Batches never cross blocks, so that a resumed run writes the same bytes as an uninterrupted one.
    """
    missing = [block for block in blocks if not block.path.exists()]
    n_sentence = sum(len(range(len(test_set))[block.sentences]) for block in missing)
    with Progress(n_sentence, title, row) as progress:
        for block in missing:
            block.path.parent.mkdir(parents=True, exist_ok=True)
            for partial_file in block.path.parent.glob(f".{block.path.name}.*.writing"):
                partial_file.unlink()
            _decode_block(decoder, test_set[block.sentences], block.path, attributes, progress)


def join_blocks(
    test_set: Sequence[PreparedSentence],
    blocks: Sequence[Block],
    path: Path,
    attributes: dict[str, Any],
) -> None:
    """Write the sentences of all blocks to one store; the store of a single block is moved."""
    if len(blocks) == 1:
        shutil.move(blocks[0].path, path)
        return
    with StoreWriter(path, **attributes) as joined:
        for block in blocks:
            first = block.sentences.start
            with open_own_store(block.path) as store:
                prepared = test_set[block.sentences]
                rows = zip(prepared, read_hypotheses(store), store.flag, strict=True)
                for index, (sentence, hypotheses, flag) in enumerate(rows, first):
                    _add(joined, index, sentence, hypotheses, int(flag))


def _decode_block(
    decoder: Decoder,
    block: Sequence[PreparedSentence],
    path: Path,
    attributes: dict[str, Any],
    progress: Progress,
) -> None:
    """Decode one block into a store of its own, in which its sentences count from 0."""
    model, decode, regime = decoder.model, decoder.decode, attributes["regime"]
    sentences = [sentence.encoded(decoder.tokenizer) for sentence in block]
    flags = [_input_flag(sentence, model, regime) for sentence in sentences]
    decodable = [sentence for sentence, flag in zip(sentences, flags, strict=True) if not flag]
    progress.advance(len(sentences) - len(decodable))
    hypotheses_of: dict[int, Sequence[Hypothesis]] = {}
    for batch in batches(decodable, decode.batch_sentences):
        try:
            hypotheses = decoder.search(model, batch, attributes["combination"], decode)
        except NanLogprobError as error:
            raise error.with_names(attributes) from None
        for sentence, best in zip(batch, hypotheses, strict=True):
            hypotheses_of[sentence.id] = best
        progress.advance(len(batch))
    with_dump = with_distributions(
        model,
        sentences,
        [hypotheses_of.get(sentence.id, ()) for sentence in sentences],
        decoder.dump,
        decode,
    )
    rows = zip(block, sentences, flags, with_dump, strict=True)
    limited = decoder.has_length_limit and regime != "teacher_forcing"
    with StoreWriter(path, **attributes) as store:
        for index, (prepared, sentence, flag, best) in enumerate(rows):
            reject_out_of_range(best, sentence.id, attributes)
            best = [
                replace(hypothesis, text=decoder.tokenizer.text(hypothesis.token_id.tolist()))
                for hypothesis in best
            ]
            if best and limited:
                flag |= _search_flag(best, length_limit(sentence.source, model, decode))
            _add(store, index, prepared, best, flag)


def _add(
    store: StoreWriter,
    index: int,
    prepared: PreparedSentence,
    hypotheses: Sequence[Hypothesis],
    flag: int,
) -> None:
    """Append a prepared sentence with its hypotheses to a store."""
    names = {"group": prepared.group, "original": prepared.original}
    store.add_sentence(index, prepared.source, prepared.reference, hypotheses, flag, **names)


def reject_out_of_range(
    hypotheses: Sequence[Hypothesis], sentence_id: int, attributes: Mapping[str, Any]
) -> None:
    """Raise DataError if a statistic is NaN or out of its range.

    The message names task, test set, sentence, hypothesis, token, member and statistic; attributes:
    those of the store.
    """
    members = attributes.get("members")
    for rank, hypothesis in enumerate(hypotheses):
        for name in STATISTICS:
            values = np.asarray(getattr(hypothesis.statistics, name))
            # The ranges of statistics do not depend on the number of members or the combination.
            allowed = value_range(f"/token/{name}", 1, attributes["vocab_size"], "")
            wrong = ~((values >= allowed.lowest) & (values <= allowed.highest))
            if wrong.any():
                token, *member = map(int, np.argwhere(wrong)[0])
                where = f"{sentence_place(attributes, sentence_id)}, hypothesis {rank}"
                where += f", token {token}"
                for index in member:
                    where += f", member {members[index] if members else index}"
                raise DataError(
                    f"{where}: {name} {allowed.rule} (got {float(values[token, *member]):.6g}). "
                    f"Check the search and the models."
                )


def _input_flag(sentence: Sentence, model: ScoringModel, regime: str) -> int:
    if sentence.is_empty:
        return Flag.EMPTY_SOURCE
    target = sentence.target if regime == "teacher_forcing" else None
    if len(sentence.source) > model.max_source_tokens:
        return Flag.TOO_LONG
    limit = target_limit(sentence.source, model)
    return Flag.TOO_LONG if target and len(target) > limit else Flag(0)


def _search_flag(hypotheses: Sequence[Hypothesis], limit: int) -> int:
    finished = any(
        hypothesis.finished and len(hypothesis.token_id) <= limit for hypothesis in hypotheses
    )
    return Flag(0) if finished else Flag.NO_FINISHED_HYPOTHESIS
