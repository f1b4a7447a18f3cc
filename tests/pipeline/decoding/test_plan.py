from __future__ import annotations

import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.decoding.plan import (
    Shard,
    check_disk_space,
    part_size,
    plan_parts,
    shard_of,
    shards,
)
from pipeline.ensembles import Ensemble, Member
from pipeline.errors import ConfigError, MachineError
from pipeline.run import settings as schema
from pipeline.run.settings import DumpConfig

TEST_SETS = {
    "newstest14": schema.TestSetConfig(kind="held_out", corpus="some", in_domain=True),
    "L-DE": schema.TestSetConfig(kind="other_side", corpus="some"),
    "L-DEDE": schema.TestSetConfig(kind="other_side", corpus="some", regimes=["teacher_forcing"]),
}


def ensemble(kind: str, name: str, *members: str) -> Ensemble:
    return Ensemble(
        kind, name, tuple(Member(member, Path(member), member, 1, {}) for member in members)
    )


RANDOM_INIT = ensemble("random_init", "random_init", "seed_1", "seed_2")
CHECKPOINTS = [
    ensemble("checkpoint", f"checkpoint.seed_{seed}", f"seed_{seed}.a", f"seed_{seed}.b")
    for seed in (1, 2)
]


def test_ensembles_decode_all_sets_and_members_the_in_domain_set(decode_config: Any) -> None:
    config = decode_config(also=["expr", "members", "teacher_forcing"])
    plan = plan_parts([RANDOM_INIT], [], config, TEST_SETS)
    assert [part.name for part in plan] == [
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
def test_members_decode_the_requested_sets(
    decode_config: Any, also: list[str], roles: list[str]
) -> None:
    plan = plan_parts([RANDOM_INIT], [], decode_config(also=also), TEST_SETS)
    names = [part.name for part in plan if len(part.members) == 1]
    assert names == [f"seed_{seed}.beam.{role}" for seed in (1, 2) for role in roles]


def test_a_decode_that_is_requested_twice_is_one_part(decode_config: Any) -> None:
    config = decode_config(combination="expr", also=["expr"])
    assert [part.name for part in plan_parts([RANDOM_INIT], [], config, TEST_SETS)] == [
        "random_init.expr.newstest14",
        "random_init.expr.L-DE",
    ]


def test_subsets_have_every_size_between_one_member_and_all(decode_config: Any) -> None:
    members = [f"seed_{number}" for number in (1, 2, 3, 4)]
    four = ensemble("random_init", "random_init", *members)
    config = decode_config(also=["expr"], subsets_per_size=5)
    plan = [part for part in plan_parts([four], [], config, TEST_SETS) if part.ensemble == "subset"]
    assert {part.test_set for part in plan} == {"newstest14"}
    assert [(part.combination, len(part.members)) for part in plan] == [
        (combination, size)
        for combination in ("prex", "expr")
        for size, count in ((2, 5), (3, 4))
        for _ in range(count)
    ]
    assert plan[5].name == "random_init.subset_1_2_3.prex.newstest14"
    assert plan[5].members == plan[5].search_members == ("seed_1", "seed_2", "seed_3")
    drawn = [
        [
            part.name
            for part in plan_parts(
                [four], [], decode_config(subsets_per_size=2, seed=seed), TEST_SETS
            )
        ]
        for seed in (0, 1, 0)
    ]
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]
    sampled = plan_parts([four], [], decode_config(regime="sample", subsets_per_size=2), TEST_SETS)
    assert not any(part.ensemble == "subset" for part in sampled)


def test_each_training_run_has_an_ensemble_of_the_kind(decode_config: Any) -> None:
    plan = plan_parts(CHECKPOINTS, [], decode_config(also=["members"]), TEST_SETS)
    assert [part.name for part in plan if part.test_set == "newstest14"] == [
        "checkpoint.seed_1.prex.newstest14",
        "checkpoint.seed_2.prex.newstest14",
        *(f"seed_{seed}.{number}.beam.newstest14" for seed in (1, 2) for number in "ab"),
    ]
    assert {part.ensemble for part in plan if len(part.members) > 1} == {"checkpoint"}


def test_further_ensembles_are_decoded_with_one_posterior(decode_config: Any) -> None:
    config = decode_config(also=["expr", "members", "teacher_forcing"], search_members=["seed_1"])
    plan = [
        part
        for part in plan_parts([RANDOM_INIT], CHECKPOINTS[:1], config, TEST_SETS)
        if part.ensemble_name == "checkpoint.seed_1"
    ]
    assert [part.name for part in plan] == [
        "checkpoint.seed_1.prex.newstest14",
        "checkpoint.seed_1.prex.L-DE",
        "checkpoint.seed_1.teacher_forcing.newstest14",
        "checkpoint.seed_1.teacher_forcing.L-DEDE",
    ]
    assert all(part.search_members == ("seed_1.a", "seed_1.b") for part in plan)


def test_only_the_main_ensemble_takes_given_hypotheses(decode_config: Any) -> None:
    plan = plan_parts([RANDOM_INIT], CHECKPOINTS, decode_config(hypotheses="a.h5"), TEST_SETS)
    taking = {part.ensemble for part in plan if part.takes_hypotheses}
    assert taking == {"random_init"}


def test_some_members_can_search_for_the_ensemble(decode_config: Any) -> None:
    config = decode_config(also=["members", "teacher_forcing"], search_members=["seed_2"])
    plan = plan_parts([RANDOM_INIT], [], config, TEST_SETS)
    searching = {part.name: part.search_members for part in plan}
    assert searching["random_init.prex.L-DE"] == ("seed_2",)
    assert searching["seed_1.beam.newstest14"] == ("seed_1",)
    assert searching["random_init.teacher_forcing.newstest14"] == ("seed_1", "seed_2")
    assert not any(part.takes_hypotheses for part in plan)


def test_each_ensemble_needs_a_member_that_searches(decode_config: Any) -> None:
    config = decode_config(search_members=["seed_1.b", "seed_2.a"])
    searching = {
        part.name: part.search_members for part in plan_parts(CHECKPOINTS, [], config, TEST_SETS)
    }
    assert searching["checkpoint.seed_1.prex.L-DE"] == ("seed_1.b",)
    assert searching["checkpoint.seed_2.prex.L-DE"] == ("seed_2.a",)
    with pytest.raises(
        ConfigError, match=r"no member of ensemble checkpoint\.seed_2 \(got seed_1\.b\)"
    ):
        plan_parts(CHECKPOINTS, [], decode_config(search_members=["seed_1.b"]), TEST_SETS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"search_members": ["seed_3"]},
            r"no member of ensemble random_init \(got seed_3\).*seed_1, seed_2",
        ),
        ({"search_members": ["seed_1", "seed_3"]}, r"distinct members .*\(got seed_1, seed_3\)"),
        ({"search_members": ["seed_1", "seed_1"]}, r"distinct members .*\(got seed_1, seed_1\)"),
        ({"search_members": ["seed_1"], "hypotheses": "a.h5"}, r"must be \[\] if"),
        ({"regime": "sample", "hypotheses": "a.h5"}, r"\(got sample\)"),
    ],
)
def test_invalid_search_members_are_rejected(
    settings: dict[str, Any], message: str, decode_config: Any
) -> None:
    with pytest.raises(ConfigError, match=message):
        plan_parts([RANDOM_INIT], [], decode_config(**settings), TEST_SETS)


def test_the_regime_teacher_forcing_only_scores_references(
    decode_config: Any,
) -> None:
    config = decode_config(regime="teacher_forcing", also=["expr", "members"])
    plan = plan_parts([RANDOM_INIT], [], config, TEST_SETS)
    assert [part.name for part in plan] == [
        "random_init.teacher_forcing.newstest14",
        "random_init.teacher_forcing.L-DEDE",
    ]


@pytest.mark.parametrize(("count", "n_block"), [(2, 5), (3, 3), (8, 3), (2, 2)])
def test_every_block_is_in_one_shard(count: int, n_block: int) -> None:
    blocks = list(range(n_block))
    per_shard = [shard.own(blocks) for shard in shards(count, n_block)]
    assert sorted(block for own in per_shard for block in own) == blocks
    assert all(per_shard)


@pytest.mark.parametrize(("count", "n_block"), [(1, 5), (4, 1), (4, 0)])
def test_part_for_one_job_has_no_shards(count: int, n_block: int) -> None:
    assert shards(count, n_block) == []


def test_a_label_names_the_part_and_the_shard() -> None:
    assert shard_of(Shard(2, 3).label("a.b@home")) == ("a.b@home", Shard(2, 3))
    for name in ("a.prex.MED", "a@4of3", "a@0of3", "a@of", "a@1of0"):
        assert shard_of(name) == (name, None)


LENGTHS = [10, 20]


@pytest.fixture
def model(table_model: Any) -> Any:
    return table_model(lambda source, prefix: np.full((4, 1000), 1e-3))


def test_the_size_of_a_part_follows_from_the_settings(model: Any, decode_config: Any) -> None:
    dump = DumpConfig("full", "full", "float16", 1)
    config = decode_config(beam=5, n_best=2, batch_sentences=8)
    size = part_size(LENGTHS, model, "beam", "prex", config, dump)
    assert (size.sentences, size.tokens) == (2, 60)
    assert size.disk_bytes == 2 * 60 * (4 * 1000 * 2 + 14 * 4)
    assert size.memory_bytes == 8 * 5 * 4 * 1000 * 4
    assert str(size).endswith(
        "less than 1 MiB of disk and less than 1 MiB of memory besides the weights"
    )
    assert "at most 5 MiB of disk" in str(replace(size, disk_bytes=5 * 2**20))
    drawn = part_size(LENGTHS, model, "sample", "member", config, dump)
    assert drawn.tokens == 30 * 5 * 4
    assert part_size(LENGTHS, model, "teacher_forcing", "prex", config, dump).tokens == 30


def test_a_part_without_disk_space_is_rejected_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: Any, decode_config: Any
) -> None:
    expected = part_size(
        LENGTHS, model, "beam", "prex", decode_config(), DumpConfig("full", "full", "float32", 1)
    )
    check_disk_space(expected, tmp_path, "a part")
    usage = namedtuple("usage", "total used free")(2**20, 2**20, 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(MachineError, match=r"no room for a part \(2 sentences.*5 MiB.*1 MiB free"):
        check_disk_space(expected, tmp_path, "a part")
