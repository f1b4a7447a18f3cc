"""Results are made again if the file of a measure of the user changes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hydra import compose, initialize_config_dir

from pipeline.run.artifacts import Artifact, PartFolder
from pipeline.run.settings import CONF, PipelineConfig, typed
from pipeline.store import Hypothesis, StoreWriter
from pipeline.sweep import decode_folder, point_folder
from pipeline.uncertainty.token import token_statistics
from stages.uncertainty import uncertainty
from tests.artifacts import made_by

MODULE = "own_functions_of_a_test"
SETTINGS = [f"extra_measures.mine={MODULE}.of_sentences"]
SETTINGS += [f"hypothesis_measures.mine={MODULE}.of_hypotheses"]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a module with a measure of sentences and one of hypotheses."""
    path = tmp_path / "code" / f"{MODULE}.py"
    path.parent.mkdir()
    path.write_text(
        "def of_sentences(store):\n    return [1.0] * store.n_sentence\n"
        "def of_hypotheses(store):\n    return [1.0] * store.n_hypothesis\n"
    )
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return path


def _settings(root: Path, setting: str) -> PipelineConfig:
    overrides = [f"io.root={root}", f"+uncertainty.{setting}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return typed(compose("pipeline", overrides))


def _decoded(root: Path, config: PipelineConfig) -> None:
    """Write the decode of one sentence."""
    name = "e.prex.own"
    folder = PartFolder(root / "decode" / config.task.name, "decode", {name: made_by("decode")})
    logprob = np.log([[[0.5, 0.5], [0.5, 0.5]]])
    hypothesis = Hypothesis([0], "a", 0.0, True, token_statistics(logprob, np.array([0])))
    attributes = {"test_set": "own", "ensemble": "e", "regime": "beam", "combination": "prex"}
    with (
        folder.building(name) as part,
        StoreWriter(part / "store.h5", vocab_size=2, members=["a", "b"], **attributes) as store,
    ):
        store.add_sentence(0, "s", "r", [hypothesis])
    folder.write_manifest()


@pytest.mark.parametrize("setting", SETTINGS)
def test_measures_are_made_from_the_file_of_the_function(
    module: Path, tmp_path: Path, setting: str
) -> None:
    config = _settings(tmp_path, setting)
    _decoded(tmp_path, config)
    digests = []
    for comment in ("", "", "# another version\n"):
        module.write_text(module.read_text() + comment)
        uncertainty(config)
        measures = Artifact(tmp_path / "uncertainty" / config.task.name, "uncertainty")
        digests.append(measures.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("setting", SETTINGS)
def test_point_of_a_sweep_is_made_again(module: Path, tmp_path: Path, setting: str) -> None:
    config = _settings(tmp_path, setting)
    for stage in ("prepare", "train"):
        (tmp_path / stage).mkdir()
    with decode_folder(config) as inside:
        _decoded(Path(inside.io.root), config)
    made = []
    for comment in ("", "", "# another version\n"):
        module.write_text(module.read_text() + comment)
        with point_folder(config) as (inside, is_made):
            made.append(is_made)
            numbers = Path(inside.io.root) / "metrics" / config.task.name / "numbers.json"
            numbers.parent.mkdir(parents=True, exist_ok=True)
            numbers.write_text("{}")
    assert made == [False, True, False]
