from __future__ import annotations

from typing import Any

from pipeline import config as schema
from pipeline.decoding.plan import jobs

TEST_SETS = {
    "newstest14": schema.TestSetConfig(kind="held_out", corpus="some", in_domain=True),
    "L-DE": schema.TestSetConfig(kind="other_side", corpus="some"),
}


def test_every_test_set_and_the_further_decodes_of_the_in_domain_one(decode_config: Any) -> None:
    config = decode_config(also=["expr", "members", "teacher_forcing"])
    plan = jobs("random_init", ["seed_1", "seed_2"], config, TEST_SETS)
    assert [job.name for job in plan] == [
        "random_init.prex.newstest14",
        "random_init.prex.L-DE",
        "random_init.expr.newstest14",
        "seed_1.beam.newstest14",
        "seed_2.beam.newstest14",
        "random_init.teacher_forcing.newstest14",
    ]
    single = plan[3]
    assert (single.ensemble, single.members, single.combination) == ("seed_1", ("seed_1",), "prex")
    assert plan[5].regime == "teacher_forcing"


def test_a_decode_that_is_asked_for_twice_is_one_job(decode_config: Any) -> None:
    config = decode_config(combination="expr", also=["expr"])
    assert [job.name for job in jobs("random_init", ["seed_1"], config, TEST_SETS)] == [
        "random_init.expr.newstest14",
        "random_init.expr.L-DE",
    ]
