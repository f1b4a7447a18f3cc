from __future__ import annotations

from typing import Any

import pytest

from pipeline import config as schema
from pipeline.decoding.plan import jobs
from pipeline.errors import ConfigError

TEST_SETS = {
    "newstest14": schema.TestSetConfig(kind="held_out", corpus="some", in_domain=True),
    "L-DE": schema.TestSetConfig(kind="other_side", corpus="some"),
    "L-DEDE": schema.TestSetConfig(kind="other_side", corpus="some", regimes=["teacher_forcing"]),
}


def test_every_test_set_and_the_further_decodes_of_the_in_domain_one(decode_config: Any) -> None:
    config = decode_config(also=["expr", "members", "teacher_forcing"])
    plan = jobs("random_init", ["seed_1", "seed_2"], config, TEST_SETS)
    assert [job.name for job in plan] == [
        "random_init.prex.newstest14",
        "random_init.prex.L-DE",
        "random_init.expr.newstest14",
        "random_init.expr.L-DE",
        "seed_1.beam.newstest14",
        "seed_2.beam.newstest14",
        "random_init.teacher_forcing.newstest14",
        "random_init.teacher_forcing.L-DEDE",
    ]
    single = plan[4]
    assert (single.ensemble, single.members, single.combination) == ("seed_1", ("seed_1",), "prex")
    assert plan[6].regime == "teacher_forcing"


def test_a_decode_that_is_asked_for_twice_is_one_job(decode_config: Any) -> None:
    config = decode_config(combination="expr", also=["expr"])
    assert [job.name for job in jobs("random_init", ["seed_1"], config, TEST_SETS)] == [
        "random_init.expr.newstest14",
        "random_init.expr.L-DE",
    ]


def test_some_members_may_search_for_all(decode_config: Any) -> None:
    config = decode_config(also=["members", "teacher_forcing"], search_members=["seed_2"])
    plan = jobs("random_init", ["seed_1", "seed_2"], config, TEST_SETS)
    searching = {job.name: job.search_members for job in plan}
    assert searching["random_init.prex.L-DE"] == ("seed_2",)
    assert searching["seed_1.beam.newstest14"] == ("seed_1",)
    assert searching["random_init.teacher_forcing.newstest14"] == ("seed_1", "seed_2")
    assert not any(job.takes_hypotheses for job in plan)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search_members": ["seed_3"]}, r"distinct members .*\(seed_1, seed_2\), got seed_3"),
        ({"search_members": ["seed_1", "seed_1"]}, "distinct members .* got seed_1, seed_1"),
        ({"search_members": ["seed_1"], "hypotheses": "a.h5"}, r"must be \[\] where"),
        ({"regime": "sample", "hypotheses": "a.h5"}, r"got decode\.regime=sample"),
    ],
)
def test_members_that_cannot_search_are_refused(
    settings: dict[str, Any], message: str, decode_config: Any
) -> None:
    with pytest.raises(ConfigError, match=message):
        jobs("random_init", ["seed_1", "seed_2"], decode_config(**settings), TEST_SETS)
