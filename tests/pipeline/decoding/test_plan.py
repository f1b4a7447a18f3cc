from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.decoding.plan import jobs
from pipeline.ensembles import Ensemble, Member
from pipeline.errors import ConfigError
from pipeline.run import settings as schema

TEST_SETS = {
    "newstest14": schema.TestSetConfig(kind="held_out", corpus="some", in_domain=True),
    "L-DE": schema.TestSetConfig(kind="other_side", corpus="some"),
    "L-DEDE": schema.TestSetConfig(kind="other_side", corpus="some", regimes=["teacher_forcing"]),
}


def ensemble(kind: str, name: str, *members: str) -> Ensemble:
    return Ensemble(kind, name, tuple(Member(one, Path(one), one, 1, {}) for one in members))


RANDOM_INIT = ensemble("random_init", "random_init", "seed_1", "seed_2")
CHECKPOINTS = [
    ensemble("checkpoint", f"checkpoint.seed_{seed}", f"seed_{seed}.a", f"seed_{seed}.b")
    for seed in (1, 2)
]


def test_every_test_set_and_the_further_decodes_of_the_in_domain_one(decode_config: Any) -> None:
    config = decode_config(also=["expr", "members", "teacher_forcing"])
    plan = jobs([RANDOM_INIT], [], config, TEST_SETS)
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
    assert single.ensemble_name == "random_init"
    assert plan[6].regime == "teacher_forcing"


@pytest.mark.parametrize(
    ("also", "roles"),
    [
        (["members"], ["newstest14"]),
        (["members_ood"], ["L-DE"]),
        (["members", "members_ood"], ["newstest14", "L-DE"]),
    ],
)
def test_members_decode_the_sets_that_are_asked_for(
    decode_config: Any, also: list[str], roles: list[str]
) -> None:
    plan = jobs([RANDOM_INIT], [], decode_config(also=also), TEST_SETS)
    names = [job.name for job in plan if len(job.members) == 1]
    assert names == [f"seed_{seed}.beam.{role}" for seed in (1, 2) for role in roles]


def test_a_decode_that_is_asked_for_twice_is_one_job(decode_config: Any) -> None:
    config = decode_config(combination="expr", also=["expr"])
    assert [job.name for job in jobs([RANDOM_INIT], [], config, TEST_SETS)] == [
        "random_init.expr.newstest14",
        "random_init.expr.L-DE",
    ]


def test_subsets_of_every_size_between_one_member_and_all(decode_config: Any) -> None:
    members = [f"seed_{one}" for one in (1, 2, 3, 4)]
    four = ensemble("random_init", "random_init", *members)
    config = decode_config(also=["expr"], subsets_per_size=5)
    plan = [one for one in jobs([four], [], config, TEST_SETS) if one.ensemble == "subset"]
    assert {job.test_set for job in plan} == {"newstest14"}
    assert [(job.combination, len(job.members)) for job in plan] == [
        (combination, size)
        for combination in ("prex", "expr")
        for size, count in ((2, 5), (3, 4))
        for _ in range(count)
    ]
    assert plan[5].name == "random_init.subset_1_2_3.prex.newstest14"
    assert plan[5].members == plan[5].search_members == ("seed_1", "seed_2", "seed_3")
    drawn = [
        [
            job.name
            for job in jobs([four], [], decode_config(subsets_per_size=2, seed=seed), TEST_SETS)
        ]
        for seed in (0, 1, 0)
    ]
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]
    sampled = jobs([four], [], decode_config(regime="sample", subsets_per_size=2), TEST_SETS)
    assert not any(job.ensemble == "subset" for job in sampled)


def test_one_ensemble_of_each_run_is_several_of_one_kind(decode_config: Any) -> None:
    plan = jobs(CHECKPOINTS, [], decode_config(also=["members"]), TEST_SETS)
    assert [job.name for job in plan if job.test_set == "newstest14"] == [
        "checkpoint.seed_1.prex.newstest14",
        "checkpoint.seed_2.prex.newstest14",
        *(f"seed_{seed}.{one}.beam.newstest14" for seed in (1, 2) for one in "ab"),
    ]
    assert {job.ensemble for job in plan if len(job.members) > 1} == {"checkpoint"}


def test_further_ensembles_are_decoded_by_the_one_posterior_alone(decode_config: Any) -> None:
    config = decode_config(also=["expr", "members", "teacher_forcing"], search_members=["seed_1"])
    plan = [
        job
        for job in jobs([RANDOM_INIT], CHECKPOINTS[:1], config, TEST_SETS)
        if job.ensemble_name == "checkpoint.seed_1"
    ]
    assert [job.name for job in plan] == [
        "checkpoint.seed_1.prex.newstest14",
        "checkpoint.seed_1.prex.L-DE",
        "checkpoint.seed_1.teacher_forcing.newstest14",
        "checkpoint.seed_1.teacher_forcing.L-DEDE",
    ]
    assert all(job.search_members == ("seed_1.a", "seed_1.b") for job in plan)


def test_further_ensembles_search_where_the_main_one_takes_hypotheses(decode_config: Any) -> None:
    plan = jobs([RANDOM_INIT], CHECKPOINTS, decode_config(hypotheses="a.h5"), TEST_SETS)
    taking = {job.ensemble for job in plan if job.takes_hypotheses}
    assert taking == {"random_init"}


def test_some_members_may_search_for_all(decode_config: Any) -> None:
    config = decode_config(also=["members", "teacher_forcing"], search_members=["seed_2"])
    plan = jobs([RANDOM_INIT], [], config, TEST_SETS)
    searching = {job.name: job.search_members for job in plan}
    assert searching["random_init.prex.L-DE"] == ("seed_2",)
    assert searching["seed_1.beam.newstest14"] == ("seed_1",)
    assert searching["random_init.teacher_forcing.newstest14"] == ("seed_1", "seed_2")
    assert not any(job.takes_hypotheses for job in plan)


def test_each_of_several_ensembles_has_members_that_search(decode_config: Any) -> None:
    config = decode_config(search_members=["seed_1.b", "seed_2.a"])
    searching = {job.name: job.search_members for job in jobs(CHECKPOINTS, [], config, TEST_SETS)}
    assert searching["checkpoint.seed_1.prex.L-DE"] == ("seed_1.b",)
    assert searching["checkpoint.seed_2.prex.L-DE"] == ("seed_2.a",)
    with pytest.raises(ConfigError, match=r"have a member of ensemble checkpoint\.seed_2"):
        jobs(CHECKPOINTS, [], decode_config(search_members=["seed_1.b"]), TEST_SETS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search_members": ["seed_3"]}, r"a member of .*\(seed_1, seed_2\), got seed_3"),
        ({"search_members": ["seed_1", "seed_3"]}, "distinct members .* got seed_1, seed_3"),
        ({"search_members": ["seed_1", "seed_1"]}, "distinct members .* got seed_1, seed_1"),
        ({"search_members": ["seed_1"], "hypotheses": "a.h5"}, r"must be \[\] where"),
        ({"regime": "sample", "hypotheses": "a.h5"}, r"got decode\.regime=sample"),
    ],
)
def test_members_that_cannot_search_are_refused(
    settings: dict[str, Any], message: str, decode_config: Any
) -> None:
    with pytest.raises(ConfigError, match=message):
        jobs([RANDOM_INIT], [], decode_config(**settings), TEST_SETS)


def test_teacher_forcing_as_the_regime_scores_references_and_searches_nothing(
    decode_config: Any,
) -> None:
    config = decode_config(regime="teacher_forcing", also=["expr", "members"])
    plan = jobs([RANDOM_INIT], [], config, TEST_SETS)
    assert [job.name for job in plan] == [
        "random_init.teacher_forcing.newstest14",
        "random_init.teacher_forcing.L-DEDE",
    ]
