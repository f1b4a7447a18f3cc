"""Stage compose says what DVC will run, before a stage that takes long begins."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from pipeline.run import dvc_lock
from pipeline.run.code import declared_params, stages_of_a_task
from pipeline.run.dvc_lock import announcement
from tests.composed_settings import composed_settings

FILE = "outputs/config/nmt_ende/resolved.yaml"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DictConfig:
    """Settings, and a dvc.lock that has recorded them."""
    monkeypatch.setenv("DVC_STAGE", "compose@nmt_ende")
    monkeypatch.delenv("DVC_EXP_NAME", raising=False)
    monkeypatch.setattr(dvc_lock, "ROOT", tmp_path)
    config = OmegaConf.create(OmegaConf.to_container(composed_settings(), resolve=True))
    stages = {
        f"{stage}@nmt_ende": {
            "params": {FILE: {key: dvc_lock._plain(config, key) for key in declared_params(stage)}}
        }
        for stage in stages_of_a_task()
    }
    (tmp_path / "dvc.lock").write_text(yaml.safe_dump({"stages": stages}))
    return config


def test_nothing_is_announced_without_dvc_or_without_a_change(
    config: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert announcement(config, "nmt_ende", FILE) is None
    config.decode.beam = 7
    monkeypatch.delenv("DVC_STAGE")
    assert announcement(config, "nmt_ende", FILE) is None


def test_the_first_stage_whose_settings_changed_is_named_with_those_that_follow(
    config: DictConfig,
) -> None:
    config.decode.beam = 7
    assert announcement(config, "nmt_ende", FILE) == (
        "nmt_ende: settings of stage decode have changed (decode), so that DVC runs it, and then "
        "uncertainty, metrics, tables where inputs differ."
    )
    config.train.updates = 7
    assert "of stage train have changed (train)" in str(announcement(config, "nmt_ende", FILE))


def test_an_experiment_without_the_lock_of_its_results_says_how_to_keep_them(
    config: DictConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dvc.lock").unlink()
    words = "nmt_ende: dvc.lock has no results, so that DVC runs prepare, train, decode, uncert"
    text = announcement(config, "nmt_ende", FILE)
    assert text is not None
    assert text.startswith(words)
    assert "commit dvc.lock" not in text
    monkeypatch.setenv("DVC_EXP_NAME", "puffy-coni")
    assert "stop this experiment, commit dvc.lock" in str(announcement(config, "nmt_ende", FILE))
