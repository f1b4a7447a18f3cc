"""Cells of kinds of ensembles, teacher forcing, copy-through, absent test sets and speech."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.artifacts import list_files
from tests.stages.synthetic_run import FORCED, SEEDS, N, SyntheticRun

SETS = ("help", "permuted")


def checkpoint(seed: str) -> dict[str, Any]:
    return {"ensemble": "checkpoint", "members": [f"{seed}.update_1", f"{seed}.update_2"]}


@pytest.fixture
def run(tmp_path: Path) -> SyntheticRun:
    """Return a run with two ensembles of checkpoints and one of random initialisations."""
    run = SyntheticRun(tmp_path / "out: 日本")
    run.stores += [
        (
            f"checkpoint.{seed}.prex.{role}",
            checkpoint(seed) | {"test_set": role},
            role != "permuted",
        )
        for seed in SEEDS
        for role in SETS
    ]
    run.stores += [
        (
            f"checkpoint.{seed}.teacher_forcing.help",
            checkpoint(seed) | {"regime": "teacher_forcing"},
            True,
        )
        for seed in SEEDS
    ]
    dede = {"regime": "teacher_forcing", "test_set": "german-german"}
    run.stores.append(("random_init.teacher_forcing.german-german", dede, True))
    return run


def test_checkpoint_ensembles_of_two_seeds_make_one_cell_with_a_spread(
    run: SyntheticRun,
) -> None:
    run.write()
    cells = run.cells()
    bleu = cells["help", "checkpoint", "prex", "", "bleu", "bleu"]
    prr = cells["help", "checkpoint", "prex", "1", "prex_entropy_s", "prr"]
    auc = cells["permuted", "checkpoint", "prex", "5", "prex_entropy_s", "roc_auc"]
    nll = cells["help", "checkpoint", "expr", "", "nll", "nll"]
    assert all(float(cell["spread"]) > 0 for cell in (bleu, prr, auc, nll))
    assert auc["n"] == str(2 * N)
    constant = cells["permuted", "checkpoint", "prex", "5", "prex_rmi_s", "roc_auc"]
    assert (constant["value"], constant["spread"]) == ("50", "0")


def test_single_members_are_those_of_the_main_ensemble(run: SyntheticRun) -> None:
    run.write()
    of_both = run.cells()["help", "single", "-", "", "nll", "nll"]
    assert "random_init.teacher_forcing" in of_both["signature"]
    of_checkpoints = run.cells("ensemble.name=checkpoint")
    single = of_checkpoints["help", "single", "-", "", "nll", "nll"]
    assert float(single["value"]) != float(of_both["value"])


def test_checkpoint_averages_have_no_combination(run: SyntheticRun) -> None:
    run.stores += [
        (
            f"checkpoint_average.{seed}.{kind}.help",
            {"ensemble": "checkpoint_average", "members": [seed], "regime": regime},
            True,
        )
        for seed in SEEDS
        for kind, regime in (("prex", "beam"), ("teacher_forcing", "teacher_forcing"))
    ]
    run.write()
    cells = run.cells()
    for metric in ("bleu", "nll"):
        cell = cells["help", "checkpoint_average", "-", "", metric, metric]
        assert float(cell["spread"]) > 0
    assert {key[2] for key in cells if key[1] == "checkpoint_average"} == {"-"}


def test_averages_of_checkpoints_are_the_members_of_the_same_training_runs(
    run: SyntheticRun,
) -> None:
    """Checkpoint ensembles exist for seeds 1 and 2 of three."""
    seeds = [*SEEDS, "seed_3"]
    run.stores = [
        (
            part,
            {**attributes, "members": seeds} if part.startswith("random_init") else attributes,
            r,
        )
        for part, attributes, r in run.stores
    ]
    single = {"ensemble": "seed_3", "members": ["seed_3"]}
    run.stores.append(("seed_3.beam.help", single, True))
    run.write()
    cells = run.cells()
    for metric in ("bleu", "nll"):
        average, of_all, ensembles = (
            cells["help", kind, hypotheses, "", metric, metric]
            for kind, hypotheses in (
                ("checkpoint_average", "-"),
                ("single", "-"),
                ("checkpoint", "prex"),
            )
        )
        assert average["runs"] == ensembles["runs"] == "seed_1;seed_2"
        assert of_all["runs"] == "seed_1;seed_2;seed_3"
        assert average["value"] != of_all["value"]
        values = run.replicates("help", "single", metric)
        mean = np.mean([values["seed_1"], values["seed_2"]])
        assert float(average["value"]) == pytest.approx(mean)
    without = run.cells("train.average_last=1")
    assert not any(key[1] == "checkpoint_average" for key in without)


def test_ensembles_without_one_run_are_replicates_and_not_cells(run: SyntheticRun) -> None:
    seeds = [*SEEDS, "seed_3"]
    subsets = {"1_2": seeds[:2], "2_3": seeds[1:]}
    run.stores = [
        ("random_init.prex.help", {"members": seeds}, True),
        (FORCED, {"regime": "teacher_forcing", "members": seeds}, True),
        *(
            (
                f"random_init.subset_{label}.prex.help",
                {"ensemble": "subset", "members": m},
                True,
            )
            for label, m in subsets.items()
        ),
    ]
    run.write()
    cells = run.cells()
    assert "subset" not in {key[1] for key in cells}
    assert cells["help", "random_init", "prex", "", "bleu", "bleu"]["members"] == "3"
    whole, parts = ";".join(seeds), {";".join(members) for members in subsets.values()}
    for column, metric in (("bleu", "bleu"), ("prex_entropy_s", "prr")):
        values = run.replicates("help", "random_init", metric, column)
        assert values.keys() == {whole, *parts}
    every = {whole, "seed_1;seed_2", "seed_1;seed_3", "seed_2;seed_3"}
    assert run.replicates("help", "random_init", "nll").keys() == every


def test_forced_references_are_compared_with_in_domain_references(run: SyntheticRun) -> None:
    run.write()
    cells = run.cells()
    key = ("german-german", "random_init", "reference", "1", "prex_entropy_s")
    cell = cells[*key, "roc_auc"]
    assert (cell["regime"], cell["T"], cell["n"]) == ("teacher_forcing", "", str(2 * N))
    assert "against part:random_init.teacher_forcing.help" in cell["signature"]
    forced = {key for key in cells if key[2] == "reference"}
    assert {key[5] for key in forced} == {"roc_auc"}
    assert {key[4] for key in forced} == {"prex_entropy_s", "prex_rmi_s", "xbleu", "var_p"}


def test_copy_through_is_a_metric_and_a_measure(run: SyntheticRun) -> None:
    run.sources = [*(["a b c"] * (N - 1)), "..."]
    run.write()
    cells = run.cells()
    share = cells["permuted", "random_init", "prex", "", "copy_through", "copied_percent"]
    texts = run.texts["random_init.prex.permuted"][: N - 1]
    copied = sum(len({"a", "b", "c"} & set(str(text).split())) for text in texts)
    assert float(share["value"]) == pytest.approx(100 * copied / (3 * (N - 1)))
    assert share["n"] == str(N - 1)
    assert cells["help", "single", "-", "", "copy_through", "copied_percent"]["spread"]
    measure = cells["permuted", "random_init", "prex", "5", "copy_through", "roc_auc"]
    assert measure["n"] == str(2 * (N - 1))


def test_absent_test_sets_are_listed_with_their_reason(run: SyntheticRun) -> None:
    run.write()
    folder = run.root / "prepare" / "nmt_ende"
    folder.mkdir(parents=True)
    absent = {
        "absent_sets": {
            "librispeech-test-other": "data.librispeech is null",
            "of another config": "gone",
        }
    }
    list_files(folder, "prepare", absent)
    cells = run.cells()
    assert (
        cells["librispeech-test-other", "-", "-", "", "", ""]["reason"]
        == "data.librispeech is null"
    )
    assert {key[0] for key in cells} == {
        "help",
        "permuted",
        "french-source",
        "german-source",
        "german-german",
        "librispeech-test-other",
    }


def test_token_errors_of_speech_are_evaluated(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path, "asr")
    part = "random_init.prex.fish-fillets"
    run.stores = [(part, {"test_set": "fish-fillets"}, True)]
    run.write()
    words = [str(text).split() for text in run.texts[part]]
    tokens = pd.DataFrame(
        [
            {"sentence_id": i, "hypothesis": 0, "position": position, "token_id": token}
            for i, sentence in enumerate(words)
            for position, token in enumerate([*(4 + "abcde".index(word) for word in sentence), 2])
        ]
    )
    tokens["prex_score"] = run.random.random(len(tokens))
    tokens.to_parquet(run.root / "uncertainty" / "asr" / part / "token.parquet")
    dictionary = run.root / "prepare" / "asr" / "fairseq" / "dict.en.txt"
    dictionary.parent.mkdir(parents=True)
    dictionary.write_text("".join(f"▁{letter} 1\n" for letter in "abcde"), encoding="utf-8")

    cells = run.cells()
    rate = cells["fish-fillets", "random_init", "prex", "", "token_error_rate_percent", "percent"]
    assert 0 < float(rate["value"]) < 100
    aupr = cells["fish-fillets", "random_init", "prex", "", "prex_score", "aupr"]
    assert "align:nist|eos:exclude" in aupr["signature"]
    assert float(aupr["value"]) > 0
    copied = [cell for key, cell in cells.items() if key[4] == "copy_through"]
    metrics = {("prr", ""), ("spearman", "")}
    assert {(cell["metric"], cell["value"]) for cell in copied} == metrics
    assert {cell["reason"] for cell in copied} == {"speech has no source text"}
    shortest = run.cells("metrics.aligner=levenshtein")
    levenshtein = shortest["fish-fillets", "random_init", "prex", "", "prex_score", "aupr"]
    assert "align:levenshtein" in levenshtein["signature"]


def test_rules_of_the_released_code_are_added_to_the_correct_rules(run: SyntheticRun) -> None:
    run.write()
    cells = run.cells("metrics=released", "metrics.resamples=10", "tracking=off")
    key = ("help", "random_init", "prex", "1", "prex_entropy_s")
    values = [
        float(cells[*key, metric]["value"])
        for metric in ("prr", "prr_sbleu_floor", "prr_shifted", "prr_released")
    ]
    assert len(set(values)) == 4
    correct = run.cells("metrics.resamples=10")
    assert float(correct[*key, "prr"]["value"]) == values[0]
    assert (*key, "prr_shifted") not in correct


def test_cells_file_has_every_key_once(run: SyntheticRun) -> None:
    run.write()
    run.cells()
    with (run.root / "metrics" / "nmt_ende" / "cells.csv").open(encoding="utf-8", newline="") as f:
        rows = [tuple(row.values())[:10] for row in csv.DictReader(f)]
    assert len(rows) == len(set(rows))
    assert np.unique([row[1] for row in rows]).tolist() == sorted(
        {"help", "permuted", "french-source", "german-source", "german-german"}
    )
