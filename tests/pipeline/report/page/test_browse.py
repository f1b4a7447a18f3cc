from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

from pipeline.data.speech.sounds import writing_sounds
from pipeline.errors import DataError
from pipeline.report.cells import CellIndex
from pipeline.report.page import PageContent
from pipeline.report.page.browse import BrowsableSet, browsable_sets, json_text
from pipeline.report.page.sentences import plain_numbers
from pipeline.report.page.sounds import embedded_sounds
from tests.pipeline.report.page.conftest import FORCED

WriteResults = Callable[..., PageContent]


def browse(content: PageContent) -> list[BrowsableSet]:
    return browsable_sets(content.tasks[0], CellIndex(content.cells), content.most_sentences)


def data_of(content: PageContent) -> dict[str, Any]:
    return dict(json.loads(browse(content)[0].json))


def store_path(content: PageContent) -> Path:
    return content.tasks[0].decode / "random_init.prex.newstest14" / "store.h5"


def test_numbers_agree_with_store_and_measures(write_results: WriteResults) -> None:
    content = write_results(n_sentence=12)
    data = data_of(content)
    with h5py.File(store_path(content)) as store:
        offset = store["/hypothesis/token_offset"][:]
        best = slice(offset[2 * 7], offset[2 * 7 + 1])  # two hypotheses per sentence
        logprob = store["/token/logprob"][best]
    own = slice(data["token_offset"][7], data["token_offset"][8])
    shown = np.array(data["member_logprob"]).reshape(-1, 3)[own]
    np.testing.assert_allclose(shown, logprob, atol=0.0051)
    folder = content.tasks[0].uncertainty / "random_init.prex.newstest14"
    tokens = pd.read_parquet(folder / "token.parquet")
    tokens = tokens[(tokens.sentence_id == 7) & (tokens.hypothesis == 0)]
    for column, name in (
        ("prex_entropy", "total"),
        ("prex_mi", "mutual_information"),
        ("prex_rmi", "reverse_information"),
    ):
        np.testing.assert_allclose(data[name][own], tokens[column], atol=0.00051)
    assert [data["subwords"][subword] for subword in data["subword"][own]][-1] == "</s>"
    sequence = pd.read_parquet(folder / "sequence.parquet")
    row = sequence[(sequence.sentence_id == 7) & (sequence.beam == 2)].iloc[0]
    assert data["measures"]["prex_rmi_s"][7] == pytest.approx(row["prex_rmi_s"], rel=1e-3)
    assert data["setting"] == {"beam": 2, "temperature": 10.0, "length_norm": True}


def test_a_sentence_without_hypothesis_or_reference_has_nulls(write_results: WriteResults) -> None:
    in_domain, permuted = (
        json.loads(browsable.json) for browsable in browse(write_results(n_sentence=9))
    )
    assert in_domain["error_percent"][8] is None
    assert in_domain["flags"][8] == ["no hypothesis"]
    assert in_domain["token_offset"][8] == in_domain["token_offset"][9]
    assert all(values[8] is None for values in in_domain["measures"].values())
    assert 0 <= in_domain["error_percent"][7] <= 100
    assert permuted["reference"] == [None] * 9 == permuted["error_percent"]


def test_the_number_of_sentences_is_limited(write_results: WriteResults) -> None:
    content = replace(write_results(n_sentence=9), most_sentences=4)
    first = browse(content)[0]
    data = json.loads(first.json)
    assert (first.n_sentence, first.n_embedded) == (9, 4)
    assert len(data["source"]) == len(data["error_percent"]) == 4
    assert len(data["hypothesis"]) == data["hypothesis_offset"][4] == 8
    assert len(data["subword"]) == data["token_offset"][4]


def test_one_decode_per_test_set_and_none_of_single_members(write_results: WriteResults) -> None:
    chosen = [
        (browsable.test_set, browsable.decoded_by)
        for browsable in browse(write_results(n_sentence=4))
    ]
    assert chosen == [("newstest14", "random-init PrEx"), ("PRM", "random-init PrEx")]


def test_tokens_are_shown_by_id_without_a_dictionary(write_results: WriteResults) -> None:
    content = write_results(n_sentence=4)
    bare = replace(content, tasks=[replace(content.tasks[0], dictionary=None)])
    assert "#2" in data_of(bare)["subwords"]


def test_measures_of_another_store_are_refused(write_results: WriteResults) -> None:
    content = write_results(n_sentence=4)
    path = content.tasks[0].uncertainty / "random_init.prex.newstest14" / "token.parquet"
    frame = pd.read_parquet(path)
    frame.assign(token_id=frame["token_id"] + 1).to_parquet(path)
    with pytest.raises(DataError, match=r"token\.parquet: does not hold the tokens of .*store\.h5"):
        browse(content)
    frame.drop(columns="prex_mi").to_parquet(path)
    with pytest.raises(
        DataError, match=r"token\.parquet: not a complete table with the columns .*prex_mi"
    ):
        browse(content)


def test_special_values_and_tags_are_safe_in_json() -> None:
    assert plain_numbers([1.5, np.nan, np.inf, -np.inf]) == [1.5, None, "Infinity", "-Infinity"]
    text = json_text({"a": "</script><!--\u2028é"})
    assert "<" not in text
    assert json.loads(text) == {"a": "</script><!--\u2028é"}


def test_the_embedded_sounds_are_those_of_the_first_rows_and_bounded(
    write_results: WriteResults,
) -> None:
    content = write_results(n_sentence=120, is_speech=True)
    first, second = browse(content)
    assert first.is_speech
    assert first.entry["is_speech"]
    data = json.loads(first.json)
    values = next(iter(data["measures"].values()))
    # In the test data, every second sentence has a sound.
    with_sound = [position for position in range(119) if position % 2]
    expected = sorted(with_sound, key=lambda position: -values[position])[:20]
    assert sorted(map(int, data["sound"])) == sorted(expected)
    assert sum(map(len, data["sound"].values())) <= 160_000
    assert "sound" not in json.loads(second.json)


def test_long_sounds_are_embedded_up_to_a_size(tmp_path: Path) -> None:
    with writing_sounds(tmp_path / "a.h5", 8000) as add:
        for n_second in (30, 30, 10, 1):
            add(np.zeros(8000 * n_second, np.float32))
    embedded = embedded_sounds(tmp_path / "a.h5", [0, 1, 2, 3], 4)
    assert list(embedded) == [0, 2, 3]  # 60 kB per 30 s
    with pytest.raises(DataError, match=r"a\.h5: must hold the sounds of the 5 sentences .*got 4"):
        embedded_sounds(tmp_path / "a.h5", [0], 5)


def test_references_that_were_scored_have_no_error(write_results: WriteResults) -> None:
    _, forced = browse(write_results(n_sentence=4, test_sets=("newstest14", FORCED)))
    assert forced.entry["teacher_forced"]
    data = json.loads(forced.json)
    assert data["error_percent"] == [None] * 4
    assert None not in data["reference"]
