from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.report.figures import TaskEvidence
from tests.pipeline.toy_task import Toy


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    toy = Toy(tmp_path_factory.mktemp("toy run: 日本"))
    toy.write()
    return toy


@pytest.fixture
def evidence(toy: Toy) -> TaskEvidence:
    return toy.evidence()


@pytest.fixture
def nothing(evidence: TaskEvidence) -> TaskEvidence:
    """Return the evidence of a run without decodes."""
    return replace(evidence, decodes={})
