from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.decoding.ensemble import MembersInTurn, MembersOneAtATime
from pipeline.errors import DataError


def in_turn(members: Sequence[Any]) -> Any:
    return MembersInTurn(members)


def one_at_a_time(members: Sequence[Any]) -> Any:
    return MembersOneAtATime([lambda member=member: member for member in members])


@pytest.mark.parametrize("together", [in_turn, one_at_a_time])
def test_the_shortest_limits_apply_and_vocabularies_must_have_one_size(
    together: Callable[[Sequence[Any]], Any],
) -> None:
    def member(vocab_size: int, source: int, target: int) -> SimpleNamespace:
        return SimpleNamespace(
            vocab_size=vocab_size, pad=1, eos=2, unk=3, start=(2,), max_shared_tokens=None,
            max_source_tokens=source, max_target_tokens=target,
        )  # fmt: skip

    model = together([member(9, 20, 10), member(9, 10, 20)])
    assert (model.n_member, model.vocab_size) == (2, 9)
    assert (model.max_source_tokens, model.max_target_tokens) == (10, 10)
    with pytest.raises(DataError, match=r"vocabularies of the same size \(got 9 and 8\)"):
        together([member(9, 10, 10), member(8, 10, 10)])
