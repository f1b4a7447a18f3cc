"""Hypotheses read back from decode stores: from blocks to be joined, or from another decode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from pipeline.store import Hypothesis, Store, TokenStatistics, TopK, open_store

_STATISTICS = tuple(one.name for one in fields(TokenStatistics))


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
    columns = {name: store.read(f"/token/{name}") for name in ("id", *_STATISTICS)}
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
                    TokenStatistics(*(columns[name][start:stop] for name in _STATISTICS)),
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
