from __future__ import annotations

import pytest

from pipeline.decoding.plan import Shard, shard_of, shards


@pytest.mark.parametrize(("count", "n_block"), [(2, 5), (3, 3), (8, 3), (2, 2)])
def test_every_block_is_in_one_shard(count: int, n_block: int) -> None:
    blocks = list(range(n_block))
    shared_out = [one.own(blocks) for one in shards(count, n_block)]
    assert sorted(block for own in shared_out for block in own) == blocks
    assert all(shared_out)


@pytest.mark.parametrize(("count", "n_block"), [(1, 5), (4, 1), (4, 0)])
def test_what_one_job_does_has_no_shards(count: int, n_block: int) -> None:
    assert shards(count, n_block) == []


def test_a_label_names_the_part_and_the_shard() -> None:
    assert shard_of(Shard(2, 3).label("a.b@home")) == ("a.b@home", Shard(2, 3))
    for name in ("a.prex.MED", "a@4of3", "a@0of3", "a@of", "a@1of0"):
        assert shard_of(name) == (name, None)
