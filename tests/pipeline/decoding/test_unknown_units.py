from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipeline.decoding.test_set import PreparedSentence, unknown_units


def test_units_that_a_vocabulary_lacks_are_counted_a_side() -> None:
    source: Any = SimpleNamespace(symbols=["a", "b"])
    target: Any = SimpleNamespace(symbols=["c"])
    sentences = [
        PreparedSentence(0, "", None, ["a", "c", "c"], None),
        PreparedSentence(1, "", "", ["b"], ["c", "a"]),
    ]
    found = unknown_units(sentences, source, target)
    assert found == "2 of 4 source units and 1 of 2 reference units"
