from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.data.subwords import detokenise
from pipeline.decoding.beam import beam_search
from pipeline.decoding.blocks import Decoder
from pipeline.decoding.ensemble import MembersOneAtATime, as_ensemble
from pipeline.decoding.scoring import (
    Given,
    drafts_of,
    score_in_chunks,
    score_targets,
    scored_by_all,
    searched_by,
)
from pipeline.decoding.self_check import self_check
from pipeline.decoding.test_set import PreparedSentence, Sentence
from pipeline.errors import DataError, PipelineError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import DumpConfig
from pipeline.store import TokenStatistics, open_store
from pipeline.uncertainty.offline import write_measures
from pipeline.uncertainty.sequence import Grid
from tests.whole_decode import decode_to_store


@pytest.fixture(scope="module")
def members(random_models: Any) -> list[FairseqMember]:
    return [FairseqMember(one) for one in random_models(3)]


class Loader:
    """Loads one member; `loaded` counts how often that was done."""

    def __init__(self, member: FairseqMember) -> None:
        self.member, self.loaded = member, 0

    def __call__(self) -> FairseqMember:
        self.loaded += 1
        return self.member


def one_at_a_time(members: list[FairseqMember]) -> MembersOneAtATime:
    return MembersOneAtATime([partial(lambda one: one, member) for member in members])


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_what_some_members_find_all_of_them_score(
    combination: str, members: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    searching, config = as_ensemble(members[:2]), decode_config()
    search = scored_by_all(searched_by(beam_search, searching))
    found = search(one_at_a_time(members), sentences, combination, config)
    expected = beam_search(searching, sentences, combination, config)
    for ours, theirs, sentence in zip(found, expected, sentences, strict=True):
        assert {tuple(one.token_id) for one in ours} == {tuple(one.token_id) for one in theirs}
        scores = [one.score for one in ours]
        assert scores == sorted(scores, reverse=True)
        assert ours[0].statistics.logprob.shape[1] == 3
        target = Sentence(sentence.id, sentence.source, ours[0].token_id.tolist())
        (again,) = score_targets(as_ensemble(members), [target], combination, config)[0]
        assert again.score == pytest.approx(ours[0].score, abs=1e-5)


def test_chunks_bound_memory_and_change_nothing(
    monkeypatch: pytest.MonkeyPatch, members: Any, decode_config: Any, sentences: list[Sentence]
) -> None:
    loaders = [Loader(one) for one in members]
    model = MembersOneAtATime(loaders)
    expected = score_targets(as_ensemble(members), sentences, "prex", decode_config())
    monkeypatch.setattr("pipeline.decoding.model._CHUNK_VALUES", 8 * 3 * model.vocab_size)
    found = score_in_chunks(model, sentences, "prex", decode_config())
    assert 3 < loaders[0].loaded <= len(sentences) + 1
    for (one,), (other,) in zip(found, expected, strict=True):
        for field in fields(TokenStatistics):
            first, second = (getattr(each.statistics, field.name) for each in (one, other))
            np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.fixture
def decoder(dictionary: Any, members: Any, decode_config: Any) -> Callable[..., Decoder]:
    def make(**settings: Any) -> Decoder:
        dump = DumpConfig("statistics", "statistics", "float32", 1)
        config = decode_config(**settings)
        return Decoder(
            dictionary, dictionary, as_ensemble(members), beam_search, config, dump, detokenise
        )

    return make


def test_hypotheses_come_from_another_store(
    tmp_path: Path, decoder: Any, dictionary: Any, members: Any, sentences: list[Sentence]
) -> None:
    pieces = [[dictionary.symbols[word] for word in one.source[:-1]] for one in sentences]
    test_set = [
        PreparedSentence(place, f"text {place}", None, one, None)
        for place, one in enumerate(pieces)
    ]
    made = decoder()
    attributes = {
        "regime": "beam", "combination": "prex", "n_member": 3, "vocab_size": len(dictionary),
    }  # fmt: skip
    path = tmp_path / "a.h5"
    decode_to_store(made, test_set, path, attributes, "decode", tmp_path / "blocks")
    search = scored_by_all(drafts_of(Given(path, test_set, None), dictionary, len(dictionary)))
    found = search(one_at_a_time(members), sentences, "prex", made.decode)
    expected = beam_search(made.model, sentences, "prex", made.decode)  # type: ignore[arg-type]
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.token_id.tolist() for one in ours] == [one.token_id.tolist() for one in theirs]
        np.testing.assert_allclose(
            [one.score for one in ours], [one.score for one in theirs], atol=1e-4
        )
    with pytest.raises(DataError, match=r"a\.h5 must be a decode of the same 6 sentences"):
        drafts_of(Given(path, test_set[:-1], None), dictionary, len(dictionary))


@pytest.mark.parametrize("combination", ["prex", "expr"])
def test_case_7_rescored_hypotheses_have_every_measure_of_the_decode(
    combination: str, tmp_path: Path, decoder: Any, dictionary: Any, sentences: list[Sentence]
) -> None:
    """The n-best, EOS included, as given hypotheses; and the 1-best as references."""
    pieces = [[dictionary.symbols[word] for word in one.source[:-1]] for one in sentences]
    test_set = [PreparedSentence(place, "", None, one, None) for place, one in enumerate(pieces)]
    made = decoder()

    def written(name: str, search: Any, regime: str = "beam") -> Path:
        path = tmp_path / f"{name}.h5"
        attributes = {
            "regime": regime, "combination": combination, "n_member": 3,
            "vocab_size": len(dictionary), "length_penalty": 1.0,
        }  # fmt: skip
        own = replace(made, search=search)
        decode_to_store(own, test_set, path, attributes, name, tmp_path / f"{name}.blocks")
        return path

    decoded = written("decoded", beam_search)
    drafts = drafts_of(Given(decoded, test_set, None), dictionary, len(dictionary))
    assert_same_measures(decoded, written("rescored", scored_by_all(drafts)), beam=5)

    with open_store(decoded) as store:
        tokens = store.read("/token/id")
        spans = [
            (store.token_offset[first], store.token_offset[first + 1])
            for first in store.hypothesis_offset[:-1]
        ]
        best = [[dictionary.symbols[one] for one in tokens[a : b - 1]] for a, b in spans]
    test_set = [
        replace(one, reference="", reference_pieces=words)
        for one, words in zip(test_set, best, strict=True)
    ]
    assert_same_measures(decoded, written("forced", score_targets, "teacher_forcing"), beam=1)


def assert_same_measures(one: Path, other: Path, beam: int) -> None:
    """Token-level ones of the first `beam` hypotheses and sequence-level ones at B = beam."""
    tables = []
    for path in (one, other):
        folder = path.with_suffix(".measures")
        folder.mkdir(exist_ok=True)
        with open_store(path) as store:
            grid = Grid([beam], [10.0], [True, False])
            assert write_measures(store, folder, grid)["ok"]
        tokens = pd.read_parquet(folder / "token.parquet").query(f"hypothesis < {beam}")
        tables.append((tokens, pd.read_parquet(folder / "sequence.parquet").drop(columns="flag")))
    for first, second in zip(*tables, strict=True):
        assert len(first)
        pd.testing.assert_frame_equal(
            # 1e-4 nats; of a variance, some hundred nats squared, what float32 can tell.
            first.reset_index(drop=True),
            second.reset_index(drop=True),
            rtol=1e-6,
            atol=1e-4,
        )


def test_the_self_check_passes_and_says_how_well(decoder: Any, sentences: list[Sentence]) -> None:
    assert 0 <= self_check(decoder(), sentences, "expr") < 1e-4


def test_the_self_check_finds_a_score_that_is_wrong(
    decoder: Any, sentences: list[Sentence]
) -> None:
    def wrong(model: Any, batch: Any, combination: str, decode: Any) -> Any:
        return beam_search(model, batch, "prex" if combination == "expr" else "expr", decode)

    made = decoder()
    broken = Decoder(*(getattr(made, one.name) for one in fields(made)))
    object.__setattr__(broken, "search", wrong)
    with pytest.raises(PipelineError, match=r"sentence \d must be the same re-scored to 0\.0001"):
        self_check(broken, sentences, "expr")
