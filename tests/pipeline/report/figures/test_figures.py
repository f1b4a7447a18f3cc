from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.calibration import calibrated_forecasts, expected_calibration_error
from pipeline.metrics.performance import sentence_nll
from pipeline.metrics.rejection import prediction_rejection_ratio
from pipeline.quality.translation import corpus_bleu, sentence_bleu
from pipeline.report.figures import Sheet, TaskEvidence, make_figures
from pipeline.report.figures.ablation import ablation
from pipeline.report.figures.distributions import (
    confidence_histograms,
    error_histograms,
    reliability_diagrams,
)
from pipeline.report.figures.evidence import usable
from pipeline.report.figures.rejection import rejection_curves, rejection_example, score_curves
from pipeline.report.figures.sensitivity import sensitivity_to_beam, sensitivity_to_temperature
from pipeline.run.settings import CONF, implementation
from pipeline.statistics.subsets import subsets
from pipeline.store import open_store
from pipeline.uncertainty.sequence import sequence_measures

FIGURES = {
    figure.__name__: figure
    for figure in (
        rejection_example,
        rejection_curves,
        score_curves,
        error_histograms,
        confidence_histograms,
        reliability_diagrams,
        sensitivity_to_beam,
        sensitivity_to_temperature,
        ablation,
    )
}
PREX = "random_init.prex.help"


def test_every_figure_is_drawn_and_listed_with_its_data(
    evidence: TaskEvidence, tmp_path: Path
) -> None:
    listed = make_figures(tmp_path, evidence, FIGURES)
    assert json.loads((tmp_path / "nmt_ende_figures.json").read_text(encoding="utf-8")) == listed
    for entry in listed:
        name = f"nmt_ende_{entry['name']}"
        assert entry["files"] == [f"{name}.csv", f"{name}.svg", f"{name}.png"]
        assert entry["title"]
        assert entry["caption"]
        assert entry["reason"] == ""
        data = pd.read_csv(tmp_path / entry["files"][0])
        # Only the spread may be missing, because a single subset has none.
        assert not data.drop(columns="spread", errors="ignore").isna().any(axis=None)
        svg = (tmp_path / entry["files"][1]).read_text(encoding="utf-8")
        texts = [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]
        assert "help" in " ".join(texts)
        assert "<dc:date>" not in svg
        assert (tmp_path / entry["files"][2]).read_bytes().startswith(b"\x89PNG")


def test_the_same_evidence_gives_the_same_bytes(evidence: TaskEvidence, tmp_path: Path) -> None:
    import matplotlib

    folders = [tmp_path / "first", tmp_path / "second"]
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "other"}):
        for folder in folders:
            folder.mkdir()
            make_figures(folder, evidence, {"ablation": ablation})
    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders
    )
    assert first == second
    again = tmp_path / "three"
    again.mkdir()
    make_figures(again, evidence, {"ablation": ablation})
    assert {path.name: path.read_bytes() for path in again.iterdir()} == first


def test_figures_of_a_run_without_decodes_have_reasons(
    nothing: TaskEvidence, tmp_path: Path
) -> None:
    for entry in make_figures(tmp_path, nothing, FIGURES):
        assert entry["reason"]
        assert entry["files"] == [f"nmt_ende_{entry['name']}.csv"]


def test_a_figure_of_scores_is_not_listed_without_scores(
    evidence: TaskEvidence, tmp_path: Path
) -> None:
    without = replace(evidence, scores=())
    assert make_figures(tmp_path, without, {"score_curves": score_curves}) == []
    assert [path.name for path in tmp_path.iterdir()] == ["nmt_ende_figures.json"]


def test_a_function_that_returns_no_sheet_is_refused(
    evidence: TaskEvidence, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"report\.figures\.mine: .* must return a Sheet"):
        make_figures(tmp_path, evidence, {"mine": lambda _: None})  # type: ignore[dict-item,return-value]


def test_figures_of_the_default_report_can_be_imported() -> None:
    import yaml

    report = yaml.safe_load((CONF / "report" / "default.yaml").read_text(encoding="utf-8"))
    named = {implementation(dotted, "report.figures") for dotted in report["figures"].values()}
    assert named == set(FIGURES.values())
    for dotted in report["claims"].values():
        assert implementation(dotted, "report.claims")()


def test_rejection_curves_lie_between_random_and_oracle(evidence: TaskEvidence) -> None:
    data = rejection_curves(evidence).data
    assert list(dict.fromkeys(data["test_set"])) == ["help", "debian-reference"]
    curves = data[data["test_set"] == "help"].pivot_table(
        index="replaced_percent", columns="order", values="error_percent"
    )
    assert (curves["oracle"] <= curves["random"] + 1e-9).all()
    assert (curves["oracle"] <= curves["prex_entropy_s"] + 1e-9).all()
    np.testing.assert_allclose(curves.iloc[-1], 0, atol=1e-9)
    measured = evidence.one_best_measures(PREX)
    assert measured is not None
    errors, values = usable(evidence.errors(PREX), measured.values["prex_entropy_s"])
    of_measure = data[(data["test_set"] == "help") & (data["order"] == "prex_entropy_s")]
    expected = prediction_rejection_ratio(errors, values)
    assert of_measure["prr_percent"].iloc[0] == pytest.approx(expected)


def test_score_curves_end_at_the_best_score_and_have_the_prr_of_the_cells(
    evidence: TaskEvidence,
) -> None:
    data = score_curves(evidence).data
    # Also test sets that are not in-domain; the one without scores is left out.
    assert list(dict.fromkeys(data["test_set"])) == ["help", "french-source"]
    of_set = data[data["test_set"] == "help"]
    curves = of_set.pivot_table(index="replaced_percent", columns="order", values="remaining_error")
    assert (curves["oracle"] <= curves["random"] + 1e-9).all()
    np.testing.assert_allclose(curves.iloc[-1], 0, atol=1e-9)
    (kind,) = evidence.scores
    scores = kind.values[evidence.decodes[PREX].path][:-1]
    assert curves["random"].iloc[0] == pytest.approx((scores.max() - scores).mean())
    assert set(of_set["error"]) == {"distance from the best da"}
    measured = evidence.one_best_measures(PREX)
    assert measured is not None
    expected = prediction_rejection_ratio(-scores, measured.values["prex_entropy_s"][:-1])
    of_measure = of_set[of_set["order"] == "prex_entropy_s"]
    assert of_measure["prr_percent"].iloc[0] == pytest.approx(expected)


def test_histograms_count_every_sentence_and_token(evidence: TaskEvidence) -> None:
    errors = error_histograms(evidence).data
    decode = evidence.decodes[PREX]
    of_set = errors[errors["test_set"] == "help"]
    assert of_set["n"].sum() == len(decode.texts)
    bleu = sentence_bleu(list(map(str, decode.texts)), list(map(str, decode.references)))
    assert of_set["n"].iloc[-1] == (bleu >= 95).sum()
    confidence = confidence_histograms(evidence).data
    of_set = confidence[confidence["test_set"] == "french-source"]
    assert of_set[of_set["counted"] == "sentence confidence"]["n"].sum() == len(decode.texts)
    with open_store(evidence.decodes["random_init.prex.french-source"].path) as store:
        first = store.hypothesis_offset[:-1]
        tokens = int(np.diff(store.token_offset)[first].sum())
    assert of_set[of_set["counted"] == "token confidence"]["n"].sum() == tokens


def test_sensitivity_agrees_with_sequence_measures(evidence: TaskEvidence) -> None:
    beams = sensitivity_to_beam(evidence).data
    assert set(zip(beams["test_set"], beams["metric"], strict=True)) == {
        ("help", "prr"),
        ("debian-reference", "prr"),
        ("french-source", "roc_auc"),
    }
    assert sorted(beams["at"].unique()) == [1, 2, 3]
    with open_store(evidence.decodes[PREX].path) as store:
        two = sequence_measures(store, 2, 1.0, True)
        hot = sequence_measures(store, 3, 50.0, True)
    for frame, table, at in (
        (beams, two, 2),
        (sensitivity_to_temperature(evidence).data, hot, 50),
    ):
        row = frame[
            (frame["test_set"] == "help") & (frame["measure"] == "prex_rmi_s") & (frame["at"] == at)
        ]
        expected = prediction_rejection_ratio(evidence.errors(PREX), table["prex_rmi_s"])
        assert row["percent"].iloc[0] == pytest.approx(expected)


def test_ablation_covers_all_subsets(evidence: TaskEvidence) -> None:
    keys = ["test_set", "metric", "hypotheses", "members"]
    data = ablation(evidence).data.set_index(keys).sort_index()
    with open_store(evidence.decodes["random_init.teacher_forcing.debian-reference"].path) as store:
        logprob, offset = store.read("/token/logprob"), store.token_offset
    pairs = [
        sentence_nll(logprob[:, list(pair)], offset).expr.mean() for pair in subsets(3, 2, 9, 0)
    ]
    row = data.loc[("debian-reference", "nll", "expr", 2)]
    assert row["subsets"] == 3
    assert row["mean"] == pytest.approx(np.mean(pairs))
    assert row["spread"] == pytest.approx(np.std(pairs, ddof=1))
    assert data.loc[("help", "bleu", "prex")]["subsets"].to_dict() == {1: 3, 2: 1, 3: 1}
    assert data.loc[("help", "bleu", "expr")].index.tolist() == [1, 3]
    ensemble = evidence.decodes[PREX]
    bleu = corpus_bleu(list(map(str, ensemble.texts)), list(map(str, ensemble.references)))
    assert data.loc[("help", "bleu", "prex", 3)]["mean"] == pytest.approx(bleu)


def test_reliability_of_single_members_and_both_combinations(evidence: TaskEvidence) -> None:
    data = reliability_diagrams(evidence).data
    assert set(data["system"]) == {"single", "prex", "expr"}
    assert set(data["level"]) == {"token", "sequence"}
    rows = data[
        (data["test_set"] == "help") & (data["level"] == "token") & (data["system"] == "prex")
    ]
    given = calibrated_forecasts(PREX, evidence.decodes, evidence.uncertainty, evidence.quality)
    token = given["token"]
    assert not isinstance(token, str)
    assert rows["n"].sum() == len(token.right)
    expected = expected_calibration_error(token.confidence, token.right)
    assert rows["ece_percent"].iloc[0] == pytest.approx(expected)


def test_missing_measures_are_refused(evidence: TaskEvidence, tmp_path: Path) -> None:
    from dataclasses import replace

    moved = replace(evidence, uncertainty=tmp_path)
    with pytest.raises(DataError, match=r"sequence\.parquet: no such file"):
        rejection_curves(moved)
    with pytest.raises(DataError, match=r"token\.parquet: no such file"):
        confidence_histograms(moved)


def test_a_sheet_without_rows_has_only_a_data_file(tmp_path: Path, evidence: TaskEvidence) -> None:
    def empty(_: TaskEvidence) -> Sheet:
        return Sheet("t", "c", pd.DataFrame(columns=["x"]), lambda _: 1 / 0, "nothing")  # type: ignore[arg-type,return-value]

    assert make_figures(tmp_path, evidence, {"empty": empty})[0]["reason"] == "nothing"
    assert (tmp_path / "nmt_ende_empty.csv").read_text(encoding="utf-8") == "x\n"
