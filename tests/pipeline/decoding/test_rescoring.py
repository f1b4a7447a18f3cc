from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.data.subwords import SentencePieceModel, detokenise
from pipeline.data.task_subwords import learn_subwords
from pipeline.decoding.beam import beam_search
from pipeline.decoding.blocks import Decoder
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.rescoring import (
    HypothesisFile,
    UnscoredHypothesis,
    hypotheses_of_file,
    hypotheses_of_search,
    rescoring_search,
    self_check,
)
from pipeline.decoding.scoring import score_in_chunks, score_targets
from pipeline.decoding.test_set import PreparedSentence, Sentence, token_ids
from pipeline.decoding.tokenizer import SubwordTokenizer
from pipeline.errors import DataError, PipelineError, StoreError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import DumpConfig
from pipeline.store import StoreWriter, TokenStatistics, open_own_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from tests.decode_to_store import decode_to_store


@pytest.fixture(scope="module")
def members(random_models: Any) -> list[FairseqMember]:
    return [FairseqMember(model) for model in random_models(3)]


class Loader:
    """Load one member and count the calls."""

    def __init__(self, member: FairseqMember) -> None:
        self.member, self.loaded = member, 0

    def __call__(self) -> FairseqMember:
        self.loaded += 1
        return self.member


def one_at_a_time(members: list[FairseqMember]) -> MembersOneAtATime:
    return MembersOneAtATime([partial(lambda loaded: loaded, member) for member in members])


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_all_members_score_the_hypotheses_of_some_members(
    combination: str, members: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    searching, config = as_ensemble(members[:2]), decode_config()
    search = rescoring_search(hypotheses_of_search(beam_search, searching))
    hypotheses = search(one_at_a_time(members), sentences, combination, config)
    expected = beam_search(searching, sentences, combination, config)
    for ours, theirs, sentence in zip(hypotheses, expected, sentences, strict=True):
        assert {tuple(hypothesis.token_id) for hypothesis in ours} == {
            tuple(hypothesis.token_id) for hypothesis in theirs
        }
        scores = [hypothesis.score for hypothesis in ours]
        assert scores == sorted(scores, reverse=True)
        assert ours[0].statistics.logprob.shape[1] == 3
        target = Sentence(sentence.id, sentence.source, ours[0].token_id.tolist())
        (again,) = score_targets(as_ensemble(members), [target], combination, config)[0]
        assert again.score == pytest.approx(ours[0].score, abs=1e-5)


def test_chunks_limit_the_memory_and_do_not_change_the_scores(
    monkeypatch: pytest.MonkeyPatch, members: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    loaders = [Loader(member) for member in members]
    model = MembersOneAtATime(loaders)
    expected = score_targets(as_ensemble(members), sentences, "prex", decode_config())
    monkeypatch.setattr("pipeline.decoding.scoring._MAX_VALUES", 8 * 3 * model.vocab_size)
    hypotheses = score_in_chunks(model, sentences, "prex", decode_config())
    assert 3 < loaders[0].loaded <= len(sentences) + 1
    for (hypothesis,), (unlimited,) in zip(hypotheses, expected, strict=True):
        for field in fields(TokenStatistics):
            first, second = (
                getattr(each.statistics, field.name) for each in (hypothesis, unlimited)
            )
            np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.fixture
def decoder(dictionary: Any, members: Any, decode_config: Any) -> Callable[..., Decoder]:
    def make(**settings: Any) -> Decoder:
        dump = DumpConfig("statistics", "statistics", "float32", 1)
        config = decode_config(**settings)
        tokenizer = SubwordTokenizer(dictionary, dictionary, detokenise)
        return Decoder(tokenizer, as_ensemble(members), beam_search, config, dump)

    return make


def test_hypotheses_of_another_store_are_rescored(
    tmp_path: Path, decoder: Any, dictionary: Any, members: Any, sentences: list[Sentence]
) -> None:
    subwords_of = [
        [dictionary.symbols[word] for word in sentence.source[:-1]] for sentence in sentences
    ]
    test_set = [
        PreparedSentence(index, f"text {index}", None, subwords, None)
        for index, subwords in enumerate(subwords_of)
    ]
    own_decoder = decoder()
    attributes = {
        "regime": "beam", "combination": "prex", "n_member": 3, "vocab_size": len(dictionary),
    }  # fmt: skip
    path = tmp_path / "a.h5"
    decode_to_store(own_decoder, test_set, path, attributes, "decode", tmp_path / "blocks")
    search = rescoring_search(
        hypotheses_of_file(
            HypothesisFile(path, test_set, False), own_decoder.tokenizer, len(dictionary)
        )
    )
    hypotheses = search(one_at_a_time(members), sentences, "prex", own_decoder.decode)
    expected = beam_search(own_decoder.model, sentences, "prex", own_decoder.decode)  # type: ignore[arg-type]
    for ours, theirs in zip(hypotheses, expected, strict=True):
        assert [hypothesis.token_id.tolist() for hypothesis in ours] == [
            hypothesis.token_id.tolist() for hypothesis in theirs
        ]
        np.testing.assert_allclose(
            [hypothesis.score for hypothesis in ours],
            [hypothesis.score for hypothesis in theirs],
            atol=1e-4,
        )
    with pytest.raises(DataError, match=r"a\.h5: not a decode of the same 6 sentences"):
        hypotheses_of_file(HypothesisFile(path, test_set[:-1], False), None, len(dictionary))


def test_repeated_samples_of_a_store_are_scored_once(
    tmp_path: Path,
    decoder: Any,
    dictionary: Any,
    members: Any,
    sentences: list[Sentence],
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = decoder().decode
    found = beam_search(as_ensemble(members), sentences, "prex", config)
    size, path = {"n_member": 3, "vocab_size": len(dictionary)}, tmp_path / "samples.h5"
    with StoreWriter(path, regime="sample", combination="prex", **size) as store:
        for index, best in enumerate(found):
            store.add_sentence(index, f"text {index}", None, [best[1], best[0], best[1]])
    test_set = [PreparedSentence(i, f"text {i}", None, [], None) for i in range(len(sentences))]
    file = HypothesisFile(path, test_set, None)
    search = rescoring_search(hypotheses_of_file(file, dictionary, len(dictionary)))
    hypotheses = search(one_at_a_time(members), sentences, "prex", config)
    for ours, theirs in zip(hypotheses, found, strict=True):
        assert [hypothesis.token_id.tolist() for hypothesis in ours] == [
            hypothesis.token_id.tolist() for hypothesis in theirs[:2]
        ]
    n = len(sentences)
    (warning,) = caplog.messages
    assert f"{path}: {n} of {3 * n} hypotheses repeat another one of their sentence" in warning


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_7_rescored_hypotheses_have_the_measures_of_the_decode(
    combination: str, tmp_path: Path, decoder: Any, dictionary: Any, sentences: list[Sentence]
) -> None:
    """Re-score the n-best list, including EOS, and the 1-best hypotheses as references."""
    subwords_of = [
        [dictionary.symbols[word] for word in sentence.source[:-1]] for sentence in sentences
    ]
    test_set = [
        PreparedSentence(index, "", None, subwords, None)
        for index, subwords in enumerate(subwords_of)
    ]
    own_decoder = decoder()

    def written(name: str, search: Any, regime: str = "beam") -> Path:
        path = tmp_path / f"{name}.h5"
        attributes = {
            "regime": regime, "combination": combination, "n_member": 3,
            "vocab_size": len(dictionary), "length_penalty": 1.0,
        }  # fmt: skip
        own = replace(own_decoder, search=search)
        decode_to_store(own, test_set, path, attributes, name, tmp_path / f"{name}.blocks")
        return path

    decoded = written("decoded", beam_search)
    unscored = hypotheses_of_file(HypothesisFile(decoded, test_set, False), None, len(dictionary))
    assert_same_measures(decoded, written("rescored", rescoring_search(unscored)), beam=5)

    with open_own_store(decoded) as store:
        tokens = store.read("/token/id")
        spans = [
            (store.token_offset[first], store.token_offset[first + 1])
            for first in store.hypothesis_offset[:-1]
        ]
        best = [[dictionary.symbols[token] for token in tokens[a : b - 1]] for a, b in spans]
    test_set = [
        replace(hypothesis, reference="", reference_subwords=words)
        for hypothesis, words in zip(test_set, best, strict=True)
    ]
    forced = written("forced", score_targets, "teacher_forcing")
    # It compares all hypotheses of the search, of which the forced one is the best.
    assert_same_measures(decoded, forced, beam=1, left_out=["hypothesis_chrf"])


def assert_same_measures(
    first_store: Path, second_store: Path, beam: int, left_out: Sequence[str] = ()
) -> None:
    """Compare token measures of `beam` hypotheses, and sequence measures with B = beam."""
    tables = []
    for path in (first_store, second_store):
        folder = path.with_suffix(".measures")
        folder.mkdir(exist_ok=True)
        with open_own_store(path) as store:
            grid = Grid([beam], [10.0], [True, False])
            assert write_measures(store, folder, grid)["ok"]
        tokens = pd.read_parquet(folder / "token.parquet").query(f"hypothesis < {beam}")
        sequences = pd.read_parquet(folder / "sequence.parquet")
        tables.append((tokens, sequences.drop(columns=["flag", *left_out])))
    for first, second in zip(*tables, strict=True):
        assert len(first)
        pd.testing.assert_frame_equal(
            # 1e-4 nats. Variances of some hundred nats squared are less precise in float32.
            first.reset_index(drop=True),
            second.reset_index(drop=True),
            rtol=1e-6,
            atol=1e-4,
        )


def test_self_check_returns_the_largest_difference(decoder: Any, sentences: list[Sentence]) -> None:
    assert 0 <= self_check(decoder(), sentences, "expr") < 1e-4


def test_self_check_rejects_a_wrong_score(decoder: Any, sentences: list[Sentence]) -> None:
    def wrong(model: Any, batch: Any, combination: str, decode: Any) -> Any:
        return beam_search(model, batch, "prex" if combination == "expr" else "expr", decode)

    own_decoder = decoder()
    broken = Decoder(*(getattr(own_decoder, field.name) for field in fields(own_decoder)))
    object.__setattr__(broken, "search", wrong)
    with pytest.raises(PipelineError, match=r"sentence \d differs when rescored \("):
        self_check(broken, sentences, "expr")


LINES = ["a cab", " ", "bad bead", "", "x a"]
TEST_SET = [PreparedSentence(index, "source", None, [], None) for index in range(len(LINES))]


@pytest.fixture(scope="module")
def subword_model() -> SentencePieceModel:
    return learn_subwords(["a cab", "bad bead", "dab a bed"] * 3, 16)


class SubwordDictionary:
    """Dictionary of the subwords of a model."""

    def __init__(self, subword_model: SentencePieceModel) -> None:
        self.symbols = ["<s>", "<pad>", "</s>", "<unk>", *subword_model.vocabulary()]

    def index(self, sym: str) -> int:
        return self.symbols.index(sym) if sym in self.symbols else 3

    def eos(self) -> int:
        return 2


def unscored(
    path: Path, subword_model: SentencePieceModel | None, places: list[int], decode: Any
) -> Any:
    tokenizer: Any = None
    if subword_model is not None:
        dictionary: Any = SubwordDictionary(subword_model)
        tokenizer = SubwordTokenizer(dictionary, dictionary, detokenise, subword_model.subwords)
    file = HypothesisFile(path, TEST_SET, is_text=subword_model is not None)
    find = hypotheses_of_file(file, tokenizer, 34)
    return find([Sentence(index, [4, 2], None) for index in places], "prex", decode)


@pytest.mark.parametrize("name", ["texts", "texts.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_line_is_a_hypothesis_unless_it_is_blank(
    name: str, end: str, tmp_path: Path, subword_model: SentencePieceModel, decode_config: Any
) -> None:
    path = tmp_path / name
    content = end.join([*LINES, ""]).encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    hypotheses = unscored(path, subword_model, [4, 0, 1, 3, 2], decode_config())
    dictionary = SubwordDictionary(subword_model)
    subwords_of = {index: subword_model.subwords(LINES[index]) for index in (0, 2, 4)}
    expected = {
        index: [UnscoredHypothesis(token_ids(subwords, dictionary), True)]
        for index, subwords in subwords_of.items()
    }
    assert hypotheses == [expected[4], expected[0], [], [], expected[2]]
    assert 3 in expected[4][0].token_id  # no subword contains "x"
    assert (
        "".join(dictionary.symbols[sequence] for sequence in expected[2][0].token_id[:-1])
        == "▁bad▁bead"
    )


@pytest.mark.parametrize("lines", [LINES[:-1], [*LINES, "more"], []])
def test_number_of_lines_must_equal_that_of_sentences(
    lines: list[str], tmp_path: Path, subword_model: SentencePieceModel, decode_config: Any
) -> None:
    path = tmp_path / "texts"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(
        DataError,
        match=rf"texts: must have one line for each of the 5 sentences \(got {len(lines)} lines\)",
    ):
        unscored(path, subword_model, [0], decode_config())


def test_traces_of_preprocessing_in_the_hypotheses_are_a_warning(
    tmp_path: Path,
    subword_model: SentencePieceModel,
    decode_config: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "texts"
    path.write_text("a b@@ e .\na &quot; b\na\na\na\n", encoding="utf-8")
    unscored(path, subword_model, [0], decode_config())
    found = [message.removeprefix(f"{path}: 1 of 5 texts have ") for message in caplog.messages]
    assert [words.split()[0] for words in found] == ["subword", "a", "escapes"]


def test_text_that_is_not_utf8_is_rejected_with_its_line(
    tmp_path: Path, subword_model: SentencePieceModel, decode_config: Any
) -> None:
    path = tmp_path / "texts"
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError, match=r"texts, line 2: not UTF-8 \(byte 0xff\)"):
        unscored(path, subword_model, [0], decode_config())


def test_a_damaged_store_is_rejected(tmp_path: Path, decode_config: Any) -> None:
    path = tmp_path / "store.h5"
    path.touch()
    with pytest.raises(StoreError, match=r"store\.h5: not a complete HDF5 file"):
        unscored(path, None, [0], decode_config())
