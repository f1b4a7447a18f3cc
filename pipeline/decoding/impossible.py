"""Numbers that no decoder can mean: the decode stops and says whose they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from pipeline.errors import DataError
from pipeline.store import Hypothesis, TokenStatistics
from pipeline.store.schema import value_range


class NotANumberError(DataError):
    """A member gave NaN as a log-probability; `member`: its place among the `n_member`, from 0."""

    def __init__(self, sentence_id: int, member: int, n_member: int) -> None:
        super().__init__(
            f"member {member} of the ensemble must give log-probabilities, got NaN for "
            f"sentence {sentence_id}"
        )
        self.sentence_id = sentence_id
        self.member = member
        self.n_member = n_member

    def named(self, attributes: Mapping[str, Any]) -> DataError:
        """The same with the names of task, test set and member; attributes: of the store."""
        # Some of the members may search for all.
        lists = (attributes.get(name) or () for name in ("members", "search_members"))
        names = next((one for one in lists if len(one) == self.n_member), range(self.n_member))
        return DataError(
            f"{_place(attributes, self.sentence_id)}: member {names[self.member]} must give "
            f"log-probabilities, got NaN"
        )


def refuse_impossible(
    hypotheses: Sequence[Hypothesis], sentence_id: int, attributes: Mapping[str, Any]
) -> None:
    """Raise DataError for a statistic that is NaN or out of its range.

    It names task, test set, sentence, hypothesis, token, member and statistic; attributes: of the
    store.
    """
    members = attributes.get("members")
    for rank, hypothesis in enumerate(hypotheses):
        where = f"{_place(attributes, sentence_id)}, hypothesis {rank}"
        for field in fields(TokenStatistics):
            values = np.asarray(getattr(hypothesis.statistics, field.name))
            # Of tokens and members alone: their ranges depend on no size.
            allowed = value_range(f"/token/{field.name}", 1, 1, "")
            broken = ~((values >= allowed.lowest) & (values <= allowed.highest))
            if broken.any():
                token, *member = map(int, np.argwhere(broken)[0])
                names = [members[one] if members else one for one in member]
                who = "".join(f", member {one}" for one in names)
                value = float(values[token, *member])
                raise DataError(
                    f"{where}, token {token}{who}: {field.name} {allowed.rule}, got {value:.6g}"
                )


def _place(attributes: Mapping[str, Any], sentence_id: int) -> str:
    names = (attributes.get(name) for name in ("task", "test_set"))
    return ", ".join([*(str(one) for one in names if one), f"sentence {sentence_id}"])
