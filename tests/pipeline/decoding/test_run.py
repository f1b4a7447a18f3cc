from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.config import DumpConfig
from pipeline.decoding import run
from pipeline.decoding.beam import beam_search
from pipeline.decoding.teacher_forcing import score_targets
from pipeline.decoding.test_set import PreparedSentence
from pipeline.store import Flag, open_store, validate


def sentence(place: int, n_word: int, reference: list[str] | None) -> PreparedSentence:
    words = [f"▁w{(place + word) % 20}" for word in range(n_word)]
    text = None if reference is None else "a reference"
    return PreparedSentence(place, f"source {place}", text, words, reference)


TEST_SET = [
    sentence(0, 3, ["▁w1"]),
    sentence(1, 0, ["▁w1"]),
    sentence(2, 500, ["▁w1"]),
    sentence(3, 1, None),
    sentence(4, 5, ["▁w1", "▁w2"]),
    sentence(5, 2, ["▁w1"] * 500),
    sentence(6, 4, []),
]


def store_of(
    path: Path, dictionary: Any, model: Any, search: Any, config: Any, **given: Any
) -> Any:
    attributes = {
        "regime": "beam", "combination": "prex", "vocab_size": model.vocab_size,
        "members": [f"seed_{one}" for one in range(model.n_member)],
    }  # fmt: skip
    dump = DumpConfig("statistics", "statistics", "float32", 50)
    decoder = run.Decoder(dictionary, dictionary, model, search, config, dump)
    run.decode_to_store(decoder, TEST_SET, path, attributes | given, "decode")
    assert validate(path) == []
    return open_store(path)


def two_words(source: int, prefix: tuple[int, ...]) -> Any:
    """w1 (id 5) or EOS, never anything else."""
    table = np.zeros((2, 34))
    table[:, 5], table[:, 2] = [0.25, 0.5], [0.75, 0.5]
    return table


def test_every_sentence_has_its_row_and_its_flag(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    config = decode_config(beam=2)
    model = table_model(two_words)
    with store_of(tmp_path / "a.h5", dictionary, model, beam_search, config) as store:
        assert store.read("/sentence/id").tolist() == list(range(7))
        assert store.read("/sentence/source")[4] == "source 4"
        assert store.flag.tolist() == [
            0,
            Flag.EMPTY_SOURCE | Flag.NO_HYPOTHESIS,
            Flag.TOO_LONG | Flag.NO_HYPOTHESIS,
            Flag.NO_REFERENCE,
            0,
            0,
            0,
        ]
        assert np.diff(store.hypothesis_offset).tolist() == [2, 0, 0, 2, 2, 2, 2]
        assert list(store.read("/hypothesis/text")[:2]) == ["w1", "w1 w1"]


def test_targets_that_cannot_be_scored_have_their_row_and_their_flag(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    model = table_model(two_words)
    path = tmp_path / "a.h5"
    with store_of(
        path, dictionary, model, score_targets, decode_config(), regime="teacher_forcing"
    ) as store:
        assert store.flag[3] == Flag.NO_REFERENCE | Flag.NO_HYPOTHESIS
        assert store.flag[5] == Flag.TOO_LONG | Flag.NO_HYPOTHESIS
        assert store.flag[[0, 4, 6]].tolist() == [0, 0, 0]
        # An empty reference is the sequence that ends at once.
        assert store.read("/token/id")[-1] == dictionary.eos()


def test_sentences_that_reach_the_length_limit_are_flagged(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    def never_ends(eos: float) -> Any:
        table = np.full((2, 34), (1 - eos) / 33)
        table[:, 2] = eos
        return table_model(lambda source, prefix: table)

    config = decode_config(beam=2, max_length_offset=3)
    for eos, finished in ((1e-9, 1), (0.0, 0)):
        path = tmp_path / f"{eos}.h5"
        with store_of(path, dictionary, never_ends(eos), beam_search, config) as store:
            assert store.flag[0] == Flag.NO_FINISHED_HYPOTHESIS
            assert set(store.read("/hypothesis/finished").tolist()) == {finished}


def test_windows_and_batches_change_neither_order_nor_results(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dictionary: Any,
    table_model: Any,
    decode_config: Any,
) -> None:
    model = table_model(two_words)
    path, other = tmp_path / "a.h5", tmp_path / "b.h5"
    store_of(path, dictionary, model, beam_search, decode_config(batch_sentences=64)).close()
    monkeypatch.setattr(run, "_WINDOW_SENTENCES", 2)
    store_of(other, dictionary, model, beam_search, decode_config(batch_sentences=1)).close()
    assert path.read_bytes() == other.read_bytes()
