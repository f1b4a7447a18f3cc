from __future__ import annotations

import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pipeline.errors import DataError
from pipeline.fairseq_bridge.models.weights import load_weights
from pipeline.fairseq_bridge.training.state import resumed_iterator


class Malicious:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("form", ["zip", "plain", "cut"])
def test_code_in_a_state_is_skipped_and_not_run(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state_00000003.pt"
    state = {"updates": 3, "model": Malicious(tmp_path / "made")}
    if form == "zip":
        torch.save(state, path)
    else:
        content = pickle.dumps(state, protocol=2)
        path.write_bytes(content if form == "plain" else content[:4] + b"h\x05.")
    settings = {"updates": 9, "cycles": 1, "checkpoint_interval_updates": 3, "keep_checkpoints": 1}
    job: Any = SimpleNamespace(resume=tmp_path, train=settings, title="member")
    trainer = SimpleNamespace(get_train_iterator=lambda epoch: f"from epoch {epoch}")
    curve: Any = None
    assert resumed_iterator(trainer, curve, job) == "from epoch 1"
    assert "state_00000003.pt is damaged; state state_00000003.pt is skipped" in caplog.text
    assert not (tmp_path / "made").exists()


def test_code_in_place_of_weights_is_rejected_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "average.safetensors"
    for content in (pickle.dumps(Malicious(tmp_path / "made")), b"", b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"average\.safetensors: damaged safetensors file"):
            load_weights(torch.nn.Linear(2, 2), path)
    assert not (tmp_path / "made").exists()
