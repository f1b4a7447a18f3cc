from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from pipeline.errors import PipelineError
from pipeline.run.artifacts import Artifact, PartFolder
from pipeline.run.files import write_json
from pipeline.run.settings import PipelineConfig
from pipeline.store import open_store
from stages.decode import decode
from tests.stages.trained_members import (
    ABSENT,
    IN_DOMAIN,
    ONLY_SCORED,
    SEARCHED,
    decoded_store,
    settings,
)


@pytest.fixture
def missing_parts(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the missing parts of each run; decode them in this process."""
    missing_parts: list[list[str]] = []

    def run_parts(config: PipelineConfig, folder: PartFolder, *_: int) -> list[str]:
        missing = folder.missing()
        missing_parts.append(missing)
        for name in missing:
            part_config: Any = OmegaConf.create(config)
            OmegaConf.set_readonly(part_config, False)
            part_config.part = name
            decode(part_config)
        folder.write_manifest()
        return missing

    monkeypatch.setattr("stages.decode.run_parts", run_parts)
    return missing_parts


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Record the parts of each run without decoding them."""
    planned: list[set[str]] = []

    def run_parts(config: PipelineConfig, folder: PartFolder, *_: int) -> list[str]:
        folder.root.mkdir(parents=True, exist_ok=True)
        for name, content in folder.beside.items():
            write_json(folder.root / name, content)
        planned.append(set(folder.parts))
        return []

    monkeypatch.setattr("stages.decode.run_parts", run_parts)
    return planned


def test_all_parts_are_decoded_and_unexpected_files_removed(
    root: Path, missing_parts: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    decode(settings(root))
    folder = root / "decode" / "nmt_ende"
    parts = Artifact(folder, "decode").parts()
    assert set(parts) == {
        *(f"random_init.{kind}.{role}" for kind in ("prex", "expr") for role in SEARCHED),
        *(f"random_init.teacher_forcing.{role}" for role in IN_DOMAIN + ONLY_SCORED),
        *(f"{member}.beam.{role}" for member in ("seed_1", "seed_2") for role in SEARCHED),
    }
    (ensemble,) = json.loads((folder / "ensemble.json").read_text(encoding="utf-8"))
    assert [member["name"] for member in ensemble["members"]] == ["seed_1", "seed_2"]
    report = json.loads((folder / "diversity.json").read_text(encoding="utf-8"))
    diversity = report["ensembles"]["random_init"]
    assert diversity["pairs"][0]["members"] == ["seed_1", "seed_2"]
    assert (diversity["sentences"], diversity["tokens"]) == (4, 8)
    assert diversity["kl_nats"] > 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:  # reusing all parts needs no module that imports torch
        for module in ("beam", "diversity"):
            patch.setitem(sys.modules, f"pipeline.decoding.{module}", None)
        decode(settings(root, "decode.device_memory_mib=1"))  # which changes no result
    assert missing_parts[-1] == []
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    decode(settings(root, "decode.beam=3"))
    assert set(missing_parts[-1]) == {part for part in parts if "teacher_forcing" not in part}


def test_sets_that_were_not_prepared_are_named_in_one_line(
    root: Path, planned: list[set[str]], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    decode(settings(root))
    (line,) = [message for message in caplog.messages if "not prepared" in message]
    assert line == f"not decoded, since they were not prepared: {', '.join(sorted(ABSENT))}"
    assert len(ABSENT) > 1


def test_further_ensembles_are_decoded_with_the_main_ensemble(
    root: Path, planned: list[set[str]]
) -> None:
    also = ["checkpoint", "checkpoint_average"]
    overrides = [f"+ensemble@ensemble.also.{kind}={kind}" for kind in also]
    decode(settings(root, *overrides))
    further = {part for part in planned[-1] if part.startswith("checkpoint")}
    assert further == {
        f"{kind}.seed_{seed}.{part}"
        for kind in also
        for seed in (1, 2)
        for part in (
            *(f"prex.{role}" for role in SEARCHED),
            *(f"teacher_forcing.{role}" for role in IN_DOMAIN + ONLY_SCORED),
        )
    }
    folder = root / "decode" / "nmt_ende"
    listed = json.loads((folder / "ensemble.json").read_text(encoding="utf-8"))
    assert [
        (ensemble["kind"], ensemble["name"], len(ensemble["members"])) for ensemble in listed
    ] == [
        ("random_init", "random_init", 2),
        ("checkpoint", "checkpoint.seed_1", 3),
        ("checkpoint", "checkpoint.seed_2", 3),
        ("checkpoint_average", "checkpoint_average.seed_1", 1),
        ("checkpoint_average", "checkpoint_average.seed_2", 1),
    ]
    report = json.loads((folder / "diversity.json").read_text(encoding="utf-8"))
    assert set(report["ensembles"]) == {"random_init", "checkpoint.seed_1", "checkpoint.seed_2"}
    with open_store(decoded_store(root, "checkpoint.seed_2.prex.permuted", *overrides)) as store:
        assert store.attributes["ensemble"] == "checkpoint"


def test_subsets_of_the_members_decode_in_domain_sets(root: Path, planned: list[set[str]]) -> None:
    overrides = ["ensemble=checkpoint", "decode.subsets_per_size=1"]
    decode(settings(root, *overrides))
    subsets = sorted(part for part in planned[-1] if ".subset_" in part)
    assert len(subsets) == 2 * 2 * len(IN_DOMAIN)  # training runs, combinations
    part = next(part for part in subsets if part.endswith("expr.help"))
    with open_store(decoded_store(root, part, *overrides)) as store:
        assert store.attributes["ensemble"] == "subset"
        assert store.n_member == 2
        assert store.combination == "expr"


def test_blocks_of_a_test_set_are_divided_among_shards(
    root: Path, planned: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shard_labels: dict[str, list[str]] = {}

    def run_shards(
        _: PipelineConfig, __: PartFolder, labels: dict[str, list[str]], n_gpu: int
    ) -> None:
        shard_labels.update(labels)

    monkeypatch.setattr("stages.decode.run_shards", run_shards)
    decode(settings(root, "decode.shards=2", "decode.part_sentences=3"))
    assert set(shard_labels) == planned[-1]
    part = "random_init.prex.permuted"
    assert shard_labels[part] == [f"{part}@1of2", f"{part}@2of2"]
    decode(settings(root, "decode.shards=2"))
    assert not any(shard_labels.values())


def test_further_ensemble_of_the_main_kind_is_decoded_once(
    root: Path, planned: list[set[str]]
) -> None:
    overrides = ["ensemble=checkpoint", "+ensemble@ensemble.also.checkpoint=checkpoint"]
    decode(settings(root, *overrides))
    decode(settings(root, overrides[0]))
    assert planned[0] == planned[1]


def test_identical_members_stop_the_run_before_decoding(
    root: Path, planned: list[set[str]]
) -> None:
    overrides = [
        "ensemble=mc_dropout",
        "ensemble.settings.rate=1e-12",
        "ensemble.settings.members=2",
    ]
    with pytest.raises(
        PipelineError,
        match=r"members mc_dropout_1 \(.+\) and mc_dropout_2 \(.+\) are the same model",
    ):
        decode(settings(root, *overrides))
    assert planned == []


def test_averaged_checkpoints_are_removed_when_no_longer_needed(
    root: Path, planned: list[set[str]]
) -> None:
    overrides = [
        "ensemble=checkpoint",
        "ensemble.settings.members=1",
        "ensemble.settings.average=2",
    ]
    decode(settings(root, *overrides))
    averages = root / "resume" / "ensembles" / "nmt_ende"
    assert len(list(averages.iterdir())) == 2
    decode(settings(root))
    assert list(averages.iterdir()) == []
