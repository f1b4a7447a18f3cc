"""Decode one part: check its inputs, load its models, decode its blocks and join its store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.decoding.blocks import Block, Decoder, block_plan, decode_blocks, join_blocks
from pipeline.decoding.counts import Counts
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.inputs import Inputs, check_weights
from pipeline.decoding.model import MemberModel, Search
from pipeline.decoding.plan import Part, Shard, check_disk_space, part_size
from pipeline.decoding.posterior import NanLogprobError
from pipeline.decoding.rescoring import (
    SELF_CHECK_SENTENCES,
    HypothesisFile,
    hypotheses_of_file,
    hypotheses_of_search,
    rescoring_search,
    self_check,
)
from pipeline.decoding.scoring import score_in_chunks, score_targets
from pipeline.decoding.test_set import TestSetFile, read_test_set, unknown_subwords
from pipeline.decoding.tokenizer import SubwordTokenizer, Tokenizer
from pipeline.run.logs import DETAILS
from pipeline.run.settings import DecodeConfig, DumpConfig, implementation


def decode_part(inputs: Inputs, task: str, part: Part, store: Path, resume: Path, row: int) -> None:
    """Write the store of a part; shards may have decoded some of its blocks already.

    resume: the folder of its blocks, named by the digest of what the part is made from. Folders
    beside it, which belong to other settings, weights or code, are deleted. row: of the progress
    bar. Raises PipelineError if weights are not those that were written, if there is not enough
    disk space, or if the self-check fails.
    """
    for path in resume.parent.glob("*"):
        if path.name != resume.name:
            shutil.rmtree(path)
    test_set = read_test_set(inputs.prepared.test_set(part.test_set))
    attributes = inputs.attributes(task, part)
    blocks = block_plan(resume, len(test_set), inputs.decode.part_sentences)
    _decode_missing(inputs, part, test_set, blocks, attributes, row)
    join_blocks(test_set, blocks, store, attributes)
    shutil.rmtree(resume)
    DETAILS.info("%s: read %d sentences; wrote %s", part.name, len(test_set), Counts.of(store))


def decode_shard(
    inputs: Inputs, task: str, part: Part, shard: Shard, resume: Path, row: int
) -> None:
    """Decode the blocks of one shard of a part; arguments and errors as of `decode_part`."""
    test_set = read_test_set(inputs.prepared.test_set(part.test_set))
    blocks = block_plan(resume, len(test_set), inputs.decode.part_sentences)
    attributes = inputs.attributes(task, part)
    _decode_missing(inputs, part, test_set, shard.own(blocks), attributes, row)


def decoder_of(
    part: Part,
    load: Mapping[str, Callable[[], MemberModel]],
    search: Search,
    tokenizer: Tokenizer,
    decode: DecodeConfig,
    dump: DumpConfig,
    hypothesis_file: HypothesisFile | None,
) -> Decoder:
    """Build the decoder of a part.

    load: maps the name of a member to a function that loads it. hypothesis_file: the hypotheses to
    score instead of a search. Usually all members are in memory together. If hypotheses are given,
    or if `decode.search_members` says that the members do not fit, they score one at a time.
    """
    members = [load[name] for name in part.members]
    teacher_forcing = part.regime == "teacher_forcing"
    all_fit = not (decode.search_members or decode.hypotheses)
    if hypothesis_file is None and (all_fit or len(members) == 1):
        ensemble = as_ensemble([load_member() for load_member in members])
        own_search: Search = score_targets if teacher_forcing else search
        return Decoder(tokenizer, ensemble, own_search, decode, dump)
    model = MembersOneAtATime(members)
    if teacher_forcing:
        return Decoder(tokenizer, model, score_in_chunks, decode, dump)
    if hypothesis_file is not None:
        source = hypotheses_of_file(hypothesis_file, tokenizer, model.vocab_size)
    else:
        searching = as_ensemble([load[name]() for name in part.search_members])
        source = hypotheses_of_search(search, searching)
    limited = hypothesis_file is None or not hypothesis_file.is_text
    rescoring = rescoring_search(source)
    return Decoder(tokenizer, model, rescoring, decode, dump, limited)


def _decode_missing(
    inputs: Inputs,
    part: Part,
    test_set: TestSetFile,
    blocks: Sequence[Block],
    attributes: dict[str, Any],
    row: int,
) -> None:
    """Decode the blocks that are missing; if there are none, no model is loaded."""
    import torch

    torch.set_num_threads(1)
    check_weights(inputs.members(part))
    if all(block.path.exists() for block in blocks):
        return
    decoder = _decoder(inputs, part, test_set)
    sentences = (sentence for block in blocks for sentence in test_set[block.sentences])
    size = part_size(
        (sentence.expected_tokens for sentence in sentences),
        decoder.model,
        part.regime,
        part.combination,
        inputs.decode,
        inputs.dump,
    )
    DETAILS.info("%s: %s", part.name, size)
    blocks[0].path.parent.mkdir(parents=True, exist_ok=True)
    check_disk_space(size, blocks[0].path.parent, part.name)
    if inputs.decode.self_check:
        try:
            _run_self_check(decoder, part, test_set)
        except NanLogprobError as error:
            raise error.with_names(attributes) from None
    decode_blocks(decoder, test_set, blocks, attributes, f"decode {part.name}", row)


def _decoder(inputs: Inputs, part: Part, test_set: TestSetFile) -> Decoder:
    ensemble = inputs.ensembles[part.ensemble_name]
    tokenizer = inputs.tokenizer(ensemble)
    if ensemble.dictionaries is not None and isinstance(tokenizer, SubwordTokenizer):
        unknown = unknown_subwords(
            test_set, tokenizer.source_dictionary, tokenizer.target_dictionary
        )
        DETAILS.info("%s: not in the vocabularies: %s", part.name, unknown)
    search: Any = implementation(inputs.decode._target_, "decode._target_")
    return decoder_of(
        part,
        inputs.loaders(ensemble, tokenizer),
        search,
        tokenizer,
        inputs.decode,
        inputs.dump,
        inputs.hypothesis_file(part, test_set),
    )


def _run_self_check(decoder: Decoder, part: Part, test_set: TestSetFile) -> None:
    sentences = [
        sentence.encoded(decoder.tokenizer) for sentence in test_set[:SELF_CHECK_SENTENCES]
    ]
    difference = self_check(decoder, sentences, part.combination)
    DETAILS.info("%s: self-check passed, largest difference %.1e nats", part.name, difference)
