"""Stages metrics and tables on decode stores that a user names, of any toolkit."""

from __future__ import annotations

import csv
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest

from pipeline.errors import ConfigError, DataError, PipelineError, StoreError
from pipeline.metrics.rejection import prediction_rejection_ratio
from pipeline.quality.translation import corpus_bleu, sentence_bleu
from pipeline.run.settings import ROOT, PipelineConfig
from pipeline.store import Hypothesis, StoreWriter, open_store, validate
from pipeline.uncertainty.token import token_statistics
from stages.metrics import metrics
from stages.tables import tables
from tests.docs.pages import blocks
from tests.stages.synthetic_run import settings
from tests.stages.test_uncertainty import WITHOUT_TORCH

N = 8
MEMBERS = ["red", "blue", "green"]
VOCAB_SIZE = 20
EOS = 2


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Write the program of the documentation that needs h5py alone."""
    page = blocks(ROOT / "docs" / "write_a_store.md")
    (code,) = (block.text for block in page if block.title == "write_with_h5py.py")
    assert "import pipeline" not in code
    assert "from pipeline" not in code
    path = tmp_path / "write_with_h5py.py"
    path.write_text(code)
    return path


def _run(folder: Path, module: str, *arguments: str) -> None:
    command = [sys.executable, "-c", WITHOUT_TORCH, module, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=folder, env=environment, check=True)


def test_store_of_other_code_comes_to_the_tables_without_torch(script: Path, tmp_path: Path):
    main = tmp_path / "outputs" / "metrics" / "nmt_ende" / "cells.csv"
    main.parent.mkdir(parents=True)
    main.write_text("of the main task")
    subprocess.run([sys.executable, script, tmp_path / "other.h5"], check=True)
    _run(tmp_path, "stages.metrics", "io.store=other.h5", "io.out=results", "~report.figures")
    _run(tmp_path, "stages.tables", "io.out=results")
    assert main.read_text() == "of the main task"
    assert {path.name for path in (tmp_path / "outputs").iterdir()} == {"hydra", "logs", "metrics"}
    assert not (tmp_path / "results" / "mlflow.db").exists()

    cells = _cells(tmp_path / "results", "other")
    with open_store(tmp_path / "other.h5") as store:
        texts = [text or "" for text in store.best_texts()]
        references = [text or "" for text in store.references()]
    part = tmp_path / "results" / "uncertainty" / "other" / "other.prex.other"
    measures = pd.read_parquet(part / "sequence.parquet")
    first = measures.query("beam == 1 and temperature == 10 and length_norm").sort_values(
        "sentence_id"
    )
    error = 100 - sentence_bleu(texts, references)
    expected = prediction_rejection_ratio(error, first["prex_rmi_c"].to_numpy())
    assert cells["other", "bleu", "bleu"] == pytest.approx(corpus_bleu(texts, references))
    assert cells["other", "prex_rmi_c", "prr"] == pytest.approx(expected)

    with (tmp_path / "results" / "tables" / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] == "other" and row["value"]]
    of_detection = {
        row["column"] for row in rows if row["table"] == "beyond:sentence-error-detection"
    }
    assert {"prex_entropy_s", "prex_rmi_c", "expr_rmi_s"} <= of_detection
    assert all(row["low"] for row in rows if row["table"] == "beyond:performance")
    assert all(row["signature"].startswith("task:other|set:other|ensemble:other|") for row in rows)
    assert (tmp_path / "results" / "report" / "index.html").is_file()


def test_documented_statistics_are_those_of_the_pipeline(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path / "other.h5")])
    token_datasets = runpy.run_path(str(script))["token_datasets"]
    assert validate(tmp_path / "other.h5") == []
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(VOCAB_SIZE), size=(7, 3))
    token = random.integers(0, VOCAB_SIZE, size=7)
    computed, expected = token_datasets(p, token), token_statistics(np.log(p), token)
    assert computed.keys() - {"id"} == vars(expected).keys()
    for name, values in vars(expected).items():
        np.testing.assert_allclose(computed[name], values, atol=1e-5, err_msg=name)


def _write(path: Path, *, with_references: bool = True, n: int = N, **attributes: object) -> Path:
    """Write a store of sentences that depend on its test set only."""
    named = {"task": "toy", "test_set": "novel", "ensemble": "toy", "members": MEMBERS}
    named |= {"regime": "beam", "combination": "prex"} | attributes
    members, forced = list(named["members"]), named["regime"] == "teacher_forcing"
    of_set = np.random.default_rng(sum(str(named["test_set"]).encode()))
    of_store = np.random.default_rng(sum(str(named).encode()))
    with StoreWriter(path, vocab_size=VOCAB_SIZE, **named) as store:
        for sentence in range(n):
            reference = of_set.integers(3, VOCAB_SIZE, size=6)
            words = np.where(forced | (of_store.random(6) < 0.8), reference, 3)
            token = np.append(words, EOS)
            p = of_store.dirichlet(np.ones(VOCAB_SIZE), size=(7, len(members)))
            statistics = token_statistics(np.log(p), token)
            text, expected = (" ".join(map(str, numbers)) for numbers in (words, reference))
            hypothesis = Hypothesis(token, text, -1.0, True, statistics)
            shown = expected if with_references else None
            store.add_sentence(sentence, f"source {sentence}", shown, [hypothesis])
    return path


def _settings(folder: Path, *overrides: str, **stores: object) -> PipelineConfig:
    """Settings without bootstrap; a setting of group io may be a path or a list of paths."""
    io = {"out": folder / "results"} | stores
    texts = {
        key: f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
        for key, value in io.items()
    }
    named = [f"io.{key}={value}" for key, value in texts.items()]
    return settings(folder / "outputs", "metrics.resamples=0", *named, *overrides)


def _cells(out: Path, task: str = "toy", ensemble: str = "") -> dict[tuple[str, ...], float | str]:
    """(test set, column, metric) -> value or reason, at the first setting of the grid."""
    cells: dict[tuple[str, ...], float | str] = {}
    with (out / "metrics" / task / "cells.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["test_set"], row["column"], row["metric"]
            if row["ensemble"] == (ensemble or task):
                cells.setdefault(key, float(row["value"]) if row["value"] else row["reason"])
    return cells


def test_all_stores_of_a_model_are_evaluated_together(tmp_path: Path):
    stores = [
        _write(tmp_path / "novel.h5"),
        _write(tmp_path / "novel_forced.h5", regime="teacher_forcing"),
        *(
            _write(
                tmp_path / f"{test_set}_{member}.h5",
                test_set=test_set,
                ensemble=member,
                members=[member],
            )
            for test_set in ("novel", "news")
            for member in MEMBERS
        ),
    ]
    news = _write(tmp_path / "news.h5", test_set="news")
    metrics(_settings(tmp_path, store=stores[:2], baseline=news, member_stores=stores[2:]))
    cells = _cells(tmp_path / "results")
    for key in [
        ("novel", "bleu", "bleu"),
        ("novel", "nll", "nll"),
        ("novel", "prex_rmi_c", "prr"),
        ("novel", "prex_rmi_c", "roc_auc"),
        ("novel", "xbleu", "prr"),
        ("news", "xbleu", "prr"),
    ]:
        assert isinstance(cells[key], float), key
    assert ("news", "prex_rmi_c", "roc_auc") not in cells
    single = _cells(tmp_path / "results", ensemble="single")
    assert isinstance(single["novel", "bleu", "bleu"], float)
    tables(_settings(tmp_path))
    with (tmp_path / "results" / "tables" / "results.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["value"]]
    shown = {(row["table"], row["metric"], row["ensemble"]) for row in rows}
    assert {
        ("beyond:performance", "nll", "toy"),
        ("beyond:performance", "bleu", "single"),
        ("beyond:sentence-error-detection", "prr", "toy"),
        ("beyond:ood-detection", "roc_auc", "toy"),
    } <= shown


def test_baseline_may_also_be_listed_as_a_store(tmp_path: Path):
    novel, news = _write(tmp_path / "novel.h5"), _write(tmp_path / "news.h5", test_set="news")
    metrics(_settings(tmp_path, store=[novel, news], baseline=news))
    assert ("novel", "prex_rmi_c", "roc_auc") in _cells(tmp_path / "results")


def test_error_rates_of_speech(tmp_path: Path):
    store = _write(tmp_path / "novel.h5")
    metrics(_settings(tmp_path, "task.quality=wer_percent", store=store))
    cells = _cells(tmp_path / "results")
    assert isinstance(cells["novel", "wer_percent", "wer_percent"], float)
    assert cells["novel", "prex_score", "aupr"] == "the dictionary of tokens is missing"


def test_cells_of_a_set_without_references_say_so(tmp_path: Path):
    metrics(_settings(tmp_path, store=_write(tmp_path / "novel.h5", with_references=False)))
    cells = _cells(tmp_path / "results")
    assert cells["novel", "bleu", "bleu"] == "no reference"
    assert cells["novel", "prex_rmi_c", "prr"] == "no reference"
    tables(_settings(tmp_path))


def test_tasks_share_a_folder_and_runs_replace_their_own_results(tmp_path: Path):
    first, other = _write(tmp_path / "novel.h5"), _write(tmp_path / "other.h5", task="other")
    for store in (first, other, _write(tmp_path / "web.h5", test_set="web")):
        metrics(_settings(tmp_path, store=store))
    out = tmp_path / "results"
    assert json.loads((out / "stores.json").read_text()) == {
        "other": {"toy.prex.novel": "../other.h5"},
        "toy": {"toy.prex.web": "../web.h5"},
    }
    assert {path.name for path in (out / "decode" / "toy").iterdir()} == {
        "manifest.json",
        "toy.prex.web",
    }
    tables(_settings(tmp_path))
    page = (out / "report" / "index.html").read_text(encoding="utf-8")
    assert "toy: web" in page
    assert "other: novel" in page
    (tmp_path / "web.h5").unlink()
    with pytest.raises(DataError, match=r"a store of task toy has changed or is no longer"):
        tables(_settings(tmp_path))


def test_decode_of_a_single_member_alone_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    metrics(_settings(tmp_path, store=_write(tmp_path / "a.h5", ensemble="red", members=["red"])))
    assert "io.store: has no decode by an ensemble" in caplog.text


def test_system_without_an_in_domain_decode_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    news, novel = _write(tmp_path / "news.h5", test_set="news"), _write(tmp_path / "novel.h5")
    expr = _write(tmp_path / "expr.h5", combination="expr")
    metrics(_settings(tmp_path, store=[novel, expr], baseline=news))
    assert "expr.h5: no OOD detection, since news was not decoded in the same way" in caplog.text


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"task": "tale"}, r"b\.h5: must be of the task of .*a\.h5, toy \(got tale\)"),
        (
            {},
            r"b\.h5: must differ from .* in its test set or system \(got novel; ensemble toy",
        ),
        ({"test_set": "web"}, r"io\.baseline: must be set, since io\.store has several test sets"),
        ({"members": ["red"]}, r"b\.h5: must have as many members as .* \(got 1 and 3\)"),
        (
            {"ensemble": "tall", "n": 7},
            r"must have the sources of .* \(got 7 and 8 sentences\)",
        ),
        ({"test_set": "a/b"}, r"b\.h5: attribute test_set: must be a name without / .*'a/b'"),
        ({"ensemble": None}, r"b\.h5: attribute ensemble: must be a name .* \(got ''\)"),
    ],
)
def test_stores_that_do_not_fit_are_refused(other: dict[str, object], message: str, tmp_path: Path):
    stores = [_write(tmp_path / "a.h5"), _write(tmp_path / "b.h5", **other)]
    with pytest.raises(PipelineError, match=message):
        metrics(_settings(tmp_path, store=stores))
    assert not (tmp_path / "results").exists()


def test_other_references_of_one_test_set_are_refused(tmp_path: Path):
    stores = [_write(tmp_path / "a.h5"), _write(tmp_path / "b.h5", ensemble="tall")]
    with h5py.File(stores[1], "r+") as file:
        file["sentence/reference"][2] = "another"
    with pytest.raises(DataError, match=r"must have the references of .*'another' and .* sentence"):
        metrics(_settings(tmp_path, store=stores))


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        ({}, "must be of another test set than io.store"),
        ({"test_set": "news", "combination": "expr"}, "must be decoded as the other test sets are"),
        ({"test_set": "news", "ensemble": "tall"}, "must be decoded as the other test sets are"),
    ],
)
def test_baseline_that_cannot_be_compared_is_refused(
    baseline: dict[str, str], message: str, tmp_path: Path
):
    store = _write(tmp_path / "a.h5")
    in_domain = _write(tmp_path / "b.h5", **baseline) if baseline else store
    with pytest.raises(ConfigError, match=rf"io\.baseline: {message}"):
        metrics(_settings(tmp_path, store=store, baseline=in_domain))


def test_baselines_of_two_test_sets_are_refused(tmp_path: Path):
    paths = [_write(tmp_path / f"{name}.h5", test_set=name) for name in ("a", "b", "c")]
    with pytest.raises(ConfigError, match=r"io\.baseline: must be of one test set \(got b, c\)"):
        metrics(_settings(tmp_path, store=paths[0], baseline=paths[1:]))


def test_store_of_the_output_is_needed(tmp_path: Path):
    store = _write(tmp_path / "a.h5", regime="teacher_forcing")
    with pytest.raises(ConfigError, match=r"must have a decode of regime beam or greedy"):
        metrics(_settings(tmp_path, store=store))


def test_store_that_is_not_valid_is_refused(tmp_path: Path):
    store = _write(tmp_path / "a.h5")
    with h5py.File(store, "r+") as file:
        file["token/logprob"][7] = np.nan
    with pytest.raises(StoreError, match="/token/logprob, row 7: must not be NaN"):
        metrics(_settings(tmp_path, store=store))
    with pytest.raises(StoreError, match=r"none\.h5: no such file"):
        metrics(_settings(tmp_path, store=tmp_path / "none.h5"))
    assert not (tmp_path / "results").exists()


def test_settings_that_need_others(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"need io\.store"):
        metrics(_settings(tmp_path))
    with pytest.raises(ConfigError, match=r"io\.out: missing"):
        metrics(_settings(tmp_path, store="a.h5", out="null"))
    with pytest.raises(ConfigError, match=r"io\.out: has no results of stores \(.*results\)\. Run"):
        tables(_settings(tmp_path))
    for value in ("[]", "''", "5"):
        with pytest.raises(ConfigError, match=r"io\.store: must be null, a file or a list"):
            _settings(tmp_path, store=value)


def test_results_of_other_stages_are_left_alone(tmp_path: Path):
    store = _write(tmp_path / "a.h5")
    kept = tmp_path / "results" / "decode" / "toy" / "manifest.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    with pytest.raises(ConfigError, match=r"io\.out: holds results of other stages .*decode"):
        metrics(_settings(tmp_path, store=store))
    assert kept.read_text() == "mine"
    with pytest.raises(ConfigError, match=r"io\.out: not a folder"):
        metrics(_settings(tmp_path, store=store, out=store))
