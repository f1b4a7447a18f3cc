"""What goes into a store comes out again; what breaks a rule leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import StoreError
from pipeline.store import Flag, Hypothesis, StoreWriter, open_store, validate

Make = Callable[..., Hypothesis]
Write = Callable[..., Path]


@pytest.mark.parametrize("dump", ["statistics", "topk", "full"])
def test_content_comes_out_as_it_went_in(write_store: Write, make_hypothesis: Make, dump: str):
    path = write_store(dump=dump)
    assert validate(path) == []
    with open_store(path) as store:
        assert (store.n_sentence, store.dump) == (7, dump)
        assert store.hypothesis_offset.tolist() == [0, 0, 1, 3, 3, 4, 6, 6]
        assert store.sources()[3] == "source 3"
        assert store.best_texts()[2:4] == ["text 20", None]
        expected = make_hypothesis(1 + (2 + 1) % 5, 21, dump)
        start, stop = store.token_offset[2], store.token_offset[3]
        for name in ("logprob", "entropy_member", "cross_member_expr"):
            stored = store.read(f"/token/{name}", start, stop)
            wanted = getattr(expected.statistics, name).astype(np.float32)
            np.testing.assert_array_equal(stored, wanted)
        if expected.full_logprob is not None:
            full = store.read("/token/full_logprob", start, stop)
            np.testing.assert_array_equal(full, expected.full_logprob)
        if expected.topk is not None:
            stored = store.read("/token/topk_logprob", start, stop)
            np.testing.assert_array_equal(stored, expected.topk.logprob)


def test_many_chunks(tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make):
    hypotheses = [make_hypothesis(9000, seed) for seed in range(4)]
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", hypotheses)
    with open_store(tmp_path / "s.h5") as stored:
        whole = np.concatenate([one.statistics.entropy_member for one in hypotheses])
        np.testing.assert_array_equal(
            stored.read("/token/entropy_member"), whole.astype(np.float32)
        )


def test_same_content_same_bytes(write_store: Write):
    assert write_store("a.h5", 40).read_bytes() == write_store("b.h5", 40).read_bytes()


def test_flags_that_the_content_shows(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", None, [make_hypothesis(2)])
        store.add_sentence(1, "", "r", [], Flag.EMPTY_SOURCE)
        store.add_sentence(2, "s", "r", [replace(make_hypothesis(2), finished=False)])
    with open_store(tmp_path / "s.h5") as stored:
        assert stored.flag.tolist() == [
            Flag.NO_REFERENCE,
            Flag.EMPTY_SOURCE | Flag.NO_HYPOTHESIS,
            Flag.NO_FINISHED_HYPOTHESIS,
        ]
        assert stored.references() == [None, "r", "r"]


def test_text_of_every_kind(tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make):
    texts = ["-3.5 percent: a, b", "line\u2028\u0085\x0c\r\n", "日本語 🙂", " ", ""]
    with StoreWriter(tmp_path / "a b:ü.h5", **attributes) as store:
        for sentence, text in enumerate(texts):
            store.add_sentence(sentence, text, text, [replace(make_hypothesis(1), text=text)])
    with open_store(tmp_path / "a b:ü.h5") as stored:
        assert stored.sources() == stored.references() == stored.best_texts() == texts


def test_empty_store(tmp_path: Path, attributes: dict[str, Any]):
    with StoreWriter(tmp_path / "s.h5", **attributes):
        pass
    assert validate(tmp_path / "s.h5") == []


def test_a_failure_leaves_nothing(tmp_path: Path, attributes: dict[str, Any]):
    def interrupted() -> None:
        with StoreWriter(tmp_path / "s.h5", **attributes) as store:
            store.add_sentence(0, "s", "r", [])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def _with(hypothesis: Hypothesis, **changes: Any) -> Hypothesis:
    return replace(hypothesis, statistics=replace(hypothesis.statistics, **changes))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda h: _with(h, entropy_prex=np.array([0.1, np.nan])), "/token/entropy_prex .*NaN"),
        (lambda h: _with(h, logprob=np.zeros((2, 2))), r"/token/logprob .*\(2, 3\).*\(2, 2\)"),
        (lambda h: _with(h, cross_expr=np.zeros(3)), "/token/cross_expr .*shape"),
        (lambda h: replace(h, token_id=np.array([0, 11])), "/token/id .*vocab_size=11"),
        (lambda h: replace(h, token_id=np.array([], int)), "/token/id .*must be"),
        (lambda h: replace(h, score=float("nan")), "/hypothesis/score .*NaN"),
        (lambda h: replace(h, member=3), "/hypothesis/member .*n_member=3"),
        (lambda h: replace(h, text="a\0b"), "/hypothesis/text .*NUL"),
        (lambda h: replace(h, full_logprob=np.zeros((2, 3, 11))), "same dump"),
    ],
)
def test_bad_hypotheses_are_refused(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    spoil: Callable[[Hypothesis], Hypothesis],
    message: str,
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", [make_hypothesis(2)])
        with pytest.raises(StoreError, match=message):
            store.add_sentence(1, "s", "r", [make_hypothesis(2), spoil(make_hypothesis(2))])
        store.add_sentence(1, "s", "r", [make_hypothesis(2)])
    assert validate(tmp_path / "s.h5") == []


def test_sentences_come_without_a_gap(tmp_path: Path, attributes: dict[str, Any]):
    with (
        StoreWriter(tmp_path / "s.h5", **attributes) as store,
        pytest.raises(StoreError, match="got 1 where 0 is due"),
    ):
        store.add_sentence(1, "s", "r", [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regime": "beams"}, "regime must be one of beam, greedy"),
        ({"vocab_size": None}, "vocab_size must be given"),
        ({"n_member": 2}, r"members must have n_member \(2\) names, got 3"),
        ({"nonsense": 1}, "attribute nonsense is not one of"),
    ],
)
def test_bad_attributes_are_refused(
    tmp_path: Path, attributes: dict[str, Any], change: dict[str, Any], message: str
):
    with pytest.raises(StoreError, match=message):
        StoreWriter(tmp_path / "s.h5", **(attributes | change))
