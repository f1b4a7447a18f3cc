from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics import average_precision
from pipeline.metrics.token_errors import (
    MeasuredTokens,
    TokenRules,
    read_tokens,
    token_error_cells,
    token_labels,
    token_rules,
)

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁turn", "▁on", "▁the", "▁la", "mp", "▁off"]
RULES = TokenRules("nist", with_eos=False, pieces=PIECES)
WITH_EOS = replace(RULES, with_eos=True)
TEXTS = ["turn on the lamp", "turn off", "turn<unk>", None]
REFERENCES = ["turn off the lamp", "turn off the lamp", "turn it", "turn"]
# The last sentence has no hypothesis, the third one no EOS.
IDS = [[4, 5, 6, 7, 8, 2], [4, 9, 2], [4, 3], []]


@pytest.fixture
def tokens(measured):
    decode = measured([0.0] * 4, TEXTS, REFERENCES).decode
    frame = pd.DataFrame(
        {
            "sentence_id": np.repeat(np.arange(4), [len(ids) for ids in IDS]),
            "hypothesis": 0,
            "position": [place for ids in IDS for place in range(len(ids))],
            "token_id": [one for ids in IDS for one in ids],
            "prex_score": np.linspace(1, 0, 11) ** 2,
        }
    )
    return MeasuredTokens(decode, frame)


def by_column(group, rules, evaluation):
    return {cell.column: cell for cell in token_error_cells(group, rules, evaluation)}


def test_tokens_of_wrong_words_are_errors_and_eos_is_left_out(tokens):
    labels = token_labels(tokens, tokens.decode.scorable, RULES)
    assert labels.wrong.tolist() == [0, 1, 0, 0, 0, 0, 0, 1, 1]
    assert labels.row.tolist() == [0, 1, 2, 3, 4, 6, 7, 9, 10]
    assert labels.sentence.tolist() == [0] * 5 + [1, 1, 2, 2]
    assert labels.deleted.tolist() == [0, 2, 1]
    assert labels.reference_words.tolist() == [4, 4, 2]


def test_eos_is_an_error_where_the_reference_goes_on(tokens):
    labels = token_labels(tokens, tokens.decode.scorable, WITH_EOS)
    ends = {int(row): bool(wrong) for row, wrong in zip(labels.row, labels.wrong, strict=True)}
    assert (ends[5], ends[8]) == (False, True)
    assert len(labels.wrong) == 11


def test_average_precision_error_rate_and_deletions(tokens, evaluation):
    cells = by_column([tokens], RULES, evaluation)
    assert list(cells) == ["prex_score", "token_error_rate_percent", "deleted_words_percent"]
    labels = token_labels(tokens, tokens.decode.scorable, RULES)
    scores = tokens.tokens.prex_score.to_numpy()[labels.row]
    assert cells["prex_score"].value == pytest.approx(average_precision(labels.wrong, scores))
    assert cells["prex_score"].metric == "aupr"
    assert cells["prex_score"].n == 3
    assert cells["token_error_rate_percent"].value == pytest.approx(100 * 3 / 9)
    assert cells["token_error_rate_percent"].metric == "percent"
    assert cells["deleted_words_percent"].value == pytest.approx(30)
    assert "align:nist|eos:exclude" in cells["prex_score"].signature


def test_the_mean_of_several_ensembles_has_a_spread(tokens, evaluation):
    other = replace(tokens, tokens=tokens.tokens.assign(prex_score=1.0))
    cell = by_column([tokens, other], RULES, evaluation)["prex_score"]
    alone = [by_column([one], RULES, evaluation)["prex_score"].value for one in (tokens, other)]
    assert cell.value == pytest.approx(np.mean(alone))
    assert cell.spread == pytest.approx(np.std(alone, ddof=1))


def test_says_why_there_is_no_value(tokens, evaluation):
    right = replace(tokens.decode, references=[*TEXTS[:3], None])
    cells = by_column([replace(tokens, decode=right)], RULES, evaluation)
    assert cells["prex_score"].reason == "no token is an error"
    assert cells["token_error_rate_percent"].value == 0
    none = replace(tokens.decode, references=[None] * 4)
    cells = by_column([replace(tokens, decode=none)], RULES, evaluation)
    assert {cell.reason for cell in cells.values()} == {"no reference"}
    cells = by_column([tokens], None, evaluation)
    assert {cell.reason for cell in cells.values()} == {"the dictionary of tokens is missing"}


def test_refuses_tokens_that_do_not_spell_the_hypothesis(tokens):
    other = replace(tokens.decode, texts=["turn on", *TEXTS[1:]])
    with pytest.raises(DataError, match=r"tokens of sentence 0 must spell the 2 words .* got 4"):
        token_labels(replace(tokens, decode=other), tokens.decode.scorable, RULES)


def test_reads_the_dictionary_and_the_best_hypotheses(tmp_path: Path, tokens) -> None:
    dictionary = tmp_path / "dict.en.txt"
    assert token_rules(dictionary, "nist", with_eos=False) is None
    lines = "".join(f"{piece} 1\n" for piece in PIECES[4:])
    dictionary.write_text(lines, encoding="utf-8")
    assert token_rules(dictionary, "nist", with_eos=False) == RULES
    path = tmp_path / "token.parquet"
    with pytest.raises(DataError, match=r"token\.parquet must exist: run python -m"):
        read_tokens(path)
    second = tokens.tokens.assign(hypothesis=1)
    pd.concat([second, tokens.tokens[::-1]]).to_parquet(path)
    pd.testing.assert_frame_equal(read_tokens(path), tokens.tokens)
