"""Tables without NaN and checks are written for a store."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeline.errors import StoreError
from pipeline.store import Hypothesis, Store, TopK, open_own_store
from pipeline.uncertainty.blocks import token_blocks
from pipeline.uncertainty.checks import reject_nan, reject_out_of_range
from pipeline.uncertainty.heuristics import HEURISTICS
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid, sequence_measures
from pipeline.uncertainty.token import token_measures, token_statistics

StoreOf = Callable[..., Store]
Make = Callable[..., Hypothesis]
GRID = Grid([1, 3], [1, 10], [True, False])


@pytest.fixture
def store(store_of: StoreOf, random_hypothesis: Make) -> Store:
    sentences = [
        [random_hypothesis(10 * index + rank, 2 + rank, full="float32") for rank in range(count)]
        for index, count in enumerate([2, 0, 3])
    ]
    return store_of(sentences, n_member=3, vocab_size=8, length_penalty=1.0)


def test_sequence_table_has_one_row_per_sentence_and_setting(store: Store, tmp_path: Path):
    write_measures(store, tmp_path, GRID)
    table = pq.read_table(tmp_path / "sequence.parquet")
    assert table.column_names[:5] == ["sentence_id", "beam", "temperature", "length_norm", "flag"]
    for name in table.column_names[5:]:
        assert not pc.any(pc.is_nan(table[name])).as_py(), name
    expected = sequence_measures(store, beam=[1, 3], temperature=[1, 10], length_norm=[True, False])
    pd.testing.assert_frame_equal(table.to_pandas(), expected)
    assert table["prex_mi_c"].null_count == 8


def test_token_table_has_one_row_per_token(store: Store, tmp_path: Path):
    write_measures(store, tmp_path, GRID)
    table = pd.read_parquet(tmp_path / "token.parquet")
    assert list(table.columns[:4]) == ["sentence_id", "hypothesis", "position", "token_id"]
    assert len(table) == store.n_token
    rows = table[(table.sentence_id == 2) & (table.hypothesis == 1)]
    start, stop = store.token_offset[3], store.token_offset[4]
    full = store.read("/token/full_logprob", start, stop)
    expected = token_measures(full.astype(np.float64), rows.token_id.to_numpy())
    assert rows.position.tolist() == list(range(stop - start))
    for name, values in expected.items():
        np.testing.assert_allclose(rows[name], values, atol=1e-5, err_msg=name)


def test_checks_accept_a_sound_store(store: Store, tmp_path: Path):
    report = write_measures(store, tmp_path, GRID)
    assert json.loads((tmp_path / "checks.json").read_text(encoding="utf-8")) == report
    assert report["ok"]
    assert report["sentences_without_hypothesis"] == 1
    assert report["score"]["hypotheses_off"] == 0
    assert report["recomputed"]["tokens_off"] == 0
    assert set(report["null"]) == {"xbleu", "xwer", "xchrf"}
    assert "needs samples" in report["absent"]["prex_rmi_smc"]


def test_checks_report_a_faulty_store(store_of: StoreOf, random_hypothesis: Make, tmp_path: Path):
    base = random_hypothesis(0, full="float32")
    # Wrong by more than float32 rounds and by less than half precision rounds.
    data = base.statistics.entropy_member.mean(axis=1)
    low = replace(base.statistics, entropy_prex=data - 5e-3)
    twins = base.statistics.logprob.copy(), base.statistics.entropy_member.copy()
    for values in twins:
        values[:, 1] = values[:, 0]
    twin = replace(base.statistics, logprob=twins[0], entropy_member=twins[1])
    store = store_of(
        [[replace(base, score=-9.0, statistics=replace(low, logprob=twin.logprob))]],
        n_member=3,
        vocab_size=8,
        length_penalty=1.0,
    )
    report = write_measures(store, tmp_path, GRID)
    assert not report["ok"]
    assert report["score"]["hypotheses_off"] == 1
    assert report["not_negative"]["prex_mi"]["negative_tokens"] > 0
    assert report["recomputed"]["tokens_off"] > 0
    twins_store = store_of(
        [[replace(base, statistics=twin, full_logprob=None)]], n_member=3, vocab_size=8
    )
    report = write_measures(twins_store, tmp_path, GRID)
    assert report["identical_members"] == [["member_0", "member_1"]]


def test_case_1_tokens_that_a_member_excludes_are_reported_without_nan(
    store_of: StoreOf, tmp_path: Path
):
    """Tokens have probability 0 in one member, in all members, and at a realised token."""
    logit = np.random.default_rng(0).normal(size=(4, 3, 8))
    logit[0, 1, 2] = logit[1, :, 3] = logit[2, 0, 5] = -np.inf
    logprob = logit - np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    token = np.array([0, 0, 5, 0])
    hypothesis = Hypothesis(token, "text", -1.0, True, token_statistics(logprob, token))
    report = write_measures(store_of([[hypothesis]], n_member=3, vocab_size=8), tmp_path, GRID)
    assert report["ok"]
    assert report["infinite_tokens"]["prex_rmi"] == 2
    assert report["infinite_tokens"]["prex_pmi"] == 1
    finite = {"prex_entropy", "expr_entropy", "data", "prex_mi", "prex_score", "expr_mi_w"}
    assert not finite & set(report["infinite_tokens"])
    for name in ("token", "sequence"):
        table = pd.read_parquet(tmp_path / f"{name}.parquet").drop(
            columns=[*HEURISTICS], errors="ignore"
        )
        assert table.notna().all(axis=None), name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"entropy_prex": -0.5}, r"prex_mi must be at least 0 .got -"),
        ({"entropy_expr": 1.0}, r"expr_entropy must be at most ln\(vocab_size=8\) .got 2\."),
        ({"cross_expr": -0.5}, r"expr_rmi must be at least 0 .got -"),
        ({"logprob": 0.5}, r"prex_score must be at least 0 .got -0\.5"),
    ],
)
def test_out_of_range_measures_are_rejected_with_sentence_and_token(
    store_of: StoreOf,
    random_hypothesis: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, float],
    words: str,
):
    sentences = [[random_hypothesis(rank) for rank in range(count)] for count in (2, 0, 3)]
    written = store_of(sentences, task="nmt_ende", test_set="MED", n_member=3, vocab_size=8)
    written.close()
    ((name, shift),) = change.items()
    with h5py.File(written.path, "r+") as file:
        # The third token of the second hypothesis of the third sentence.
        row = file[f"/token/{name}"][14]
        file[f"/token/{name}"][14] = shift if name == "logprob" else row + shift
    monkeypatch.setattr("pipeline.uncertainty.blocks._BLOCK_BYTES", 1)
    where = r"0\.h5: nmt_ende, MED, sentence 2, hypothesis 1, token 2: "
    with open_own_store(written.path) as store, pytest.raises(StoreError, match=where + words):
        write_measures(store, tmp_path, GRID)


def test_mi_and_epkl_of_expr_may_be_negative(
    store_of: StoreOf, random_hypothesis: Make, tmp_path: Path
):
    base = random_hypothesis(0)
    # ExPr can follow one certain member, whose entropy is below the mean.
    sure = np.full_like(base.statistics.entropy_expr, 1e-3)
    statistics = replace(base.statistics, entropy_expr=sure, cross_expr=sure)
    store = store_of([[replace(base, statistics=statistics)]], n_member=3, vocab_size=8)
    values = next(token_blocks(store)).measures
    assert values["expr_mi"].max() < -0.5
    assert values["expr_epkl"].max() < -0.5
    weighted = {name: values[name] for name in ("expr_mi", "expr_epkl")}
    reject_out_of_range(store, replace(next(token_blocks(store)), measures=weighted))


def test_nan_of_a_sequence_measure_is_rejected_with_its_sentence(
    store_of: StoreOf, random_hypothesis: Make
):
    store = store_of([[], [random_hypothesis(0)]], test_set="MED", n_member=3, vocab_size=8)
    reject_nan(store, "prex_rmi_s", np.array([np.nan, 0.0]))
    with pytest.raises(StoreError, match=r"MED, sentence 1: prex_rmi_s must be a number .got nan"):
        reject_nan(store, "prex_rmi_s", np.array([np.nan, np.nan]))


@pytest.mark.parametrize("keeps", ["full", "topk"])
def test_token_ids_must_match_the_distributions(
    store_of: StoreOf, random_hypothesis: Make, tmp_path: Path, keeps: str
):
    """Token ids that are wrong by one do not change the statistics of the distributions."""
    base = random_hypothesis(0, full="float32")
    assert base.full_logprob is not None
    slipped = (np.asarray(base.token_id) + 1) % 8
    if keeps == "topk":
        order = np.argsort(-np.exp(base.full_logprob).mean(axis=1), axis=1)
        listed = np.take_along_axis(base.full_logprob, order[:, np.newaxis, :6], axis=2)
        rest = np.take_along_axis(base.full_logprob, order[:, np.newaxis, 6:], axis=2)
        tail = np.log(np.exp(rest).sum(axis=2))
        base = replace(base, full_logprob=None, topk=TopK(order[:, :6], listed, tail))
    for token, off in ((base.token_id, False), (slipped, True)):
        store = store_of([[replace(base, token_id=token)]], n_member=3, vocab_size=8)
        report = write_measures(store, tmp_path, GRID)
        assert (report["recomputed"]["largest_difference_nats"]["logprob"] > 1e-3) == off
        assert report["ok"] != off


def test_files_do_not_depend_on_block_size(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folders = [tmp_path / name for name in ("expected", "small_blocks")]
    for folder in folders:
        folder.mkdir()
    expected = write_measures(store, folders[0], GRID)
    monkeypatch.setattr("pipeline.uncertainty.blocks._BLOCK_BYTES", 1)
    small_blocks = write_measures(store, folders[1], GRID)
    assert {**small_blocks, "recomputed": None} == {**expected, "recomputed": None}
    for name in ("sequence", "token"):
        table, in_small_blocks = (pd.read_parquet(folder / f"{name}.parquet") for folder in folders)
        pd.testing.assert_frame_equal(table, in_small_blocks, rtol=1e-6)
    lengths = np.diff(store.token_offset)
    assert table.sentence_id.tolist() == np.repeat([0, 0, 2, 2, 2], lengths).tolist()
    assert table.hypothesis.tolist() == np.repeat([0, 1, 0, 1, 2], lengths).tolist()
    assert table.position.tolist() == [position for length in lengths for position in range(length)]
