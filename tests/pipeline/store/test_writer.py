"""A store returns what was written; invalid input is rejected and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.errors import StoreError
from pipeline.store import Flag, Hypothesis, Store, StoreWriter, TopK, open_own_store
from pipeline.store.validate import store_faults

Make = Callable[..., Hypothesis]
Write = Callable[..., Path]


def opened(path: Path) -> Store:
    """Open a store after a check of all its values, in this process."""
    assert store_faults(path) == []
    return open_own_store(path)


@pytest.mark.parametrize("dump", ["statistics", "topk", "full"])
def test_a_store_returns_what_was_written(write_store: Write, make_hypothesis: Make, dump: str):
    path = write_store(dump=dump)
    with opened(path) as store:
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


def test_datasets_of_several_chunks_are_complete(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
):
    hypotheses = [make_hypothesis(9000, seed) for seed in range(4)]
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", hypotheses)
    with opened(tmp_path / "s.h5") as stored:
        expected = np.concatenate(
            [hypothesis.statistics.entropy_member for hypothesis in hypotheses]
        )
        np.testing.assert_array_equal(
            stored.read("/token/entropy_member"), expected.astype(np.float32)
        )


def test_the_same_content_gives_the_same_bytes(write_store: Write):
    assert write_store("a.h5", 40).read_bytes() == write_store("b.h5", 40).read_bytes()


def test_flags_that_follow_from_the_content_are_set(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", None, [make_hypothesis(2)])
        store.add_sentence(1, "", "r", [], Flag.EMPTY_SOURCE)
        store.add_sentence(2, "s", "r", [replace(make_hypothesis(2), finished=False)])
    with opened(tmp_path / "s.h5") as stored:
        assert stored.flag.tolist() == [
            Flag.NO_REFERENCE,
            Flag.EMPTY_SOURCE | Flag.NO_HYPOTHESIS,
            Flag.NO_FINISHED_HYPOTHESIS,
        ]
        assert stored.references() == [None, "r", "r"]


def test_case_15_17_texts_and_paths_of_every_kind_are_kept(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
):
    texts = ["-3.5 percent: a, b", "line\u2028\u0085\x0c\r\n", "日本語 🙂", " ", ""]
    with StoreWriter(tmp_path / "a b:ü.h5", **attributes) as store:
        for sentence, text in enumerate(texts):
            store.add_sentence(sentence, text, text, [replace(make_hypothesis(1), text=text)])
    with opened(tmp_path / "a b:ü.h5") as stored:
        assert stored.sources() == stored.references() == stored.best_texts() == texts


@pytest.mark.parametrize("groups", [["a", "b", "a"], ["a", None, "a"], [None, None, None]])
def test_groups_and_originals_are_stored_if_every_sentence_has_one(
    tmp_path: Path, attributes: dict[str, Any], groups: list[str | None]
):
    originals = ["Seite:0", "Seite:1", "日本:2"]
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        for sentence, (group, original) in enumerate(zip(groups, originals, strict=True)):
            store.add_sentence(sentence, "s", "r", [], group=group, original=original)
    with opened(tmp_path / "s.h5") as stored:
        assert stored.has("/sentence/group") == (None not in groups)
        assert stored.groups() == (None if None in groups else groups)
        assert stored.originals() == originals


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"group": ""}, "sentence 1, /sentence/group: must not be empty"),
        ({"group": "\0"}, "must not contain the character NUL"),
        ({"original": "page:0"}, "/sentence/original: must be unique .got 'page:0' again"),
    ],
)
def test_a_name_that_cannot_be_used_is_rejected(
    tmp_path: Path, attributes: dict[str, Any], names: dict[str, str], message: str
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", [], original="page:0")
        with pytest.raises(StoreError, match=message):
            store.add_sentence(1, "s", "r", [], **names)
        store.add_sentence(1, "s", "r", [], original="page:1")
    with opened(tmp_path / "s.h5") as stored:
        assert stored.originals() == ["page:0", "page:1"]


def test_an_empty_store_is_valid(tmp_path: Path, attributes: dict[str, Any]):
    with StoreWriter(tmp_path / "s.h5", **attributes):
        pass
    assert store_faults(tmp_path / "s.h5") == []


def test_a_failed_block_leaves_no_file(tmp_path: Path, attributes: dict[str, Any]):
    def interrupted() -> None:
        with StoreWriter(tmp_path / "s.h5", **attributes) as store:
            store.add_sentence(0, "s", "r", [])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def _uniform(dtype: type[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    return np.full((2, 3, 11), -np.log(11), dtype)


def _with(hypothesis: Hypothesis, **changes: Any) -> Hypothesis:
    return replace(hypothesis, statistics=replace(hypothesis.statistics, **changes))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda h: _with(h, entropy_prex=np.array([0.1, np.nan])), "/token/entropy_prex: .*NaN"),
        (lambda h: _with(h, logprob=np.zeros((2, 2))), r"/token/logprob: .*\(2, 3\).*\(2, 2\)"),
        (lambda h: _with(h, cross_expr=np.zeros(3)), "/token/cross_expr: .*shape"),
        (lambda h: replace(h, token_id=np.array([0, 11])), "/token/id: .*vocab_size=11"),
        (lambda h: replace(h, token_id=np.array([], int)), "/token/id: .*must be"),
        (lambda h: replace(h, score=float("nan")), "/hypothesis/score: .*NaN"),
        (lambda h: replace(h, member=3), "/hypothesis/member: .*n_member=3"),
        (lambda h: replace(h, text="a\0b"), "/hypothesis/text: .*NUL"),
        (lambda h: replace(h, full_logprob=_uniform(np.float32)), "same dump"),
        (lambda h: _with(h, logprob=np.ones((2, 3))), "/token/logprob: .*must be a log-prob"),
        (lambda h: _with(h, entropy_expr=-np.ones(2)), "/token/entropy_expr: .*>= 0"),
        (lambda h: replace(h, token_id=np.array([0.0, 1.0])), "/token/id: .*integers"),
        (lambda h: replace(h, score=None), "/hypothesis/score: .*must be numbers"),
        (lambda h: replace(h, text=None), "/hypothesis/text: .*must be text"),
        (
            lambda h: replace(h, statistics=None),
            "statistics: must be TokenStatistics .got NoneType",
        ),
        (lambda h: replace(h, text="\ud800"), "/hypothesis/text: .*must be valid Unicode"),
    ],
)
def test_invalid_hypotheses_are_rejected(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    spoil: Callable[[Hypothesis], Hypothesis],
    message: str,
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", [make_hypothesis(2)])
        with pytest.raises(StoreError, match=message):
            store.add_sentence(1, "s", "r", [make_hypothesis(2), spoil(make_hypothesis(2, 1))])
        store.add_sentence(1, "s", "r", [make_hypothesis(2)])
    assert store_faults(tmp_path / "s.h5") == []


def _top(k: int) -> TopK:
    uniform = np.full((2, 3, k), -np.log(11))
    return TopK(np.zeros((2, k), int), uniform, np.full((2, 3), np.log((11 - k) / 11)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"topk": _top(1)}, {"topk": _top(2)}),
        (
            {"full_logprob": _uniform(np.float16)},
            {"full_logprob": _uniform(np.float32)},
        ),
    ],
)
def test_all_hypotheses_must_have_the_same_dump(
    tmp_path: Path,
    attributes: dict[str, Any],
    make_hypothesis: Make,
    first: dict[str, Any],
    second: dict[str, Any],
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        # A rejected sentence does not set the dump.
        with pytest.raises(StoreError, match="same dump"):
            store.add_sentence(
                0, "s", "r", [make_hypothesis(2), replace(make_hypothesis(2, 1), **first)]
            )
        store.add_sentence(0, "s", "r", [replace(make_hypothesis(2), **first)])
        with pytest.raises(StoreError, match="same dump"):
            store.add_sentence(1, "s", "r", [replace(make_hypothesis(2), **second)])
    assert store_faults(tmp_path / "s.h5") == []


def test_an_unfinished_file_is_not_complete(
    tmp_path: Path, attributes: dict[str, Any], make_hypothesis: Make
):
    with StoreWriter(tmp_path / "s.h5", **attributes) as store:
        store.add_sentence(0, "s", "r", [make_hypothesis(2)])
        store._file.flush()
        (half,) = tmp_path.iterdir()
        copy = tmp_path / "copy.h5"
        copy.write_bytes(half.read_bytes())
    assert "attribute complete: must be True" in store_faults(copy)[0]


def test_paths_that_cannot_be_written_are_rejected(tmp_path: Path, attributes: dict[str, Any]):
    (tmp_path / "file").write_text("mine")
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "file" / "s.h5", "cannot be written"),
    ):
        with pytest.raises(StoreError, match=message), StoreWriter(path, **attributes):
            pass
    with pytest.raises(StoreError, match="the StoreWriter is not open"):
        StoreWriter(tmp_path / "s.h5", **attributes).add_sentence(0, "s", "r", [])
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_numpy_attributes_and_constants_are_accepted(tmp_path: Path, attributes: dict[str, Any]):
    attributes |= {
        "regime": np.str_("beam"),
        "vocab_size": np.int64(11),
        "members": np.array(["a", "b", "c"]),
        "schema": "uncertainty-decode/1",
        "log_base": "e",
    }
    with StoreWriter(tmp_path / "s.h5", **attributes):
        pass
    with opened(tmp_path / "s.h5") as store:
        assert store.attributes["complete"] is True
        assert (store.regime, store.members) == ("beam", ["a", "b", "c"])


def test_sentence_ids_without_a_gap_are_required(tmp_path: Path, attributes: dict[str, Any]):
    with (
        StoreWriter(tmp_path / "s.h5", **attributes) as store,
        pytest.raises(StoreError, match="got 1 in place of 0"),
    ):
        store.add_sentence(1, "s", "r", [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regime": "beams"}, "regime: must be one of beam, greedy"),
        ({"vocab_size": None}, "vocab_size: missing"),
        ({"n_member": 2}, r"members: must have n_member=2 names \(got 3\)"),
        ({"nonsense": 1}, "attribute nonsense: unknown"),
        ({"log_base": "2"}, "attribute log_base: must be 'e'"),
        ({"config": {"a": 1}}, "attribute config: must be text"),
        ({"config": "a\0b"}, "attribute config: .*NUL"),
        ({"members": ["a", "b", "\ud800"]}, "attribute members: .*valid Unicode"),
        ({"members": "abc"}, "attribute members: must be a list of names"),
        ({"length_penalty": float("nan")}, "length_penalty: must be a finite number"),
    ],
)
def test_invalid_attributes_are_rejected(
    tmp_path: Path, attributes: dict[str, Any], change: dict[str, Any], message: str
):
    with pytest.raises(StoreError, match=message):
        StoreWriter(tmp_path / "s.h5", **(attributes | change))
