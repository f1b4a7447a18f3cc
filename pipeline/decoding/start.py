"""The decoder of a job: which models are loaded, and what finds and what scores hypotheses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pipeline.config import DecodeConfig, DumpConfig
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.given import Given, drafts_of
from pipeline.decoding.plan import Job
from pipeline.decoding.rescore import score_in_chunks, scored_by_all, searched_by
from pipeline.decoding.run import Decoder, Search
from pipeline.decoding.teacher_forcing import score_targets
from pipeline.decoding.test_set import Dictionary
from pipeline.fairseq_bridge.models import FairseqMember


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
