"""The decoder of a job: which models are loaded, and what finds and what scores hypotheses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.config import DecodeConfig, DumpConfig
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.plan import Job
from pipeline.decoding.rescore import hypotheses_of, score_in_chunks, scored_by_all
from pipeline.decoding.run import Decoder, Search
from pipeline.decoding.teacher_forcing import score_targets
from pipeline.decoding.test_set import Dictionary, PreparedSentence
from pipeline.fairseq_bridge.models import FairseqMember


def decoder_of(
    job: Job,
    load: Mapping[str, Callable[[], FairseqMember]],
    search: Search,
    dictionaries: tuple[Dictionary, Dictionary],
    decode: DecodeConfig,
    dump: DumpConfig,
    hypotheses: tuple[Path, Sequence[PreparedSentence]] | None,
) -> Decoder:
    """What carries out a job. load: name of a member -> what loads it.

    All members are in memory together, unless `decode.search_members` says that they do not fit
    or hypotheses come from elsewhere (a store and the test set that it must be of): then those that
    search are, and all score, one at a time.
    """
    members = [load[name] for name in job.members]
    teacher_forcing = job.regime == "teacher_forcing"
    if len(members) == 1 or not (decode.search_members or decode.hypotheses):
        together = as_ensemble([one() for one in members])
        own = score_targets if teacher_forcing else search
        return Decoder(*dictionaries, together, own, decode, dump)
    model = MembersOneAtATime(members)
    decoder = Decoder(*dictionaries, model, score_in_chunks, decode, dump)
    if teacher_forcing:
        return decoder
    if hypotheses is not None:
        taken = hypotheses_of(*hypotheses, model.vocab_size)
        return replace(decoder, search=scored_by_all(taken, None))
    searching = as_ensemble([load[name]() for name in job.search_members])
    return replace(decoder, search=scored_by_all(search, searching))
