"""One part of the decodes of a task: from a job to its whole store."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.data.subwords import detokeniser
from pipeline.decoding.blocks import Block, Decoder, Search, block_plan, decode_blocks, join_blocks
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.inputs import Inputs, check_weights
from pipeline.decoding.plan import Job, Shard, settings_of, store_attributes
from pipeline.decoding.posterior import NotANumberError
from pipeline.decoding.resources import estimate, refuse_what_does_not_fit
from pipeline.decoding.scoring import (
    Given,
    drafts_of,
    score_in_chunks,
    score_targets,
    scored_by_all,
    searched_by,
)
from pipeline.decoding.self_check import SELF_CHECK_SENTENCES, self_check
from pipeline.decoding.test_set import Dictionary, TestSetFile, read_test_set, unknown_units
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.files import digest
from pipeline.run.settings import DecodeConfig, DumpConfig, implementation
from pipeline.store import Flag, open_store


def decoder_of(
    job: Job,
    load: Mapping[str, Callable[[], FairseqMember]],
    search: Search,
    dictionaries: tuple[Dictionary, Dictionary],
    decode: DecodeConfig,
    dump: DumpConfig,
    detokenise: Callable[[Sequence[str]], str],
    given: Given | None,
) -> Decoder:
    """What carries out a job. load: name of a member -> what loads it; given: its hypotheses.

    All members are in memory together, unless `decode.search_members` says that they do not fit
    or hypotheses are given: then those that search are, and all score, one at a time.
    """
    members = [load[name] for name in job.members]
    teacher_forcing = job.regime == "teacher_forcing"
    all_fit = not (decode.search_members or decode.hypotheses)
    if given is None and (all_fit or len(members) == 1):
        together = as_ensemble([one() for one in members])
        own = score_targets if teacher_forcing else search
        return Decoder(*dictionaries, together, own, decode, dump, detokenise)
    model = MembersOneAtATime(members)
    if teacher_forcing:
        return Decoder(*dictionaries, model, score_in_chunks, decode, dump, detokenise)
    if given is not None:
        find = drafts_of(given, dictionaries[1], model.vocab_size)
    else:
        find = searched_by(search, as_ensemble([load[name]() for name in job.search_members]))
    has_length_limit = given is None or given.units is None
    scored = scored_by_all(find)
    return Decoder(*dictionaries, model, scored, decode, dump, detokenise, has_length_limit)


_log = logging.getLogger(__name__)


def decode_part(inputs: Inputs, task: str, job: Job, store: Path, resume: Path, row: int) -> None:
    """Write the store of a job, of which shards may have made blocks.

    resume: the folder for its blocks, whose name is the digest of what it is made from; what stands
    beside it, begun with other settings, weights or code, is deleted. row: of the progress bar.
    Raises PipelineError where weights are not those that were written, the store would not fit on
    the disk, or the self-check fails.
    """
    for path in resume.parent.glob("*"):
        if path.name != resume.name:
            shutil.rmtree(path)
    test_set = read_test_set(inputs.prepared.test_set(job.test_set))
    attributes = _attributes(inputs, task, job)
    blocks = block_plan(resume, len(test_set), inputs.decode.part_sentences)
    _make_blocks(inputs, job, test_set, blocks, attributes, row)
    join_blocks(test_set, blocks, store, attributes)
    shutil.rmtree(resume)
    _log_counts(job.name, len(test_set), store)


def decode_shard(inputs: Inputs, task: str, job: Job, shard: Shard, resume: Path, row: int) -> None:
    """Make the blocks of one shard of a job; arguments and errors are those of `decode_part`."""
    test_set = read_test_set(inputs.prepared.test_set(job.test_set))
    blocks = block_plan(resume, len(test_set), inputs.decode.part_sentences)
    attributes = _attributes(inputs, task, job)
    _make_blocks(inputs, job, test_set, shard.own(blocks), attributes, row)


def _make_blocks(
    inputs: Inputs,
    job: Job,
    test_set: TestSetFile,
    blocks: Sequence[Block],
    attributes: dict[str, Any],
    row: int,
) -> None:
    """Make those blocks that are missing; without any, no model is loaded."""
    import torch

    torch.set_num_threads(1)
    check_weights(inputs.members(job))
    if all(block.path.exists() for block in blocks):
        return
    decoder = _decoder(inputs, job, test_set)
    own = (one for block in blocks for one in test_set[block.sentences])
    expected = estimate(
        (one.expected_tokens for one in own),
        decoder.model,
        job.regime,
        job.combination,
        inputs.decode,
        inputs.dump,
    )
    _log.info("%s: %s", job.name, expected)
    blocks[0].path.parent.mkdir(parents=True, exist_ok=True)
    refuse_what_does_not_fit(expected, blocks[0].path.parent, job.name)
    if inputs.decode.self_check:
        try:
            _check_itself(decoder, job, test_set)
        except NotANumberError as error:
            raise error.named(attributes) from None
    decode_blocks(decoder, test_set, blocks, attributes, f"decode {job.name}", row)


def _decoder(inputs: Inputs, job: Job, test_set: TestSetFile) -> Decoder:
    ensemble = inputs.ensembles[job.ensemble_name]
    source, target, loaders = inputs.loaders(ensemble)
    if ensemble.dictionaries is not None:
        _log.info("%s: unknown are %s", job.name, unknown_units(test_set, source, target))
    search: Any = implementation(inputs.decode._target_, "decode._target_")
    return decoder_of(
        job,
        loaders,
        search,
        (source, target),
        inputs.decode,
        inputs.dump,
        detokeniser(inputs.prepared.units, inputs.prepared.target_language),
        inputs.given(job, test_set),
    )


def _check_itself(decoder: Decoder, job: Job, test_set: TestSetFile) -> None:
    first = [
        one.encoded(decoder.source_dictionary, decoder.target_dictionary)
        for one in test_set[:SELF_CHECK_SENTENCES]
    ]
    difference = self_check(decoder, first, job.combination)
    _log.info("%s: self-check passed, largest difference %.1e nats", job.name, difference)


def _log_counts(name: str, n_read: int, path: Path) -> None:
    with open_store(path) as store:
        _log.info(
            "%s: read %d sentences, wrote %d with %d hypotheses, flagged %d",
            name,
            n_read,
            store.n_sentence,
            store.n_hypothesis,
            (store.flag & (255 - Flag.NO_REFERENCE)).astype(bool).sum(),
        )


def _attributes(inputs: Inputs, task: str, job: Job) -> dict[str, Any]:
    _, target, _ = inputs.loaders(inputs.ensembles[job.ensemble_name])
    digests = {
        "members": digest(*(one.model_sha256 for one in inputs.members(job))),
        "decode": digest(*inputs.content(job)),
    }
    settings = settings_of(job, inputs.decode, inputs.dump)
    searching = inputs.search_members(job)
    return store_attributes(task, job, settings, searching, len(target), digests)
