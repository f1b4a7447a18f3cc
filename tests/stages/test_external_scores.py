"""Setting metrics.scores in stages metrics and tables: cells, provenance, tables, figures."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline.errors import ConfigError, DataError
from pipeline.metrics import prediction_rejection_ratio
from pipeline.report.cells import read_cells
from pipeline.report.score_tables import mean_scores, measures_and_scores
from tests.stages.synthetic_run import SEEDS, N, SyntheticRun

SET = "help"
PREX, EXPR = f"random_init.prex.{SET}", f"random_init.expr.{SET}"


class ScoredRun(SyntheticRun):
    """A run whose decodes of one test set by PrEx and by single members have scores."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.files = root / "scores"
        parts = (PREX, *(f"{seed}.beam.{SET}" for seed in SEEDS))
        self.scores = {part: self.random.normal(size=N) for part in parts}

    def write_scores(self) -> None:
        self.files.mkdir()
        for part, values in self.scores.items():
            text = "".join(f"{value}\n" for value in values.tolist())
            (self.files / f"{part}.tsv").write_text(text, encoding="utf-8")

    def overrides(self, better: bool = True, name: str = "comet") -> tuple[str, ...]:
        key = f"+metrics.scores.{name}"
        return (
            f"{key}.files='{self.files}/{{part}}.tsv'",
            f"{key}.higher_is_better={str(better).lower()}",
        )

    def manifest(self) -> dict[str, str]:
        path = self.root / "metrics" / self.task / "manifest.json"
        made_from = json.loads(path.read_text(encoding="utf-8"))["made_from"]
        return {name: sha for name, sha in made_from.items() if name.startswith("scores/")}


@pytest.fixture
def run(tmp_path: Path) -> ScoredRun:
    run = ScoredRun(tmp_path / "out: 日本")
    run.write()
    run.write_scores()
    return run


def test_every_measure_is_compared_with_the_score(run: ScoredRun) -> None:
    frame = run.write_measures(PREX)
    measure = frame[frame.beam == 1].prex_entropy_s.to_numpy()
    cells = run.cells(*run.overrides())
    badness = -run.scores[PREX]
    expected = {
        "prr_comet": prediction_rejection_ratio(badness, measure),
        "pearson_comet": stats.pearsonr(badness, measure).statistic,
        "spearman_comet": stats.spearmanr(badness, measure).statistic,
        "kendall_comet": stats.kendalltau(badness, measure).statistic,
    }
    for metric, value in expected.items():
        cell = cells[SET, "random_init", "prex", "1", "prex_entropy_s", metric]
        assert float(cell["value"]) == pytest.approx(value), metric
        assert float(cell["low"]) < value < float(cell["high"])
        assert (cell["n"], cell["T"], cell["regime"]) == (str(N), "", "beam")
        assert "|score:comet|better:higher|files:" in cell["signature"]
    columns = {key[4] for key in cells if key[5] == "kendall_comet"}
    assert columns == {key[4] for key in cells if key[5] == "prr"}
    # Only decodes with a file have these cells.
    assert {key[:3] for key in cells if key[5] == "kendall_comet"} == {(SET, "random_init", "prex")}
    lower = run.cells(*run.overrides(better=False))
    for metric, value in expected.items():
        if metric != "prr_comet":
            cell = lower[SET, "random_init", "prex", "1", "prex_entropy_s", metric]
            assert float(cell["value"]) == pytest.approx(-value)


def test_the_mean_score_of_each_system_is_a_cell_and_a_headline(run: ScoredRun) -> None:
    cells = run.cells(*run.overrides())
    mean = run.scores[PREX].mean()
    cell = cells[SET, "random_init", "prex", "", "comet", "comet"]
    assert float(cell["value"]) == pytest.approx(mean)
    assert float(cell["low"]) < mean < float(cell["high"])
    members = [run.scores[f"{seed}.beam.{SET}"].mean() for seed in SEEDS]
    single = cells[SET, "single", "-", "", "comet", "comet"]
    assert float(single["value"]) == pytest.approx(np.mean(members))
    assert float(single["spread"]) == pytest.approx(np.std(members, ddof=1))
    assert (SET, "random_init", "expr", "", "comet", "comet") not in cells
    path = run.root / "metrics" / "nmt_ende" / "headline.json"
    headline = json.loads(path.read_text(encoding="utf-8"))
    assert headline["comet"] == pytest.approx(mean)


def test_cells_without_a_value_have_a_reason(run: ScoredRun) -> None:
    run.write_measures(PREX, prex_entropy_s=np.r_[np.inf, np.arange(N - 1)])
    run.scores[PREX][3] = np.nan
    text = "".join("\n" if np.isnan(v) else f"{v}\n" for v in run.scores[PREX].tolist())
    (run.files / f"{PREX}.tsv").write_text(text, encoding="utf-8")
    cells = run.cells(*run.overrides())
    of_scores = [cell for key, cell in cells.items() if key[5].endswith("comet")]
    assert all(cell["value"] or cell["reason"] for cell in of_scores)

    def cell(column: str, metric: str) -> dict[str, str]:
        return cells[SET, "random_init", "prex", "1", column, f"{metric}_comet"]

    constant = "the measure is the same for every sentence"
    assert (cell("prex_rmi_s", "prr")["value"], cell("prex_rmi_s", "prr")["reason"]) == (
        "0",
        constant,
    )
    assert (cell("prex_rmi_s", "kendall")["value"], cell("prex_rmi_s", "kendall")["reason"]) == (
        "",
        constant,
    )
    xbleu = "needs the decodes of at least two single members, got 0"
    assert cell("xbleu", "pearson")["reason"] == xbleu
    infinite = cell("prex_entropy_s", "pearson")
    assert infinite["reason"] == "the measure is infinite for 1 sentences"
    assert cell("prex_entropy_s", "spearman")["n"] == str(N - 1)
    assert cell("prex_entropy_s", "spearman")["value"]
    (run.files / f"{PREX}.tsv").write_text("0.5\n" * N, encoding="utf-8")
    cells = run.cells(*run.overrides())
    assert cell("prex_entropy_s", "prr")["reason"] == "all scores are equal"
    (run.files / f"{PREX}.tsv").write_text("\n" * N, encoding="utf-8")
    cells = run.cells(*run.overrides())
    assert cell("prex_entropy_s", "prr")["reason"] == "no sentence has a score"
    mean = cells[SET, "random_init", "prex", "", "comet", "comet"]
    assert mean["reason"] == "no sentence has a score"


def test_the_files_are_among_the_inputs_of_the_metrics(run: ScoredRun) -> None:
    run.cells(*run.overrides())
    first = run.manifest()
    assert set(first) == {f"scores/comet/{part}" for part in run.scores}
    (run.files / f"{PREX}.tsv").write_text("0.5\n" * (N - 1) + "1\n", encoding="utf-8")
    run.cells(*run.overrides())
    changed = [name for name, sha256 in run.manifest().items() if first[name] != sha256]
    assert changed == [f"scores/comet/{PREX}"]


def test_decodes_without_a_file_are_counted(
    run: ScoredRun, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "pipeline.metrics.external_scores"):
        run.cells(*run.overrides())
    (message,) = (text for text in caplog.messages if text.startswith("metrics.scores"))
    assert message == (
        f"metrics.scores.comet: 3 of 7 decodes have scores (no file for {EXPR}, "
        "random_init.prex.french-source, random_init.prex.german-source and 1 more); 0 of their 36 "
        "sentences have none"
    )


def test_files_that_no_decode_or_several_decodes_have_are_refused(run: ScoredRun) -> None:
    key = "+metrics.scores.da"
    better = f"{key}.higher_is_better=true"
    words = r"scores\.da\.files: no decode of nmt_ende has a file .*for example none/random_init"
    with pytest.raises(DataError, match=words):
        run.cells(better, f"{key}.files='none/{{part}}.tsv'")
    shared = run.files / f"{SET}.tsv"
    shared.write_text("0.5\n" * N, encoding="utf-8")
    words = rf"{SET}\.tsv: stands for 4 decodes \(random_init\.expr.*Put \{{part\}} into metrics"
    with pytest.raises(DataError, match=words):
        run.cells(better, f"{key}.files='{run.files}/{{test_set}}.tsv'")


@pytest.mark.parametrize("name", ["bleu", "nll", "prr"])
def test_the_name_of_a_metric_is_refused(run: ScoredRun, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"metrics\.scores\.{name}: is the name of a metric"):
        run.cells(*run.overrides(name=name))


def test_the_name_of_a_users_own_metric_is_refused(run: ScoredRun) -> None:
    words = "+metrics.extra_metrics.words=tests.stages.test_metrics.word_counts"
    with pytest.raises(ConfigError, match=r"the cells of another metric, words\. Choose another"):
        run.cells(words, *run.overrides(name="words"))


def test_tables_show_every_measure_and_the_mean_of_every_system(run: ScoredRun) -> None:
    cells = run.cells(*run.overrides())
    frame = read_cells([run.root / "metrics" / "nmt_ende" / "cells.csv"])
    table = measures_and_scores(frame)
    assert [row.labels[:4] for row in table.rows] == [
        ("EN-DE", SET, "random-init PrEx", "comet")
    ] * 6
    first = {row.labels[4]: row.cells for row in table.rows}["PrEx total H, S-IW"]
    values = [cell.cell.value for cell in first if cell is not None]
    key = (SET, "random_init", "prex", "1", "prex_entropy_s")
    names = ("prr_comet", "pearson_comet", "spearman_comet", "kendall_comet")
    assert values == [pytest.approx(float(cells[*key, name]["value"])) for name in names]
    means = mean_scores(frame)
    assert {row.labels[2] for row in means.rows} == {
        "random-init PrEx",
        "single",
        "checkpoint average",
    }
    assert means.cells[0].format(0.12345) == "0.123"


def test_without_scores_the_tables_have_no_rows(run: ScoredRun) -> None:
    run.cells()
    frame = read_cells([run.root / "metrics" / "nmt_ende" / "cells.csv"])
    assert measures_and_scores(frame).rows == mean_scores(frame).rows == ()
    assert mean_scores(pd.DataFrame(columns=frame.columns)).rows == ()


def test_columns_that_are_not_separated_by_tabs_are_named(run: ScoredRun) -> None:
    path = run.files / f"{PREX}.tsv"
    path.write_text("sentence_id,score\n" + "".join(f"{i},0.5\n" for i in range(N)))
    with pytest.raises(DataError, match=rf"{PREX}\.tsv: columns must be separated by tabs"):
        run.cells(*run.overrides())


def test_a_score_needs_settings_of_its_own(run: ScoredRun) -> None:
    message = r"^metrics\.scores\.da: must have settings of its own, .*\(got 'da\.tsv'\)\.$"
    with pytest.raises(ConfigError, match=message):
        run.cells("+metrics.scores.da=da.tsv")
