from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.calibration import (
    best_tokens,
    calibration_cells,
    expected_calibration_error,
    matching_tokens,
)
from pipeline.metrics.cell import Cell
from pipeline.metrics.evaluation import Evaluation
from pipeline.quality.translation import sentence_bleu
from pipeline.report.figures import TaskEvidence
from pipeline.store import SUBSET, Store, open_own_store
from pipeline.uncertainty.sequence import sequence_measures
from tests.pipeline.toy_task import MEMBERS, Toy


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    toy = Toy(tmp_path_factory.mktemp("toy"))
    toy.write()
    return toy


@pytest.fixture
def evidence(toy: Toy) -> TaskEvidence:
    """Return evidence without the decodes of subsets of members, as stage metrics does."""
    evidence = toy.evidence()
    kept = {
        part: decode for part, decode in evidence.decodes.items() if decode.cell.ensemble != SUBSET
    }
    return replace(evidence, decodes=kept)


def cells(evidence: TaskEvidence, evaluation: Evaluation) -> dict[tuple[str, str, str, str], Cell]:
    result = calibration_cells(evidence.decodes, evidence.uncertainty, evaluation)
    return {(cell.test_set, cell.ensemble, cell.hypotheses, cell.column): cell for cell in result}


def first_tokens(store: Store, sentence: int) -> slice:
    hypothesis = store.hypothesis_offset[sentence]
    return slice(*store.token_offset[hypothesis : hypothesis + 2])


def test_tokens_of_a_single_member_by_hand(
    toy: Toy, evidence: TaskEvidence, evaluation: Evaluation
) -> None:
    errors = []
    for member in MEMBERS:
        with open_own_store(evidence.decodes[f"{member}.beam.help"].path) as store:
            ids, logprob = store.read("/token/id"), store.read("/token/logprob")[:, 0]
            rows = [first_tokens(store, sentence) for sentence in range(store.n_sentence)]
        right = matching_tokens([ids[row].tolist() for row in rows], toy.references["help"])
        confidence = np.exp(np.concatenate([logprob[row] for row in rows]).astype(float))
        errors.append(expected_calibration_error(confidence, np.concatenate(right)))
    cell = cells(evidence, evaluation)["help", "single", "-", "token_confidence"]
    assert cell.value == pytest.approx(np.mean(errors))
    assert cell.spread == pytest.approx(np.std(errors, ddof=1))
    assert cell.low is not None
    assert cell.metric == "ece"
    assert "ECE|bins:10" in cell.signature


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_sentences_of_an_ensemble_by_hand(
    evidence: TaskEvidence, evaluation: Evaluation, combination: str
) -> None:
    decode = evidence.decodes[f"random_init.{combination}.debian-reference"]
    with open_own_store(decode.path) as store:
        rate = sequence_measures(store, 1, 1.0, True)[f"{combination}_entropy_s"]
    bleu = sentence_bleu([str(o) for o in decode.texts], [str(o) for o in decode.references])
    cell = cells(evidence, evaluation)[
        "debian-reference", "random_init", combination, "sequence_confidence"
    ]
    expected = expected_calibration_error(np.exp(-rate), bleu / 100)
    assert cell.value == pytest.approx(expected, rel=1e-5)
    assert cell.n == len(decode.texts)


def test_only_in_domain_decodes_have_cells(evidence: TaskEvidence, evaluation: Evaluation) -> None:
    assert {key[:2] for key in cells(evidence, evaluation)} == {
        (test_set, ensemble)
        for test_set in ("help", "debian-reference")
        for ensemble in ("single", "random_init")
    }


def test_missing_forecasts_have_a_reason(evidence: TaskEvidence, evaluation: Evaluation) -> None:
    part = "random_init.prex.help"
    decode = evidence.decodes[part]
    alone = replace(evidence, decodes={part: decode})
    result = cells(alone, evaluation)["help", "random_init", "prex", "token_confidence"]
    assert (result.value, result.reason) == (None, "no reference was teacher-forced")
    unscored = replace(decode, references=[None] * len(decode.texts))
    result = cells(replace(evidence, decodes={part: unscored}), evaluation)[
        "help", "random_init", "prex", "sequence_confidence"
    ]
    assert (result.value, result.reason) == (None, "no reference")


def test_missing_measures_of_an_ensemble_are_named(evidence: TaskEvidence, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"token\.parquet: no such file\. Run python"):
        best_tokens(
            evidence.decodes["random_init.prex.debian-reference"], tmp_path / "token.parquet"
        )
