from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.decoding.resources import estimate, refuse_what_does_not_fit
from pipeline.errors import MachineError
from pipeline.run.settings import DumpConfig

LENGTHS = [10, 20]


@pytest.fixture
def model(table_model: Any) -> Any:
    return table_model(lambda source, prefix: np.full((4, 1000), 1e-3))


def test_sizes_follow_the_settings(model: Any, decode_config: Any) -> None:
    dump = DumpConfig("full", "full", "float16", 1)
    config = decode_config(beam=5, n_best=2, batch_sentences=8)
    found = estimate(LENGTHS, model, "beam", "prex", config, dump)
    assert (found.sentences, found.tokens) == (2, 60)
    assert found.disk_bytes == 2 * 60 * (4 * 1000 * 2 + 14 * 4)
    assert found.memory_bytes == 8 * 5 * 4 * 1000 * 4
    drawn = estimate(LENGTHS, model, "sample", "member", config, dump)
    assert drawn.tokens == 30 * 5 * 4
    assert estimate(LENGTHS, model, "teacher_forcing", "prex", config, dump).tokens == 30


def test_a_dump_that_does_not_fit_is_refused_with_both_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: Any, decode_config: Any
) -> None:
    expected = estimate(
        LENGTHS, model, "beam", "prex", decode_config(), DumpConfig("full", "full", "float32", 1)
    )
    refuse_what_does_not_fit(expected, tmp_path, "a part")
    usage = namedtuple("usage", "total used free")(2**20, 2**20, 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(MachineError, match=r"room for a part \(2 sentences.*5 MiB.*got 1 MiB free"):
        refuse_what_does_not_fit(expected, tmp_path, "a part")
