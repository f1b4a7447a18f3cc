"""Cells of quality, metrics of the user, and likelihood, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.cell import Cell
from pipeline.metrics.decodes import Decode
from pipeline.metrics.evaluation import Evaluation, RecordedEvaluation
from pipeline.metrics.performance import extra_cells, nll_cells, quality_cells, sentence_nll
from pipeline.quality.registry import QUALITIES
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics

LN2 = np.log(2)
FORCED = Cell("nmt_ende", "MED", "random_init", "reference", "teacher_forcing", signature="sig")


def forced(path: Path, sentences: Sequence[Any], cell: Cell = FORCED) -> Decode:
    """Write a store of references with the probabilities [token, member] of each sentence."""
    n_member = next((len(sentence[0]) for sentence in sentences if sentence), 2)
    members = [f"seed_{index}" for index in range(n_member)]
    settings = {"regime": "teacher_forcing", "combination": "prex", "vocab_size": 9}
    with StoreWriter(path, members=members, **settings) as store:
        for sentence_id, probabilities in enumerate(sentences):
            hypotheses = []
            if probabilities:
                with np.errstate(divide="ignore"):
                    logprob = np.log(np.array(probabilities))
                plain = {n: np.ones(len(logprob)) for n in TokenStatistics.__dataclass_fields__}
                entropy = np.ones_like(logprob)
                statistics = TokenStatistics(
                    **(plain | {"logprob": logprob, "entropy_member": entropy})
                )
                hypotheses = [
                    Hypothesis(np.zeros(len(logprob), int), "text", 0.0, True, statistics)
                ]
            store.add_sentence(sentence_id, "source", "text" if probabilities else None, hypotheses)
    texts = ["text" if sentence else None for sentence in sentences]
    sources = ["source"] * len(texts)
    runs = tuple(members)
    cell = replace(cell, runs=";".join(runs), members=n_member)
    return Decode(path, cell, True, runs, sources, texts, texts, member_runs=runs)


def named(cells: Any) -> dict[tuple[str, str], Cell]:
    return {(cell.ensemble, cell.hypotheses): cell for cell in cells}


def test_likelihoods_of_references_by_hand(tmp_path: Path, evaluation: Evaluation) -> None:
    """Sentence 1: members give 1/2 and 1/8, then 1. Sentence 2: 1/4. Sentence 3 is missing."""
    sentences = [[[0.5, 0.125], [1.0, 1.0]], None, [[0.25, 0.25]]]
    decode = forced(tmp_path / "a.h5", sentences)
    cells = named(nll_cells([decode], "random_init", (), evaluation))
    assert list(cells) == [("random_init", "prex"), ("random_init", "expr"), ("single", "-")]
    joint = -np.log(0.3125)
    assert cells["random_init", "prex"].value == pytest.approx((joint / 2 + 2 * LN2) / 2)
    assert cells["random_init", "expr"].value == pytest.approx((joint / 2 + 2 * LN2) / 2)
    single = cells["single", "-"]
    assert single.value == pytest.approx(1.5 * LN2)
    # The members have (1/2 + 2) / 2 and (3/2 + 2) / 2 times ln 2.
    assert single.spread == pytest.approx(np.std([1.25 * LN2, 1.75 * LN2], ddof=1))
    assert {cell.spread for key, cell in cells.items() if key[0] != "single"} == {None}
    for cell in cells.values():
        assert (cell.column, cell.metric, cell.n, cell.regime) == (
            *("nll", "nll", 2),
            "teacher_forcing",
        )
        assert "NLL|mean:sentence" in cell.signature


def test_posteriors_differ_along_a_sequence(tmp_path: Path, evaluation: Evaluation) -> None:
    decode = forced(tmp_path / "a.h5", [[[0.5, 0.25], [0.5, 1.0]]])
    cells = named(nll_cells([decode], "checkpoint", (), evaluation))
    assert set(cells) == {("random_init", "prex"), ("random_init", "expr")}
    assert cells["random_init", "prex"].value == pytest.approx(-np.log(0.375 * 0.75) / 2)
    assert cells["random_init", "expr"].value == pytest.approx(LN2)


def test_single_members_have_no_posterior(tmp_path: Path, evaluation: Evaluation) -> None:
    for kind in ("single", "checkpoint_average"):
        group = [
            forced(tmp_path / f"{kind}{run}.h5", [[[probability]]], replace(FORCED, ensemble=kind))
            for run, probability in enumerate((0.5, 0.125))
        ]
        cells = named(nll_cells(group, "random_init", (), evaluation))
        assert list(cells) == [(kind, "-")]
        assert cells[kind, "-"].value == pytest.approx(2 * LN2)
        assert cells[kind, "-"].spread == pytest.approx(np.sqrt(2) * LN2)


def test_members_of_some_runs_are_averages_of_checkpoints(
    tmp_path: Path, evaluation: Evaluation
) -> None:
    decode = forced(tmp_path / "a.h5", [[[0.5, 0.25, 0.125]]])
    cells = named(nll_cells([decode], "random_init", ("seed_0", "seed_2"), evaluation))
    average, single = cells["checkpoint_average", "-"], cells["single", "-"]
    assert (average.value, single.value) == (pytest.approx(2 * LN2), pytest.approx(2 * LN2))
    assert average.spread == pytest.approx(np.sqrt(2) * LN2)
    assert (average.runs, average.members) == ("seed_0;seed_2", 1)
    assert (single.runs, single.members) == ("seed_0;seed_1;seed_2", 1)
    assert cells["random_init", "prex"].members == 3


def test_ensembles_without_one_run_are_replicates(tmp_path: Path, evaluation: Evaluation) -> None:
    recorded = RecordedEvaluation(**vars(evaluation))
    decode = forced(tmp_path / "a.h5", [[[0.5, 0.25, 0.125]], None])
    cells = named(nll_cells([decode], "random_init", (), recorded))
    of_prex = recorded.replicates[cells["random_init", "prex"].key]
    means = {"seed_0;seed_1;seed_2": 0.875 / 3, "seed_1;seed_2": 0.375 / 2}
    means |= {"seed_0;seed_2": 0.625 / 2, "seed_0;seed_1": 0.75 / 2}
    assert of_prex == {runs: pytest.approx(-np.log(mean)) for runs, mean in means.items()}
    of_single = recorded.replicates[cells["single", "-"].key]
    assert of_single == {f"seed_{i}": pytest.approx((i + 1) * LN2) for i in range(3)}


def test_two_members_are_too_few_to_leave_one_out(tmp_path: Path, evaluation: Evaluation) -> None:
    recorded = RecordedEvaluation(**vars(evaluation))
    cells = named(
        nll_cells([forced(tmp_path / "a.h5", [[[0.5, 0.25]]])], "random_init", (), recorded)
    )
    assert list(recorded.replicates[cells["random_init", "prex"].key]) == ["seed_0;seed_1"]


def test_references_with_probability_0_are_counted(tmp_path: Path, evaluation: Evaluation) -> None:
    decode = forced(tmp_path / "a.h5", [[[0.0, 0.5]], [[0.0, 0.0]], [[0.5, 0.5]], None])
    cells = named(nll_cells([decode], "random_init", (), evaluation))
    assert {(cell.value, cell.n) for cell in cells.values()} == {(None, 3)}
    assert cells["random_init", "prex"].reason == "1 references have probability 0"
    assert cells["single", "-"].reason == "2 references have probability 0"


def test_nll_without_references_has_a_reason(tmp_path: Path, evaluation: Evaluation) -> None:
    cells = named(nll_cells([forced(tmp_path / "a.h5", [None])], "random_init", (), evaluation))
    assert {(cell.value, cell.n, cell.reason) for cell in cells.values()} == {
        (None, 0, "no reference")
    }


@pytest.mark.parametrize(
    ("name", "secondary", "value", "value_secondary"),
    # Matching word n-grams of order 1 to 4: 3 of 4, 1 of 3, 0 of 2 (smoothed: 1/2), 0 of 1 (1/4).
    # Characters: 1 of 7 with spaces; n-grams without spaces: 3 of 4, 1 of 3, 0 and 0.
    [
        ("wer_percent", "cer_percent", 25, 100 / 7),
        ("bleu", "chrf", 100 * (3 / 4 * 1 / 3 * 1 / 4 * 1 / 4) ** 0.25, 100 * (3 / 4 + 1 / 3) / 4),
    ],
)
def test_quality_and_its_secondary_metric_by_hand(
    measured: Any,
    evaluation: Evaluation,
    name: str,
    secondary: str,
    value: float,
    value_secondary: float,
) -> None:
    decode = measured([0], ["a x c d"], ["a b c d"]).decode
    first, second = quality_cells([decode], replace(evaluation, quality=QUALITIES[name]))
    assert (first.column, first.metric, second.column, second.metric) == (
        name,
        name,
        secondary,
        secondary,
    )
    assert first.value == pytest.approx(value)
    assert second.value == pytest.approx(value_secondary)


def test_metrics_of_the_user_are_cells(measured: Any, evaluation: Evaluation) -> None:
    texts = ["a b", None, "c"], ["r", "r", None]
    decode = measured([0, 0, 0], *texts).decode
    seen = []

    def words(hypotheses: list[str], references: list[str]) -> int:
        seen.append((hypotheses, references))
        return len(hypotheses[0].split())

    foreign = replace(decode, in_domain=False, cell=replace(decode.cell, test_set="L-FR"))
    shorter = replace(decode, texts=["a b c d", None, "c"])
    metrics = {"words": words, "broken": lambda *_: np.float32("nan")}
    words_cell, broken = extra_cells([decode, foreign, shorter], metrics, evaluation)
    assert (words_cell.value, words_cell.n, words_cell.column, words_cell.metric) == (
        3,
        1,
        "words",
        "words",
    )
    assert words_cell.spread == pytest.approx(np.sqrt(2))
    assert words_cell.signature.endswith("; metric:words")
    assert seen == [(["a b"], ["r"]), (["a b c d"], ["r"])]
    assert (broken.value, broken.n, broken.reason) == (None, 1, "broken gave no finite number")
    nothing = replace(decode, references=[None] * 3)
    (cell,) = extra_cells([nothing], {"words": words}, evaluation)
    assert (cell.value, cell.reason) == (None, "no reference")
    for value in ("3", None):
        with pytest.raises(DataError, match=r"extra_metrics\.bad: did not return a number \(got "):
            list(extra_cells([decode], {"bad": lambda *_, value=value: value}, evaluation))


def test_sentence_nll_of_two_members_by_hand():
    # One sentence of two tokens. The members give 1/2, 1/2 and 1/4, 1.
    logprob = np.log([[0.5, 0.25], [0.5, 1.0]])
    nll = sentence_nll(logprob, np.array([0, 2]))
    assert nll.prex == pytest.approx([-np.log(0.375 * 0.75) / 2])
    assert nll.expr == pytest.approx([-np.log(0.25) / 2])
    assert nll.single[:, 0] == pytest.approx([np.log(2), np.log(2)])


def test_sentence_nll_of_agreeing_members_is_one_number():
    logprob = np.repeat(np.log([[0.2], [0.7], [0.1]]), 3, axis=1)
    nll = sentence_nll(logprob, np.array([0, 1, 3]))
    np.testing.assert_allclose(nll.prex, nll.expr)
    np.testing.assert_allclose(nll.single, np.tile(nll.prex, (3, 1)))


def test_sentence_nll_of_probability_0_is_infinite():
    logprob = np.array([[-np.inf, np.log(0.5)], [-np.inf, -np.inf]])
    nll = sentence_nll(logprob, np.array([0, 1, 2]))
    assert nll.prex == pytest.approx([np.log(4), np.inf])
    assert nll.expr == pytest.approx([np.log(4), np.inf])
    assert nll.single[0].tolist() == [np.inf, np.inf]


def test_sentence_nll_without_sentences():
    assert sentence_nll(np.empty((0, 2)), np.array([0])).single.shape == (2, 0)
