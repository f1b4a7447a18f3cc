"""Fixtures for the tests of stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stages.trained_members import prepare_and_train


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a root folder with prepared data and two random members."""
    root = tmp_path_factory.mktemp("out puts: 日本")
    prepare_and_train(root, has_dev=True)
    return root
