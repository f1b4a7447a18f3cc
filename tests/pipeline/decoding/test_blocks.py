from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf

from pipeline.data.subwords import detokenise
from pipeline.decoding.beam import beam_search
from pipeline.decoding.blocks import Decoder
from pipeline.decoding.counts import Counts, lines_of_test_sets
from pipeline.decoding.plan import Part
from pipeline.decoding.scoring import score_targets
from pipeline.decoding.test_set import PreparedSentence
from pipeline.decoding.tokenizer import SubwordTokenizer
from pipeline.errors import DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.run.settings import ROOT, DecodeConfig, DumpConfig
from pipeline.store import Flag, open_own_store
from pipeline.store.validate import store_faults
from tests.decode_to_store import decode_to_store
from tests.pipeline.decoding.conftest import TableModel


def sentence(index: int, n_word: int, reference: list[str] | None) -> PreparedSentence:
    words = [f"▁w{(index + word) % 20}" for word in range(n_word)]
    text = None if reference is None else "a reference"
    names = {"group": f"page {index // 3}", "original": f"set:{index}"}
    return PreparedSentence(index, f"source {index}", text, words, reference, **names)


TEST_SET = [
    sentence(0, 3, ["▁w1"]),
    sentence(1, 0, ["▁w1"]),
    sentence(2, 5000, ["▁w1"]),
    sentence(3, 1, None),
    sentence(4, 5, ["▁w1", "▁w2"]),
    sentence(5, 2, ["▁w1"] * 5000),
    sentence(6, 4, []),
]


def store_of(
    path: Path,
    dictionary: Any,
    model: Any,
    search: Any,
    config: Any,
    kind: str = "statistics",
    **extra: Any,
) -> Any:
    attributes = {
        "regime": "beam", "combination": "prex", "vocab_size": model.vocab_size,
        "members": [f"seed_{index}" for index in range(model.n_member)],
    }  # fmt: skip
    dump = DumpConfig(kind, kind, "float16", 5)
    tokenizer = SubwordTokenizer(dictionary, dictionary, detokenise)
    decoder = Decoder(tokenizer, model, search, config, dump)
    resume = path.with_suffix(".blocks")
    decode_to_store(decoder, TEST_SET, path, attributes | extra, "decode", resume)
    assert not resume.exists()
    assert store_faults(path) == []
    return open_own_store(path)


def two_words(source: int, prefix: tuple[int, ...]) -> Any:
    """Return the distribution of w1 (id 5) and EOS; other tokens are impossible."""
    table = np.zeros((2, 34))
    table[:, 5], table[:, 2] = [0.25, 0.5], [0.75, 0.5]
    return table


def test_case_13_every_sentence_has_a_row_and_a_flag(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    config = decode_config(beam=2)
    model = table_model(two_words)
    with store_of(tmp_path / "a.h5", dictionary, model, beam_search, config) as store:
        assert store.read("/sentence/id").tolist() == list(range(7))
        assert store.read("/sentence/source")[4] == "source 4"
        assert store.groups() == [f"page {index // 3}" for index in range(7)]
        assert store.originals() == [f"set:{index}" for index in range(7)]
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


def test_targets_that_cannot_be_scored_have_a_row_and_a_flag(
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
        # An empty reference is a sequence of EOS only.
        assert store.read("/token/id")[-1] == dictionary.eos()


def test_the_log_says_why_sentences_are_flagged(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "store.h5"
        store_of(path, dictionary, table_model(two_words), beam_search, decode_config()).close()
    assert str(Counts.of(path)).startswith("7 sentences (1 too long, 1 with an empty source) with ")
    plan = [Part(name, "help", "e", "e", ("m",), "beam", "prex", (), False) for name in "abc"]
    (line,) = lines_of_test_sets(tmp_path, plan, ["a", "b"])
    assert line.startswith("help: 2 stores, together: 14 sentences (2 too long, 2 with an empty ")
    assert lines_of_test_sets(tmp_path, plan, []) == []


def test_case_4_sentences_that_reach_the_length_limit_are_flagged(
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


def test_case_5_blocks_and_batches_do_not_change_the_bytes(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    model = table_model(two_words)
    first, second = tmp_path / "a.h5", tmp_path / "b.h5"
    store_of(first, dictionary, model, beam_search, decode_config(batch_sentences=64)).close()
    config = decode_config(batch_sentences=1, part_sentences=2)
    store_of(second, dictionary, model, beam_search, config).close()
    assert first.read_bytes() == second.read_bytes()


def test_nan_of_a_member_is_rejected_with_all_names(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    def nan_for_w5(source: int, prefix: tuple[int, ...]) -> Any:
        table = two_words(source, prefix)
        # Only the sentence with id 4 begins with the fifth word.
        table[1] = np.nan if source == dictionary.index("▁w4") else table[1]
        return table

    names = {"task": "nmt_ende", "test_set": "MED"}
    wanted = r"^nmt_ende, MED, sentence 4: member seed_1 returned a NaN log-prob\."
    for search in (beam_search, score_targets):
        config = decode_config(part_sentences=2)
        with pytest.raises(DataError, match=wanted):
            store_of(
                tmp_path / "a.h5", dictionary, table_model(nan_for_w5), search, config, **names
            )
    assert not (tmp_path / "a.h5").exists()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("logprob", [[-1.0, -1.0], [-1.0, 0.5]], "token 1, member seed_1: logprob must be a log-"),
        ("entropy_member", [[np.nan, 1.0]] * 2, "token 0, member seed_0: entropy_member must be"),
        ("entropy_expr", [1.0, -1.0], "token 1: entropy_expr must be an entropy, >= 0 and <= ln"),
        (
            "cross_prex",
            [np.nan, 1.0],
            "token 0: cross_prex must be a cross-entropy, >= 0 \\(got nan\\)",
        ),
    ],
)
def test_out_of_range_statistics_are_rejected_with_all_names(
    name: str,
    value: Any,
    words: str,
    tmp_path: Path,
    dictionary: Any,
    table_model: Any,
    decode_config: Any,
) -> None:
    def invalid_search(model: Any, batch: Any, *rest: Any) -> Any:
        hypotheses = beam_search(model, batch, *rest)
        for sentence, best in zip(batch, hypotheses, strict=True):
            if sentence.id == 4:
                statistics = replace(best[1].statistics, **{name: np.array(value)})
                best[1] = replace(best[1], statistics=statistics)
        return hypotheses

    config = decode_config(beam=2, part_sentences=2)
    names = {"task": "nmt_ende", "test_set": "MED"}
    where = f"nmt_ende, MED, sentence 4, hypothesis 1, {words}"
    with pytest.raises(DataError, match=where):
        store_of(
            tmp_path / "a.h5", dictionary, table_model(two_words), invalid_search, config, **names
        )


def killed_at_the_third_batch(path: Path, settings: dict[str, Any]) -> None:
    """Decode and kill the process at the third batch; the next test runs this in a process."""
    batches = 0

    def search(*arguments: Any) -> Any:
        nonlocal batches
        batches += 1
        if batches == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return beam_search(*arguments)

    vocabulary = import_fairseq("fairseq.data").Dictionary()
    for word in range(30):
        vocabulary.add_symbol(f"▁w{word}")
    config = OmegaConf.merge(OmegaConf.structured(DecodeConfig), settings)
    store_of(path, vocabulary, TableModel(two_words), search, config)


@pytest.mark.slow
def test_case_16_killed_decode_resumes_and_gives_the_same_bytes(
    tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    config = decode_config(part_sentences=2, batch_sentences=1)
    first, second = tmp_path / "a.h5", tmp_path / "b.h5"
    code = (
        "import sys, json, pathlib; from tests.pipeline.decoding import test_blocks; "
        "test_blocks.killed_at_the_third_batch(pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]))"
    )
    settings = json.dumps(OmegaConf.to_container(config))
    command = [sys.executable, "-c", code, str(first), settings]
    ended = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert not first.exists()
    # Two of the first four sentences cannot be decoded.
    complete = sorted(block.name for block in first.with_suffix(".blocks").glob("*.h5"))
    assert complete == ["block_000000.h5", "block_000001.h5"]

    decoded: list[int] = []

    def search(model: Any, batch: Any, *rest: Any) -> Any:
        decoded.extend(sentence.id for sentence in batch)
        return beam_search(model, batch, *rest)

    model = table_model(two_words)
    store_of(first, dictionary, model, search, config).close()
    assert decoded == [4, 5, 6]
    store_of(second, dictionary, model, search, config).close()
    assert decoded == [4, 5, 6, 0, 3, 4, 5, 6]
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("kind", ["full", "topk"])
def test_full_and_topk_dumps_are_joined_from_the_blocks(
    kind: str, tmp_path: Path, dictionary: Any, table_model: Any, decode_config: Any
) -> None:
    model, config = table_model(two_words), decode_config(part_sentences=3)
    with store_of(tmp_path / "a.h5", dictionary, model, beam_search, config, kind=kind) as store:
        assert store.dump == kind
        name = "/token/full_logprob" if kind == "full" else "/token/topk_logprob"
        best = store.read(name)[:, :, 5 if kind == "full" else 0]
        assert np.isclose(best, np.log([[0.25, 0.5]]), atol=1e-2).any()
