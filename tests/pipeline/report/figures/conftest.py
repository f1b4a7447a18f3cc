from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.metrics.external_scores import ExternalScores
from pipeline.report.figures import TaskEvidence
from tests.pipeline.toy_task import N_SENTENCE, Toy


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    toy = Toy(tmp_path_factory.mktemp("toy run: 日本"))
    toy.write()
    return toy


@pytest.fixture
def evidence(toy: Toy) -> TaskEvidence:
    """Return the evidence of the toy run, with a score of every decode but those of one test set.

    One sentence was not scored.
    """
    evidence = toy.evidence()
    values = {
        decode.path: np.r_[np.random.default_rng(5).normal(70, 9, N_SENTENCE - 1), np.nan]
        for decode in evidence.decodes.values()
        if decode.cell.test_set != "debian-reference"
    }
    return replace(evidence, scores=[ExternalScores("da", True, values, dict.fromkeys(values, ""))])


@pytest.fixture
def nothing(evidence: TaskEvidence) -> TaskEvidence:
    """Return the evidence of a run without decodes."""
    return replace(evidence, decodes={})
