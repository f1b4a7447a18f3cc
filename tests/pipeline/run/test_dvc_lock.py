"""Stage compose says what DVC will run, before a stage that takes long begins."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from omegaconf import OmegaConf

from pipeline.run import dvc_lock
from pipeline.run.code import declared_params, stages_of_a_task
from pipeline.run.dvc_lock import announcement
from tests.composed_settings import composed_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of settings, and a dvc.lock that has recorded them as DVC writes numbers."""
    monkeypatch.setenv("DVC_STAGE", "compose@nmt_ende")
    monkeypatch.delenv("DVC_EXP_NAME", raising=False)
    monkeypatch.setattr(dvc_lock, "ROOT", tmp_path)
    path = tmp_path / "resolved.yaml"
    path.write_text(OmegaConf.to_yaml(composed_settings("train.learning_rate=1e-05")))
    content = dvc_lock._read(path)
    stages = {
        f"{stage}@nmt_ende": {
            "params": {
                str(path): {
                    key: dvc_lock._value(content, key) for key in declared_params(stage) or []
                }
            }
        }
        for stage in stages_of_a_task()
    }
    text = yaml.safe_dump({"stages": stages}).replace("1.0e-05", "1e-05")
    assert "1e-05" in text
    (tmp_path / "dvc.lock").write_text(text)
    return path


def change(settings: Path, key: str, value: int) -> None:
    config = OmegaConf.load(settings)
    OmegaConf.update(config, key, value)
    settings.write_text(OmegaConf.to_yaml(config))


def test_nothing_is_announced_without_dvc_or_without_a_change(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert announcement("nmt_ende", settings) is None
    change(settings, "decode.beam", 7)
    monkeypatch.delenv("DVC_STAGE")
    assert announcement("nmt_ende", settings) is None


def test_the_first_stage_whose_settings_changed_is_named_with_those_that_follow(
    settings: Path,
) -> None:
    change(settings, "decode.beam", 7)
    assert announcement("nmt_ende", settings) == (
        "nmt_ende: settings of stage decode have changed (decode), so that DVC runs it, and then "
        "uncertainty, metrics, tables where inputs differ."
    )
    change(settings, "train.updates", 7)
    assert "of stage train have changed (train)" in str(announcement("nmt_ende", settings))


def test_an_experiment_without_the_lock_of_its_results_says_how_to_keep_them(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dvc.lock").unlink()
    words = "nmt_ende: dvc.lock has no results, so that DVC runs prepare, train, decode, uncert"
    text = announcement("nmt_ende", settings)
    assert text is not None
    assert text.startswith(words)
    assert "commit dvc.lock" not in text
    monkeypatch.setenv("DVC_EXP_NAME", "puffy-coni")
    assert "stop this experiment (dvc queue stop --kill), commit" in str(
        announcement("nmt_ende", settings)
    )
