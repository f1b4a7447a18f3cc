from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from pipeline.errors import ConfigError, DataError
from pipeline.metrics.calibration import calibrated_forecasts, expected_calibration_error
from pipeline.metrics.performance import sentence_nll
from pipeline.metrics.rejection import prediction_rejection_ratio
from pipeline.quality.translation import corpus_bleu, sentence_bleu
from pipeline.report.figures import Sheet, TaskEvidence, make_figures
from pipeline.report.figures.ablation import ablation
from pipeline.report.figures.baselines import baseline_dots
from pipeline.report.figures.distributions import (
    confidence_histograms,
    error_histograms,
    reliability_diagrams,
)
from pipeline.report.figures.drawing import styled
from pipeline.report.figures.rejection import rejection_curves, rejection_example, score_curves
from pipeline.report.figures.sensitivity import sensitivity_to_beam, sensitivity_to_temperature
from pipeline.run.settings import CONF, implementation
from pipeline.statistics.subsets import subsets
from pipeline.store import open_own_store
from pipeline.uncertainty.sequence import sequence_measures

pytestmark = pytest.mark.slow

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
        suffixes = ("csv", "svg", "png", "pdf")
        assert entry["files"] == [f"{name}.{suffix}" for suffix in suffixes]
        assert entry["title"]
        assert entry["caption"]
        assert entry["reason"] == ""
        data = pd.read_csv(tmp_path / entry["files"][0])
        # Oracle and random order have no interval.
        if "order" in data:
            data = data[~data["order"].isin(("oracle", "random"))]
        assert not data.isna().any(axis=None)
        svg = (tmp_path / entry["files"][1]).read_text(encoding="utf-8")
        texts = [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]
        assert "help" in " ".join(texts)
        assert "<dc:date>" not in svg
        # Readers see names of measures and metrics, never their keys.
        assert not re.search(r"prex_|expr_|roc_auc|wer_percent|\b(prr|bleu|nll)\b", " ".join(texts))
        assert (tmp_path / entry["files"][2]).read_bytes().startswith(b"\x89PNG")
        pdf = (tmp_path / entry["files"][3]).read_bytes()
        assert pdf.startswith(b"%PDF")
        assert b"/FontFile2" in pdf  # embedded TrueType
        assert b"/Type3" not in pdf
        assert b"/CreationDate" not in pdf


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
    assert named == {*FIGURES.values(), baseline_dots}  # its own tests draw it from cells
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
    errors, values = evidence.errors(PREX), measured.values["prex_entropy_s"]
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
    with open_own_store(evidence.decodes["random_init.prex.french-source"].path) as store:
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
    with open_own_store(evidence.decodes[PREX].path) as store:
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


def drawn(sheet: Sheet) -> list[Axes]:
    """Return the panels of a figure."""
    with styled():
        figure = sheet.draw(sheet.data)
        figure.draw_without_rendering()
    return figure.axes


def test_the_main_panel_of_rejection_curves_is_the_gain_over_random(evidence: TaskEvidence) -> None:
    sheet = rejection_curves(evidence)
    panels = {axis.get_title("left"): axis for axis in drawn(sheet)}
    gain = panels["help"]
    assert gain.get_ylabel() == "gain over random, points"
    others = [axis for axis in drawn(sheet) if axis.get_ylabel() == "remaining\nmean error"]
    assert all(axis.get_position().height < gain.get_position().height / 1.5 for axis in others)
    legend = rejection_legend(evidence)
    prr = [float(value) for value in re.findall(r": (-?[0-9.]+) \[", legend)]
    assert prr == sorted(prr, reverse=True)
    of_set = sheet.data[sheet.data["test_set"] == "help"].groupby("order").first()
    measures = of_set.drop(index=["oracle", "random"])
    assert sorted(prr) == pytest.approx(sorted(measures["prr_percent"]), abs=0.05)
    assert (measures["prr_low"] <= measures["prr_percent"]).all()
    assert (measures["prr_percent"] <= measures["prr_high"]).all()


def test_panels_of_a_metric_have_one_scale_and_a_measure_one_colour(
    evidence: TaskEvidence,
) -> None:
    of_rejection = drawn(rejection_curves(evidence))[0]
    colours = {
        str(line.get_label()).split(":")[0]: line.get_color() for line in of_rejection.get_lines()
    }
    for figure in (sensitivity_to_beam, sensitivity_to_temperature):
        panels = {axis.get_title("left"): axis for axis in drawn(figure(evidence))}
        prr = [panels["help"], panels["debian-reference"]]
        assert prr[0].get_ylim() == prr[1].get_ylim() != panels["french-source"].get_ylim()
        assert prr[0].get_ylabel() == "error detection,\nPRR, percent"
        assert prr[1].get_ylabel() == ""
        for axis in panels.values():
            assert len(axis.collections) == 4  # a band per measure
            for line in axis.get_lines():
                label = str(line.get_label())
                assert colours.get(label, line.get_color()) == line.get_color()
    assert {"H C-IW (PrEx)", "H S-IW (PrEx)", "M S-IW (PrEx)"} <= {*colours}


def test_without_resamples_there_are_no_intervals(evidence: TaskEvidence) -> None:
    without = replace(evidence, evaluation=replace(evidence.evaluation, resamples=0))
    sheet = sensitivity_to_beam(without)
    assert sheet.data[["low", "high"]].isna().all(axis=None)
    assert len(drawn(sheet)) == 3
    assert "[" not in rejection_legend(without)


def rejection_legend(evidence: TaskEvidence) -> str:
    """Return the first legend of the rejection curves, one line per measure."""
    legends = [axis.get_legend() for axis in drawn(rejection_curves(evidence))]
    legend = next(legend for legend in legends if legend is not None)
    return "\n".join(text.get_text() for text in legend.get_texts())


def test_ablation_has_a_row_and_a_dot_per_subset(evidence: TaskEvidence) -> None:
    sheet = ablation(evidence)
    keys = ["test_set", "metric", "hypotheses", "members"]
    data = sheet.data.set_index(keys).sort_index()
    with open_own_store(
        evidence.decodes["random_init.teacher_forcing.debian-reference"].path
    ) as store:
        logprob, offset = store.read("/token/logprob"), store.token_offset
    pairs = [
        sentence_nll(logprob[:, list(pair)], offset).expr.mean() for pair in subsets(3, 2, 9, 0)
    ]
    rows = data.loc[("debian-reference", "nll", "expr", 2)]
    assert rows["value"].tolist() == pytest.approx(pairs)
    assert rows["subset"].tolist() == ["seed_1 seed_2", "seed_1 seed_3", "seed_2 seed_3"]
    of_quality = data.loc[("help", "bleu")]
    assert of_quality.loc["prex"].groupby("members").size().to_dict() == {1: 3, 2: 1, 3: 1}
    assert of_quality.loc["expr"].groupby("members").size().to_dict() == {1: 3, 3: 1}
    ensemble = evidence.decodes[PREX]
    bleu = corpus_bleu(list(map(str, ensemble.texts)), list(map(str, ensemble.references)))
    assert of_quality.loc[("prex", 3), "value"] == pytest.approx(bleu)

    panels = drawn(sheet)
    for axis in panels:
        # Dots only: no band, which a few subsets would not support.
        assert {type(collection).__name__ for collection in axis.collections} == {"PathCollection"}
    dots = sum(len(np.asarray(c.get_offsets())) for axis in panels for c in axis.collections)
    assert dots == len(sheet.data)
    nll, quality = panels[:2]
    assert [label.get_text() for label in nll.get_xticklabels()] == ["1\n(3)", "2\n(3)", "3\n(1)"]
    assert nll.get_xlabel() == "members (subsets)"
    # The pair was decoded with PrEx only.
    counts = [label.get_text() for label in quality.get_xticklabels()]
    assert counts == ["1\n(3, 3)", "2\n(1, 0)", "3\n(1, 1)"]
    assert quality.get_xlabel() == "members (subsets: PrEx, ExPr)"
    assert [text.get_text() for text in quality.texts] in (["PrEx", "ExPr"], ["ExPr", "PrEx"])


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
