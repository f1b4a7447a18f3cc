"""Distributions that do not sum to 1 are refused; rounding of real models is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.errors import DataError, StoreError
from pipeline.store import Hypothesis, StoreWriter, TopK, open_own_store
from pipeline.store.normalisation import entropy_bounds, sum_tolerance, total_probability
from pipeline.store.validate import store_faults, unchecked
from pipeline.uncertainty.token import token_statistics

Array = NDArray[np.floating[Any]]
Make = Callable[..., Hypothesis]
Write = Callable[..., Path]


def _logprob(logit: Array) -> Array:
    return logit - np.log(np.exp(logit).sum(-1, keepdims=True))


def _distributions(n_token: int = 6, n_member: int = 3, vocab_size: int = 11) -> Array:
    random = np.random.default_rng(0)
    return _logprob(2 * random.normal(size=(n_token, n_member, vocab_size)))


def _masked(logprob: Array) -> Array:
    changed = logprob.copy()
    changed[4, 1, logprob[4, 1].argmax()] = -np.inf
    return changed


# Values that users take for log-probs, and what the message says of them.
WRONG: dict[str, tuple[Callable[[Array], Array], str]] = {
    "base 2": (lambda x: x / np.log(2), "; logarithms to base 2\\)"),
    "base 10": (lambda x: x / np.log(10), "; logarithms to base 10\\)"),
    "logits": (lambda x: x - 5, "; logits, or scores that were masked"),
    "masked": (_masked, r"got 0\.47\d+; logits, or scores that were masked"),
    "temperature": (lambda x: x / 1.5, "; logits, or scores that were masked"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_values_that_are_no_log_probs_are_refused(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    kind: str,
    dtype: type[np.floating[Any]],
) -> None:
    change, found = WRONG[kind]
    logprob = change(_distributions()).astype(dtype)
    with pytest.raises(DataError, match=f"^logprob: .*probabilities must sum to 1 .*{found}"):
        token_statistics(logprob, np.zeros(6, int))
    wrong = replace(make_hypothesis(6), full_logprob=logprob)
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        with pytest.raises(StoreError, match=f"hypothesis 0, /token/full_logprob: .*{found}"):
            store.add_sentence(0, "s", "r", [wrong])
        store.add_sentence(0, "s", "r", [make_hypothesis(6)])


def test_probabilities_are_refused() -> None:
    with pytest.raises(DataError, match="; probabilities, not their logarithms"):
        token_statistics(np.exp(_distributions()), np.zeros(6, int))


def test_large_logits_are_refused_without_a_warning() -> None:
    logit = np.full((1, 1, 4), 1e4, np.float32)
    with pytest.raises(DataError, match=r"token 0, member 0: .*got inf; logits"):
        token_statistics(logit, np.zeros(1, int))


@pytest.mark.parametrize("vocab_size", [2, 50, 4_000, 40_000, 250_000])
@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
def test_softmax_of_float32_or_half_precision_is_accepted(vocab_size: int, spread: float) -> None:
    random = np.random.default_rng(1)
    logit = (30 + spread * random.normal(size=(4, 1, vocab_size))).astype(np.float32)
    in_float32 = logit - np.log(np.exp(logit - 30).sum(-1, keepdims=True)) - np.float32(30)
    for logprob in (
        in_float32,
        in_float32.astype(np.float16),
        in_float32.astype(np.float16).astype(np.float32),
        _logprob(logit.astype(np.float64)),
    ):
        assert np.abs(total_probability(logprob) - 1).max() <= sum_tolerance(vocab_size)
        token_statistics(logprob, np.zeros(4, int))


def test_rounding_can_reach_the_tolerance_of_half_precision() -> None:
    """Equal probabilities are rounded in the same direction: the worst case but for a factor 2."""
    worst = max(
        abs(total_probability(np.full((1, n), -np.log(n), np.float16))[0] - 1) / sum_tolerance(n)
        for n in range(2, 5_000, 7)
    )
    assert 0.5 < worst <= 1


def test_top_k_and_tail_must_sum_to_1(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
) -> None:
    right = make_hypothesis(2, dump="topk")
    assert right.topk is not None
    without_tail = TopK(right.topk.token_id, right.topk.logprob, np.full((2, 3), -np.inf))
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        with pytest.raises(StoreError, match="token 0, member 0: probabilities must sum to 1"):
            store.add_sentence(0, "s", "r", [replace(right, topk=without_tail)])
        store.add_sentence(0, "s", "r", [right])
    assert store_faults(tmp_path / "s.h5") == []


@pytest.mark.parametrize(
    ("dump", "name"),
    [
        ("full", "/token/full_logprob"),
        ("topk", "/token/topk_logprob"),
        ("topk", "/token/tail_logprob"),
    ],
)
def test_validate_names_the_distribution(write_store: Write, dump: str, name: str) -> None:
    path = write_store(dump=dump)
    with h5py.File(path, "r+") as file:
        file[name][4, 1] -= 0.5
    (fault,) = store_faults(path)
    of = name.replace("tail", "topk")
    assert f"dataset {of}, row 4: probabilities must sum to 1 to within 0.001 (got 0." in fault
    assert fault.endswith("member b).")


def test_entropy_above_that_of_equal_probabilities_is_refused(
    write_store: Write, tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
) -> None:
    path = write_store()
    with h5py.File(path, "r+") as file:
        file["/token/entropy_member"][4, 1] = np.log2(11)
    (fault,) = store_faults(path)
    assert "/token/entropy_member, row 4: must be an entropy, >= 0 and <= ln v" in fault


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("/token/logprob", -0.001),  # with an entropy above 1 nat: a score that was changed
        ("/token/entropy_member", 0.0),
        ("/token/entropy_member", 2.39),
    ],
)
def test_entropy_must_fit_the_log_prob(write_store: Write, name: str, value: float) -> None:
    path = write_store()
    with h5py.File(path, "r+") as file:
        logprob = np.where(file["/token/entropy_member"][:] > 1, file["/token/logprob"][:], -9)
        row, member = np.unravel_index(logprob.argmax(), logprob.shape)
        file[name][row, member] = value
    rule = f"row {row}: must be the entropy of a distribution with the log-prob of /token/logprob"
    assert f"/token/entropy_member, {rule} (got " in store_faults(path)[0]


def test_bounds_of_the_entropy_are_reached() -> None:
    """Source: h(p) + (1 - p) ln(V - 1), from Fano's inequality."""
    for vocab_size in (1, 2, 5):
        p = np.array([1.0, 0.5, 0.1]) if vocab_size > 1 else np.array([1.0])
        rest = np.zeros((len(p), vocab_size))
        rest[:, 0] = p
        even = rest.copy()
        rest[:, -1] += 1 - p
        even[:, 1:] += (1 - p)[:, np.newaxis] / max(vocab_size - 1, 1)
        wanted = [
            -np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0).sum(1) for q in (rest, even)
        ]
        np.testing.assert_allclose(entropy_bounds(np.log(p), vocab_size), wanted, atol=1e-12)
    impossible = entropy_bounds(np.array([-np.inf]), 5)
    np.testing.assert_allclose(impossible, [[0.0], [np.log(4)]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dump", "warning"),
    [("statistics", "no distributions are stored"), ("topk", "only sums of tails"), ("full", None)],
)
def test_command_warns_of_what_cannot_be_checked(
    write_store: Write, attributes: dict[str, Any], dump: str, warning: str | None
) -> None:
    del attributes["length_penalty"]  # with which scores would be compared
    path = write_store(dump=dump)
    command = [sys.executable, "-m", "pipeline.store", "validate", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: a valid decode store\n"
    if warning is None:
        assert done.stderr == ""
    else:
        assert done.stderr.startswith(f"warning: {path}: {warning}")
        assert "Nothing needs to be done if token_statistics computed the statistics" in done.stderr


def test_stores_of_stage_decode_need_no_such_warning(
    write_store: Write, attributes: dict[str, Any]
) -> None:
    attributes["config"] = "decode: {}"
    with open_own_store(write_store()) as store:
        assert unchecked(store) is None
