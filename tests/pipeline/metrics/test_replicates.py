"""Cells of replicates: one checkpoint ensemble from each of several training runs."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics import prediction_rejection_ratio, roc_auc, sentence_bleu
from pipeline.metrics.copy_through import copy_through_cells
from pipeline.metrics.decodes import by_key, common_cell
from pipeline.metrics.performance import quality_cells
from pipeline.metrics.sentence_detection import error_detection_cells, ood_detection_cells

REFERENCES = ["a b c d", "e f g h", "a c e g", "b d f h"]
TEXTS = [["a b c d", "e f x", "a", "b d f h"], ["a b", "e f g h", "a c e g", "y"]]
VALUES = [[0.1, 0.5, 0.9, 0.2], [0.8, 0.1, 0.3, 0.7]]


@pytest.fixture
def runs(measured):
    """Return a function that makes two checkpoint ensembles and their measures on a test set."""

    def make(test_set: str, shift: float):
        replicates = []
        for run, (texts, values) in enumerate(zip(TEXTS, VALUES, strict=True)):
            decoded = measured([value * shift for value in values], texts, REFERENCES)
            cell = replace(decoded.decode.cell, ensemble="checkpoint", test_set=test_set)
            members = (f"seed_{run}.last", f"seed_{run}.best")
            replicates.append(
                replace(decoded, decode=replace(decoded.decode, cell=cell, members=members))
            )
        return replicates

    return make


def test_error_detection_is_the_mean_over_runs_with_its_spread(runs, evaluation):
    replicates = runs("newstest14", 1)
    (cell,) = error_detection_cells(replicates, evaluation)
    each = [
        prediction_rejection_ratio(100 - sentence_bleu(texts, REFERENCES), values)
        for texts, values in zip(TEXTS, VALUES, strict=True)
    ]
    assert cell.value == pytest.approx(np.mean(each))
    assert cell.spread == pytest.approx(np.std(each, ddof=1))
    assert "ensemble:checkpoint|ensembles:2|" in cell.signature


def test_out_of_domain_detection_pairs_each_run_with_its_own_in_domain_decode(runs, evaluation):
    (cell,) = ood_detection_cells(runs("newstest14", 1), runs("PRM", 1.5), evaluation)
    each = [roc_auc(values, [1.5 * value for value in values]) for values in VALUES]
    assert cell.value == pytest.approx(np.mean(each))
    assert cell.spread == pytest.approx(np.std(each, ddof=1))
    assert (cell.T, cell.B, cell.n) == ("10", "1", 8)


def test_quality_and_copied_share_have_a_spread(runs, evaluation):
    decodes = [run.decode for run in runs("newstest14", 1)]
    quality, secondary = quality_cells(decodes, evaluation)
    (copied,) = copy_through_cells(decodes, evaluation)
    assert (quality.metric, secondary.metric) == ("bleu", "chrf")
    assert quality.spread is not None
    assert secondary.spread is not None
    assert copied.spread == 0


def test_teacher_forcing_has_no_beam_and_no_temperature(runs, evaluation):
    def forced(test_set: str, shift: float):
        for run in runs(test_set, shift):
            cell = replace(run.decode.cell, regime="teacher_forcing", hypotheses="reference")
            grid = [replace(run.grid[0], beam=beam) for beam in (1, 5)]
            yield replace(run, decode=replace(run.decode, cell=cell), grid=grid)

    (cell,) = ood_detection_cells(
        list(forced("newstest14", 1)), list(forced("L-DEDE", 2)), evaluation
    )
    assert (cell.T, cell.B, cell.regime) == ("", "1", "teacher_forcing")


def test_a_run_without_a_measure_is_reported(runs, evaluation):
    replicates = runs("newstest14", 1)
    replicates[1] = replace(replicates[1], grid=[replace(replicates[1].grid[0], values={})])
    (cell,) = error_detection_cells(replicates, evaluation)
    assert cell.reason == "not every ensemble of this kind has the measure"
    (cell,) = ood_detection_cells(replicates, runs("PRM", 1), evaluation)
    assert cell.reason == "the in-domain set lacks this measure"
    replicates[1] = replace(replicates[1], grid=[])
    (cell,) = error_detection_cells(replicates, evaluation)
    assert cell.reason == "not every ensemble of this kind has the measure"


def test_replicates_keep_their_order_and_have_the_same_sentences(runs):
    first, second = runs("newstest14", 1)
    permuted = runs("PRM", 1)
    result = by_key([first, permuted[0], second, permuted[1]], lambda run: run.decode)
    assert result == [[first, second], permuted]
    short = replace(second.decode, texts=["a"])
    with pytest.raises(DataError, match=r"same sentences \(got \[1, 4\] sentences\)"):
        common_cell([first.decode, short])


@pytest.mark.parametrize(
    ("ensemble", "members", "of"),
    [("single", 2, "members:2"), ("single", 1, "members:1"), ("snapshot", 2, "ensembles:2")],
)
def test_the_signature_of_replicates_says_what_was_counted(runs, ensemble, members, of):
    decodes = [
        replace(run.decode, cell=replace(run.decode.cell, ensemble=ensemble))
        for run in runs("PRM", 1)[:members]
    ]
    signature = common_cell(decodes).signature
    head, _, digest = signature.rpartition("|decodes:")
    assert head == f"task:nmt_ende|set:PRM|ensemble:{ensemble}|{of}|regime:beam"
    assert len(digest) == 12


def test_single_ensemble_keeps_the_signature_of_its_decode(runs):
    (ensemble, _) = runs("PRM", 1)
    assert common_cell([ensemble.decode]) == ensemble.decode.cell
