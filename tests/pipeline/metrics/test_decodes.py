"""The 1-best hypotheses of stores are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import DataError
from pipeline.metrics.decodes import Decode, read_decodes
from pipeline.run import settings as config
from pipeline.store import Hypothesis, StoreWriter, TokenStatistics

SETS = {
    "MED": config.TestSetConfig(kind="held_out", corpus="help", in_domain=True, roles=["M", "N"]),
    "L-FR": config.TestSetConfig(kind="held_out", corpus="french", in_domain=False),
}
TASK = config.TaskConfig(name="nmt_ende", label="EN-DE", family="translation", test_sets=SETS)


def write_store(folder: Path, part: str, **attributes: object) -> None:
    everything = {"regime": "beam", "combination": "prex", "vocab_size": 3} | attributes
    n_member = len(everything["members"])  # type: ignore[arg-type]
    plain = {name: np.zeros(1) for name in TokenStatistics.__dataclass_fields__}
    of_members = {name: np.zeros((1, n_member)) for name in ("logprob", "entropy_member")}
    statistics = TokenStatistics(**(plain | of_members))
    hypothesis = Hypothesis(np.array([2]), "text", 0.0, True, statistics)
    with StoreWriter(folder / part / "store.h5", **everything) as store:
        store.add_sentence(0, "source", "reference", [hypothesis])
        store.add_sentence(1, "other", None, [])


@pytest.mark.parametrize(
    ("attributes", "key", "kind"),
    [
        (
            {"members": ["a", "b"], "ensemble": "random_init"},
            ("random_init", "prex", "beam"),
            (True, False, True),
        ),
        (
            {"members": ["a", "b"], "ensemble": "random_init", "combination": "expr"},
            ("random_init", "expr", "beam"),
            (True, False, True),
        ),
        ({"members": ["a"], "ensemble": "a"}, ("single", "-", "beam"), (True, False, False)),
        (
            {"members": ["a"], "ensemble": "a", "regime": "greedy"},
            ("single", "-", "greedy"),
            (True, False, False),
        ),
        ({"members": ["a"], "ensemble": "b"}, ("b", "prex", "beam"), (True, False, True)),
        (
            {"members": ["a"], "ensemble": "checkpoint_average"},
            ("checkpoint_average", "-", "beam"),
            (True, False, True),
        ),
        (
            {"members": ["a", "b"], "ensemble": "random_init", "regime": "teacher_forcing"},
            ("random_init", "reference", "teacher_forcing"),
            (False, True, True),
        ),
        (
            {"members": ["a", "b"], "ensemble": "random_init", "regime": "sample"},
            ("random_init", "prex", "sample"),
            (False, False, True),
        ),
    ],
)
def test_a_decode_takes_its_key_from_its_store(
    tmp_path: Path,
    attributes: dict[str, object],
    key: tuple[str, str, str],
    kind: tuple[bool, bool, bool],
) -> None:
    write_store(tmp_path, "part", test_set="MED", signature="sig", **attributes)
    decode = read_decodes(tmp_path, ["part"], TASK)["part"]
    cell = decode.cell
    assert (cell.ensemble, cell.hypotheses, cell.regime) == key
    assert (decode.is_search, decode.is_forced, decode.is_ensemble) == kind
    assert (cell.task, cell.test_set, cell.data, cell.signature) == (
        "nmt_ende",
        "MED",
        "help",
        "sig",
    )
    assert (cell.roles, cell.task_label, cell.family) == ("M N", "EN-DE", "translation")
    assert decode.members == tuple(attributes["members"])  # type: ignore[arg-type]
    assert decode.sources == ["source", "other"]
    assert decode.texts == ["text", None]
    assert decode.references == ["reference", None]
    assert decode.scorable.tolist() == [True, False]


def test_parts_keep_their_order_and_test_sets(tmp_path: Path) -> None:
    for part, test_set in (("z", "MED"), ("a", "L-FR")):
        write_store(tmp_path, part, test_set=test_set, members=["m"], ensemble="m")
    decodes = read_decodes(tmp_path, ["z", "a"], TASK)
    assert [(part, decode.in_domain) for part, decode in decodes.items()] == [
        ("z", True),
        ("a", False),
    ]


@pytest.mark.parametrize("attributes", [{}, {"test_set": "PRM"}])
def test_a_store_of_an_unknown_test_set_is_rejected(
    tmp_path: Path, attributes: dict[str, str]
) -> None:
    write_store(tmp_path, "part", members=["a"], **attributes)
    with pytest.raises(DataError, match=r"must be one of MED, L-FR \(got '(PRM)?'\)\. Run"):
        read_decodes(tmp_path, ["part"], TASK)


def test_decode_without_scorable_sentence_has_a_reason(measured) -> None:
    decode: Decode = measured([1, 2], ["a", None], [None, "b"]).decode
    assert decode.scorable.tolist() == [False, False]
    assert decode.why_not_scorable == "no sentence has both a hypothesis and a reference"
    for change, reason in (
        ({"references": [None, None]}, "no reference"),
        ({"texts": [None, None]}, "no hypothesis"),
        ({"texts": [None, None], "references": [None, None]}, "no reference"),
        ({"texts": [], "references": []}, "the test set has no sentence"),
    ):
        assert replace(decode, **change).why_not_scorable == reason
