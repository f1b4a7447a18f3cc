"""A stage starts multiruns for its parts and for shards of parts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import open_dict, read_write

from pipeline.decoding.gpus import gpu_of_job
from pipeline.errors import PipelineError
from pipeline.run.artifacts import PartFolder
from pipeline.run.jobs import job_number, jobs_of_gpus, run_parts, run_shards
from pipeline.run.settings import CONF, PipelineConfig, typed
from tests.artifacts import made_by


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record commands instead of running them; the first of two fails."""
    commands: list[list[str]] = []

    def run_group(command: list[str]) -> int:
        commands.append(command)
        return len(commands) % 2

    monkeypatch.setattr("pipeline.run.jobs._run_in_group", run_group)
    return commands


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PipelineConfig:
    overrides = ["hydra/launcher=slurm", "hydra.launcher.partition=long", f"io.root='{tmp_path}'"]
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        composed = compose("pipeline", overrides, return_hydra_config=True)
    # Hydra keeps one configuration per process. monkeypatch restores it after the test.
    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)
    with open_dict(composed):
        HydraConfig.instance().set_config(composed.copy())
        del composed["hydra"]
        composed.from_config = "a b.yaml"
    return typed(composed)


def test_shards_and_then_parts_go_to_the_chosen_launcher(
    config: PipelineConfig, commands: list[list[str]], tmp_path: Path
) -> None:
    parts = dict.fromkeys("abc", made_by("decode"))
    folder = PartFolder(tmp_path / "decode" / "nmt_ende", "decode", parts)
    shards = {"a": ["a@1of2", "a@2of2"], "b": [], "c": ["c@1of2", "c@2of2"]}
    with pytest.raises(PipelineError, match="shards of parts failed"):
        run_shards(config, folder, shards)
    run_shards(config, folder, shards)
    with pytest.raises(PipelineError, match=r"3 of 3 parts failed \(a, b, c\)"):
        run_parts(config, folder, 2)
    same = [
        *(sys.executable, "-m", "stages.decode", "--multirun"),
        *("from_config='a b.yaml'", f"io.root='{tmp_path}'"),
        "hydra.callbacks.sweep_parent.label=''",
    ]
    launcher = [
        "hydra.sweep.dir=${hydra.callbacks.sweep_parent.folder}",
        "hydra.sweep.subdir=${hydra.job.num}",
        *("hydra/launcher=slurm", "hydra.launcher.partition=long"),
    ]
    assert commands == [
        *2 * [[*same, "part='a@1of2','a@2of2','c@1of2','c@2of2'", *launcher]],
        [*same, "part='a + b','c'", *launcher],
    ]


def test_cluster_job_runs_its_parts_itself(
    config: PipelineConfig, commands: list[list[str]], tmp_path: Path
) -> None:
    with read_write(HydraConfig.get()):
        HydraConfig.get().mode = RunMode.MULTIRUN
    folder = PartFolder(tmp_path / "decode" / "nmt_ende", "decode", {"a": made_by("decode")})
    with pytest.raises(PipelineError, match="1 of 1 parts failed"):
        run_parts(config, folder)
    assert commands[0][-1] == "hydra/launcher=local"


def test_no_run_is_started_without_parts(
    config: PipelineConfig, commands: list[list[str]], tmp_path: Path
) -> None:
    folder = PartFolder(tmp_path / "decode" / "nmt_ende", "decode", {"a": made_by("decode")})
    run_shards(config, folder, {"a": []})
    with folder.building("a"):
        pass
    run_shards(config, folder, {"a": ["a@1of2", "a@2of2"]})
    assert run_parts(config, folder) == []
    assert commands == []


def test_each_gpu_has_one_job_with_the_next_part_in_turn() -> None:
    assert jobs_of_gpus(["a", "b", "c", "d", "e"], 2) == [["a", "c", "e"], ["b", "d"]]
    assert jobs_of_gpus(["a", "b"], 4) == [["a"], ["b"]]
    assert [gpu_of_job(job, 2) for job in range(4)] == [0, 1, 0, 1]


def test_local_jobs_are_as_many_as_gpus_and_a_cluster_has_its_own_rule(
    config: PipelineConfig, commands: list[list[str]], tmp_path: Path
) -> None:
    parts = dict.fromkeys("abc", made_by("decode"))
    folder = PartFolder(tmp_path / "decode" / "nmt_ende", "decode", parts)
    shards = {"a": ["a@1of2", "a@2of2"], "b": [], "c": ["c@1of2", "c@2of2"]}
    with pytest.raises(PipelineError, match="shards of parts failed"):
        run_shards(config, folder, shards, 2)
    assert commands[-1][-5] == "part='a@1of2','a@2of2','c@1of2','c@2of2'"
    assert job_number() == 0
    with read_write(HydraConfig.get()):
        HydraConfig.get().mode = RunMode.MULTIRUN  # inside of a cluster's job jobs are local
        HydraConfig.get().job.num = 3
    assert job_number() == 3
    run_shards(config, folder, shards, 2)
    with pytest.raises(PipelineError, match="3 of 3 parts failed"):
        run_parts(config, folder, 2, 8)
    local = "hydra/launcher=local"
    assert [[command[-5], *command[-2:]] for command in commands[1:]] == [
        ["part='a@1of2 + c@1of2','a@2of2 + c@2of2'", local, "hydra.launcher.n_jobs=2"],
        ["part='a','b','c'", local, "hydra.launcher.n_jobs=3"],
    ]


@pytest.mark.slow
def test_jobs_end_with_a_stage_that_is_killed() -> None:
    job = "import os, time; print(os.getpid(), flush=True); time.sleep(20); print('runs')"
    stage = "import sys; from pipeline.run.jobs import _run_in_group; "
    stage += f"_run_in_group([sys.executable, '-c', {job!r}])"
    command = [sys.executable, "-c", stage]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdecimal()
        process.kill()
        assert process.stdout.read() == ""  # ends when the job, which holds the pipe too, has ended
