"""A wheel has all packages and all files that stages read; stages run from its files alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import pytest
from setuptools import Distribution

from pipeline.run.code import code_digest, declared_params
from pipeline.run.extras import EXTRAS
from pipeline.run.settings import CONF, DVC_YAML, IS_CHECKOUT, ROOT
from tests.docs.pages import blocks


@pytest.fixture(scope="module")
def contents() -> Mapping[str, Path]:
    """Path in the wheel -> the file that a build copies there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        distribution = Distribution({"script_name": "setup.py"})
        distribution.parse_config_files(["pyproject.toml"])
        build = distribution.get_command_obj("build_py")
        build.ensure_finalized()
        return {
            Path(path).relative_to(build.build_lib).as_posix(): ROOT / source
            for path, source in build.get_output_mapping().items()
        }


@pytest.fixture(scope="module")
def installed(contents: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the wheel, below a repository of its user."""
    user = tmp_path_factory.mktemp("user")
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *author, *command], cwd=user, check=True)
    folder = user / "site-packages"
    for path, source in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / path)
    return folder


# Python runs this file at its start, and then finds no package of an extra.
HIDE = f"""
import sys

class Finder:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *arguments):
        hidden = name.partition(".")[0] in {[*chain(*EXTRAS.values()), "dvc"]}
        return None if hidden else self.finder.find_spec(name, *arguments)

sys.meta_path = [Finder(finder) for finder in sys.meta_path]
"""


@pytest.fixture(scope="module")
def without_extras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without_extras")
    (folder / "sitecustomize.py").write_text(HIDE)
    return folder


def _run(folder: Path, path: Sequence[Path], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with the files of a wheel in place of this checkout."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ":".join(map(str, path))},
        capture_output=True,
        text=True,
        check=False,
    )


def _output(folder: Path, path: Sequence[Path], *arguments: str) -> str:
    done = _run(folder, path, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_wheel_has_every_file_of_pipeline_and_stages(contents: Mapping[str, Path]) -> None:
    """A new package is missing until it is in the list of pyproject.toml."""
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in ("pipeline", "stages")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files - contents.keys() == set(), "add the package or its data files to pyproject.toml"
    assert {path for path in contents if not path.startswith("pipeline/repository/")} == files


def test_a_wheel_has_settings_and_stages_of_dvc_inside_of_pipeline(
    contents: Mapping[str, Path],
) -> None:
    files = {path.relative_to(ROOT) for path in (DVC_YAML, *CONF.rglob("*.*"))}
    repository = Path("pipeline/repository")
    inside = {path for path in map(Path, contents) if path.is_relative_to(repository)}
    assert inside == {repository / path for path in files}


def test_this_is_a_checkout() -> None:
    """Its settings are those beside pipeline/, also if it is installed as editable."""
    assert IS_CHECKOUT
    assert ROOT / "conf" == CONF


@pytest.mark.slow
def test_stages_run_from_another_folder_and_write_there(installed: Path, tmp_path: Path) -> None:
    _output(tmp_path, [installed], "-m", "stages.compose", "experiment=smoke")
    assert (tmp_path / "outputs" / "config" / "nmt_ende" / "resolved.yaml").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["outputs"]


@pytest.mark.slow
def test_provenance_is_that_of_a_checkout_with_the_same_code(
    installed: Path, tmp_path: Path
) -> None:
    """What a checkout has decoded is not decoded again; the commit around a wheel is not ours."""
    code = (
        "from pipeline.run.code import code_digest, commit_hash, declared_params\n"
        "print(*map(code_digest, {}), declared_params('train'), commit_hash(), sep='\\n', end='')"
    )
    stages = ("prepare", "train", "decode", "uncertainty", "metrics", "tables")
    printed = _output(tmp_path, [installed], "-c", code.format(stages))
    *digests, params, commit = printed.splitlines()
    assert digests == [code_digest(stage) for stage in stages]
    assert (params, commit) == (str(declared_params("train")), "unknown")


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["prepare", "train", "decode", "plan"])
def test_without_an_extra_a_stage_names_it(
    stage: str, installed: Path, without_extras: Path, tmp_path: Path
) -> None:
    (tmp_path / "outputs").mkdir()
    done = _run(tmp_path, [without_extras, installed], "-m", f"stages.{stage}")
    assert done.returncode == 1
    assert done.stderr == (
        f"error: torch: not installed, but stage {stage} needs it. "
        "Run pip install 'sequence-uncertainty[train]'.\n"
    )


@pytest.mark.slow
def test_without_extras_stores_become_metrics_and_tables(
    installed: Path, without_extras: Path, tmp_path: Path
) -> None:
    """The example store of a page. Runs of given stores are not tracked, not even their sweep."""
    path = [without_extras, installed]
    (example,) = (
        block.text
        for block in blocks(ROOT / "docs" / "write_a_store.md")
        if block.title == "write_toy.py"
    )
    _output(tmp_path, path, "-c", example, "toy.h5")
    stores = ("io.store=toy.h5", "io.out=one,two", "uncertainty.beam=1")
    quickly = ("metrics.resamples=0", "~report.figures")
    printed = _output(tmp_path, path, "-m", "stages.metrics", "-m", *stores, *quickly)
    assert "mlflow" not in printed
    _output(tmp_path, path, "-m", "stages.tables", "io.out=two")
    assert (tmp_path / "one" / "metrics" / "toy" / "cells.csv").is_file()
    assert (tmp_path / "two" / "report" / "index.html").is_file()
    assert {entry.name for entry in tmp_path.iterdir()} == {"toy.h5", "one", "two", "outputs"}
