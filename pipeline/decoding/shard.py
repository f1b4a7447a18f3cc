"""A shard: the share of a decode's blocks that one of several jobs makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

_Item = TypeVar("_Item")
_LABEL = re.compile(r"(?P<part>.+)@(?P<number>[0-9]+)of(?P<count>[1-9][0-9]*)")


@dataclass(frozen=True)
class Shard:
    """Every `count`-th block, from the one at place `number` on (counted from 1)."""

    number: int
    count: int

    def own(self, blocks: Sequence[_Item]) -> Sequence[_Item]:
        """The blocks of this shard."""
        return blocks[self.number - 1 :: self.count]

    def label(self, part: str) -> str:
        """What setting `part` says for this shard of a part."""
        return f"{part}@{self.number}of{self.count}"


def shards(count: int, n_block: int) -> list[Shard]:
    """The shards of a decode that is cut into `count` jobs; none where a job would do it all."""
    used = min(count, n_block)
    return [Shard(number, used) for number in range(1, used + 1)] if used > 1 else []


def shard_of(label: str) -> tuple[str, Shard | None]:
    """The part that setting `part` names, and the shard of it, if it names one."""
    found = _LABEL.fullmatch(label)
    if found is None or not 1 <= int(found["number"]) <= int(found["count"]):
        return label, None
    return found["part"], Shard(int(found["number"]), int(found["count"]))
