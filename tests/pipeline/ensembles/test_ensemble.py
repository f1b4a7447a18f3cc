from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.ensembles import DropoutMask, Ensemble, Member, manifest
from pipeline.ensembles.ensemble import check_ensembles
from pipeline.errors import ConfigError, DataError


def member(name: str, sha256: str, vocabulary: str = "v") -> Member:
    description = {"model": {}, "vocabulary_sha256": vocabulary}
    return Member(name, Path(name), sha256, 1, description, 60, {f"{name}/w": sha256})


def ensemble(name: str, *members: Member) -> Ensemble:
    return Ensemble("kind", name, members)


def test_members_with_the_same_weights_are_rejected() -> None:
    twins = member("seed_1", "x"), member("seed_2", "x")
    refused = r"members seed_1 \(seed_1\) and seed_2 \(seed_2\) are the same model\. Train them"
    with pytest.raises(DataError, match=refused):
        check_ensembles("kind", [ensemble("a", *twins)], [])


def test_twins_that_the_user_lists_are_named_by_the_users_paths() -> None:
    paths = Path("mine/best.pt"), Path("mine/copy.pt")
    twins = [
        replace(member(f"imported_{index}", "x"), given=path) for index, path in enumerate(paths, 1)
    ]
    with pytest.raises(DataError) as error:
        check_ensembles("kind", [ensemble("a", *twins)], [])
    assert str(error.value) == (
        "ensemble a: members imported_1 (mine/best.pt) and imported_2 (mine/copy.pt) are the same "
        "model. List each model once."
    )


def test_vocabularies_that_differ_are_named_by_the_users_paths() -> None:
    first, second = (
        replace(member(f"m_{run}", run, f"vocabulary of {run}"), given=Path("runs", run))
        for run in ("a", "b")
    )
    words = (
        r"m_a \(runs.a\) and m_b \(runs.b\) have different vocabularies\. Choose models with one"
    )
    with pytest.raises(DataError, match=words):
        check_ensembles("kind", [ensemble("a", first, second)], [])


@pytest.mark.parametrize(
    ("takes_speech", "is_speech", "match"),
    [
        (True, False, r"seed_1 \(seed_1\) is a model of speech, and the test sets are text"),
        (False, True, r"seed_1 \(seed_1\) is a model of text, and the test sets are speech"),
        (True, True, None),
        (None, True, None),
    ],
)
def test_models_take_speech_or_text(
    takes_speech: bool | None, is_speech: bool, match: str | None
) -> None:
    of_kind = replace(ensemble("a", member("seed_1", "x")), takes_speech=takes_speech)
    with nullcontext() if match is None else pytest.raises(ConfigError, match=match):
        of_kind.check_source(is_speech)


def test_members_may_differ_only_in_their_mask() -> None:
    masked = [replace(member(f"m_{seed}", "x"), mask=DropoutMask(0.1, seed)) for seed in (1, 2)]
    check_ensembles("kind", [ensemble("a", *masked)], [])


def test_members_with_different_vocabularies_are_rejected() -> None:
    members = member("seed_1", "x"), member("seed_2", "y", "other")
    with pytest.raises(DataError, match=r"seed_2 \(seed_2\) have different vocabularies\. Train"):
        check_ensembles("kind", [ensemble("a", *members)], [])


def test_a_model_may_be_in_two_ensembles_but_a_name_means_one_model() -> None:
    first = ensemble("a", member("seed_1", "x"))
    check_ensembles("kind", [first], [ensemble("b", member("seed_1", "x"))])
    with pytest.raises(DataError, match="ensemble b: its member seed_1 is another model"):
        check_ensembles("kind", [first], [ensemble("b", member("seed_1", "y"))])
    with pytest.raises(DataError, match="ensemble a: two ensembles have this name"):
        check_ensembles("kind", [first], [first])


def test_ensembles_without_members_are_rejected() -> None:
    with pytest.raises(DataError, match="ensemble kind: has no members"):
        check_ensembles("kind", [], [])
    with pytest.raises(DataError, match="ensemble a: has no members"):
        check_ensembles("kind", [ensemble("a")], [])


def test_the_manifest_counts_the_parameters_of_all_files_of_weights(tmp_path: Path) -> None:
    shapes: dict[str, tuple[int, ...]] = {"first": (3, 4), "second": (5,)}
    for name, shape in shapes.items():
        save_file({"w": np.zeros(shape, np.float32)}, tmp_path / f"{name}.safetensors")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    files = {tmp_path / name: "x" for name in ("second.safetensors", "config.json")}
    large = replace(member("m", "x"), weights=tmp_path / "first.safetensors", files=files)
    assert manifest([ensemble("a", large)])[0]["members"][0]["parameters"] == 17


def test_the_manifest_describes_each_member() -> None:
    masked = replace(member("m", "x"), mask=DropoutMask(None, 3))
    assert manifest([ensemble("a", masked)]) == [
        {
            "kind": "kind",
            "name": "a",
            "members": [
                {
                    "name": "m",
                    "checkpoints": {"m/w": "x"},
                    "sha256": "x",
                    "parameters": None,  # there is no such file
                    "seed": 1,
                    "update": 60,
                    "dropout": {"rate": None, "seed": 3},
                    "vocabulary_sha256": "v",
                    "model_sha256": masked.model_sha256,
                }
            ],
        }
    ]
