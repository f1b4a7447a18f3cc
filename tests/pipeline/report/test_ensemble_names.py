"""Ensembles, members and training runs have names in words."""

from __future__ import annotations

import pytest

from pipeline.report.ensemble_names import ensemble_name, member_name, member_names


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("random_init", "random-init"),
        ("single", "single"),
        ("checkpoint_average", "checkpoint average"),
        ("checkpoint.seed_1", "checkpoint of seed 1"),
        ("mc_dropout.seed_2", "MC dropout of seed 2"),
        ("seed_3", "seed 3"),
        ("of_a_user.v1", "of_a_user.v1"),
    ],
)
def test_names_of_ensembles_are_words(name: str, words: str) -> None:
    assert ensemble_name(name) == words


def test_names_of_members_are_words_unless_a_user_gave_them() -> None:
    assert member_name("seed_1.update_00001300") == "seed 1, update 1300"
    assert member_name("my_seed_1/model") == "my_seed_1/model"
    assert member_names(["seed_1", "run_b"]) == "seed 1, run_b"
