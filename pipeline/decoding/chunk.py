"""How much is scored at once, so that the distributions of all members fit in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.decoding.model import ScoringModel

# Token distributions of all members that are held at once: where one member is in memory at a time,
# those of the others wait for it.
_CHUNK_VALUES = 2**28


def chunks(model: ScoringModel, n_token: Sequence[int], most: int) -> Iterator[slice]:
    """Successive items of a sequence, n_token [item], whose distributions are computed at once.

    At most `most` items a chunk, and one at least.
    """
    most_tokens = _CHUNK_VALUES // (model.n_member * model.vocab_size)
    start, total = 0, 0
    for place, count in enumerate(n_token):
        if place > start and (total + count > most_tokens or place - start == most):
            yield slice(start, place)
            start, total = place, 0
        total += count
    if start < len(n_token):
        yield slice(start, len(n_token))
