"""The composed file has all settings in the order of conf/."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import OmegaConf

from pipeline.run.settings import CONF, typed
from stages.compose import compose


@pytest.mark.parametrize("task", ["nmt_ende", "nmt_enfr"])
def test_resolved_file_has_the_settings_in_their_order(tmp_path: Path, task: str) -> None:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        settings = typed(hydra_compose("pipeline", [f"io.root='{tmp_path}'", f"task={task}"]))
    compose(settings)
    written = OmegaConf.load(tmp_path / "config" / task / "resolved.yaml")
    assert OmegaConf.to_container(written) == OmegaConf.to_container(settings, resolve=True)
    assert list(written.task.test_sets) == list(settings.task.test_sets)
    assert list(written) == list(settings)
