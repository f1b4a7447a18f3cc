from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sklearn.metrics import roc_auc_score

from pipeline.errors import DataError
from pipeline.metrics import prediction_rejection_ratio, sentence_bleu
from stages.metrics import metrics
from tests.stages.synthetic_run import FORCED, SEEDS, N, SyntheticRun, settings


def word_counts(hypotheses: list[str], references: list[str]) -> float:
    return float(sum(len(text.split()) for text in hypotheses))


@pytest.fixture
def run(tmp_path: Path) -> SyntheticRun:
    run = SyntheticRun(tmp_path / "out: 日本")
    run.write()
    return run


def test_bleu_of_ensemble_and_single_members(run: SyntheticRun) -> None:
    cells = run.cells()
    cell = cells["help", "random_init", "prex", "", "bleu", "bleu"]
    texts = run.texts["random_init.prex.help"]
    expected = BLEU().corpus_score(texts, [run.references]).score
    assert float(cell["value"]) == pytest.approx(expected)
    assert float(cell["low"]) < expected < float(cell["high"])
    assert cell["n"] == str(N)
    assert cell["data"].startswith("LibreOffice")
    assert cell["roles"] == "newstest14 nwt14"
    assert cell["signature"].startswith("part:random_init.prex.help; BLEU|nrefs:1")

    chrf = cells["help", "random_init", "prex", "", "chrf", "chrf"]
    expected = CHRF().corpus_score(texts, [run.references]).score
    assert float(chrf["value"]) == pytest.approx(expected)
    assert float(chrf["low"]) < expected < float(chrf["high"])
    assert "; chrF2|nrefs:1|case:mixed|" in chrf["signature"]

    single = cells["help", "single", "-", "", "bleu", "bleu"]
    each = [
        BLEU().corpus_score(run.texts[f"{seed}.beam.help"], [run.references]).score
        for seed in SEEDS
    ]
    assert float(single["value"]) == pytest.approx(np.mean(each))
    assert float(single["spread"]) == pytest.approx(np.std(each, ddof=1))


def test_nll_of_both_posteriors_and_single_members(run: SyntheticRun) -> None:
    cells = run.cells()

    def value(ensemble: str, hypotheses: str) -> float:
        return float(cells["help", ensemble, hypotheses, "", "nll", "nll"]["value"])

    logprob = [sentence.astype(float) for sentence in run.logprob]
    prex = np.mean([-np.log(np.exp(sentence).mean(axis=1)).mean() for sentence in logprob])
    expr = np.mean(
        [-np.log(np.exp(sentence.sum(axis=0)).mean()) / len(sentence) for sentence in logprob]
    )
    single = np.mean([-sentence.mean(axis=0) for sentence in logprob])
    assert value("random_init", "prex") == pytest.approx(prex)
    assert value("random_init", "expr") == pytest.approx(expr)
    assert value("single", "-") == pytest.approx(single)


def test_error_detection_is_the_rejection_ratio(run: SyntheticRun) -> None:
    part = "random_init.prex.help"
    frame = run.write_measures(part)
    cells = run.cells()
    first = frame[frame.beam == 1]
    error = 100 - sentence_bleu([str(text) for text in run.texts[part]], run.references)
    cell = cells["help", "random_init", "prex", "1", "prex_entropy_s", "prr"]
    expected = prediction_rejection_ratio(error, first.prex_entropy_s)
    assert float(cell["value"]) == pytest.approx(expected)
    assert cell["T"] == ""
    variance = cells["help", "random_init", "prex", "1", "var_p", "prr"]
    ranked_by_logarithm = prediction_rejection_ratio(error, first.ln_var_p)
    assert float(variance["value"]) == pytest.approx(ranked_by_logarithm)


def test_out_of_domain_detection_is_the_roc_auc(run: SyntheticRun) -> None:
    in_domain = run.write_measures("random_init.prex.help")
    out_of_domain = run.write_measures("random_init.prex.permuted")
    cell = run.cells()["permuted", "random_init", "prex", "5", "prex_entropy_s", "roc_auc"]
    scores = [frame[frame.beam == 5].prex_entropy_s for frame in (in_domain, out_of_domain)]
    expected = 100 * roc_auc_score([0] * N + [1] * N, np.concatenate(scores))
    assert float(cell["value"]) == pytest.approx(expected)
    assert (cell["T"], cell["length_norm"], cell["n"]) == ("10", "true", str(2 * N))
    assert "against part:random_init.prex.help" in cell["signature"]


def test_every_cell_has_a_value_or_a_reason(run: SyntheticRun) -> None:
    cells = run.cells()
    assert all(bool(cell["value"]) or bool(cell["reason"]) for cell in cells.values())
    assert not any("nan" in (cell["value"], cell["low"]) for cell in cells.values())

    def reason(*key: str) -> str:
        return cells[key]["reason"]

    assert reason("permuted", "random_init", "prex", "", "bleu", "bleu") == "no reference"
    assert reason("permuted", "random_init", "prex", "1", "var_p", "prr") == "no reference"
    xbleu = "needs the decodes of at least two single members, got 0"
    assert reason("help", "random_init", "prex", "1", "xbleu", "prr") == xbleu
    assert reason("permuted", "random_init", "prex", "1", "xbleu", "roc_auc") == xbleu
    constant = cells["help", "random_init", "prex", "1", "prex_rmi_s", "prr"]
    assert (constant["value"], constant["reason"]) == (
        "0",
        "the measure is the same for every sentence",
    )


def test_sentences_without_a_value_are_left_out_and_counted(run: SyntheticRun) -> None:
    part = "random_init.prex.help"
    values = np.arange(N, dtype=float)
    values[[2, 5]] = np.nan
    values[3] = np.inf
    run.write_measures(part, prex_entropy_s=values)
    cell = run.cells()["help", "random_init", "prex", "1", "prex_entropy_s", "prr"]
    kept = ~np.isnan(values)
    error = 100 - sentence_bleu([str(text) for text in run.texts[part]], run.references)
    expected = prediction_rejection_ratio(error[kept], values[kept])
    assert (cell["n"], float(cell["value"])) == (str(N - 2), pytest.approx(expected))


def test_metric_of_the_user_is_a_cell_with_a_spread(run: SyntheticRun) -> None:
    cells = run.cells("+metrics.extra_metrics.words=tests.stages.test_metrics.word_counts")
    cell = cells["help", "random_init", "prex", "", "words", "words"]
    expected = sum(len(str(text).split()) for text in run.texts["random_init.prex.help"])
    assert float(cell["value"]) == expected
    assert cells["help", "single", "-", "", "words", "words"]["spread"]


def test_second_run_writes_the_same_bytes(run: SyntheticRun) -> None:
    run.cells()
    path = run.root / "metrics" / "nmt_ende"
    first = (path / "cells.csv").read_bytes()
    run.cells()
    assert (path / "cells.csv").read_bytes() == first
    numbers = json.loads((path / "numbers.json").read_text())
    assert {"bleu", "nll_single", "roc_auc/permuted"} <= {*numbers}
    assert all(isinstance(value, float) for value in numbers.values())
    headline = json.loads((path / "headline.json").read_text())
    assert list(headline) == ["bleu", "nll", "prr", "roc_auc"]
    assert headline.items() <= numbers.items()


def test_case_2_ensemble_of_one_has_numbers_and_no_spread(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path)
    run.stores = [
        ("random_init.prex.help", {"members": ["seed_1"]}, True),
        ("seed_1.beam.help", {"ensemble": "seed_1", "members": ["seed_1"]}, True),
        (FORCED, {"regime": "teacher_forcing", "members": ["seed_1"]}, True),
    ]
    run.write()
    cells = run.cells()
    single = cells["help", "single", "-", "", "bleu", "bleu"]
    assert (single["spread"], single["reason"]) == ("", "one member: no spread")
    nll = [value for key, value in cells.items() if key[-1] == "nll"]
    assert len({cell["value"] for cell in nll}) == 1


def test_measures_of_another_decode_are_refused(run: SyntheticRun) -> None:
    part = "random_init.prex.permuted"
    frame = run.write_measures(part)
    path = run.root / "uncertainty" / "nmt_ende" / part / "sequence.parquet"
    frame[frame.sentence_id < N - 1].to_parquet(path)
    with pytest.raises(DataError, match=rf"list each of the {N} sentences.*got {N - 1} rows"):
        metrics(settings(run.root))
    path.unlink()
    with pytest.raises(DataError, match=r"sequence\.parquet: no such file\. Run python"):
        metrics(settings(run.root))


def test_metric_that_returns_no_number_is_refused(run: SyntheticRun) -> None:
    with pytest.raises(DataError, match=r"extra_metrics\.words: did not return a number"):
        run.cells("+metrics.extra_metrics.words=difflib.ndiff")


def test_a_metric_of_the_user_that_fails_is_named(run: SyntheticRun) -> None:
    with pytest.raises(DataError, match=r"extra_metrics\.words: failed on .*store\.h5 \(TypeError"):
        run.cells("+metrics.extra_metrics.words=json.loads")


def test_without_the_best_hypothesis_alone_there_is_no_error_detection(
    run: SyntheticRun, caplog: pytest.LogCaptureFixture
) -> None:
    run.cells()
    assert "no error detection" not in caplog.text
    run.cells("uncertainty.beam=5")
    assert "uncertainty.beam: does not include 1 (got 5), so that there is no error" in caplog.text
