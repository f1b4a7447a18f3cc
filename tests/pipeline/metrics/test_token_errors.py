from dataclasses import replace

import numpy as np
import pytest

from pipeline.metrics import average_precision
from pipeline.metrics.token_errors import token_error_cells
from pipeline.metrics.token_labels import UnspelledTextError, token_labels


def by_column(group, rules, evaluation):
    return {cell.column: cell for cell in token_error_cells(group, rules, evaluation)}


def test_average_precision_error_rate_and_deletions_by_hand(tokens, rules, evaluation):
    cells = by_column([tokens], rules, evaluation)
    assert list(cells) == [
        *("prex_score", "token_error_rate_percent", "deleted_words_percent"),
        *("prex_score_word_max", "prex_score_word_mean", "prex_score_before_deletion"),
        *("wrong_words_percent", "before_deletion_percent"),
    ]
    labels = token_labels(tokens, tokens.decode.scorable, rules).tokens
    scores = tokens.tokens.prex_score.to_numpy()[labels.row]
    assert cells["prex_score"].value == pytest.approx(average_precision(labels.wrong, scores))
    assert cells["prex_score"].metric == "aupr"
    assert cells["prex_score"].n == 3
    assert cells["token_error_rate_percent"].value == pytest.approx(100 * 3 / 9)
    assert cells["token_error_rate_percent"].metric == "percent"
    assert cells["deleted_words_percent"].value == pytest.approx(30)
    assert "align:nist|eos:exclude" in cells["prex_score"].signature


def test_a_word_has_the_largest_or_the_mean_score_of_its_tokens(tokens, rules, evaluation):
    score = tokens.tokens.prex_score.to_numpy()
    words = [[0], [1], [2], [3, 4], [6], [7], [9, 10]]
    wrong = [0, 1, 0, 0, 0, 0, 1]
    cells = by_column([tokens], rules, evaluation)
    for column, pooled in (("word_max", np.max), ("word_mean", np.mean)):
        cell = cells[f"prex_score_{column}"]
        expected = average_precision(wrong, [pooled(score[rows]) for rows in words])
        assert (cell.value, cell.metric) == (pytest.approx(expected), "aupr")
        assert f"|pieces:{column}|align:nist|eos:exclude" in cell.signature
    assert cells["wrong_words_percent"].value == pytest.approx(100 * 2 / 7)


def test_missing_words_are_detected_by_the_token_that_follows(tokens, rules, evaluation):
    score = tokens.tokens.prex_score.to_numpy()
    rows = [0, 1, 2, 3, 5, 6, 7, 8, 9]
    cells = by_column([tokens], rules, evaluation)
    cell = cells["prex_score_before_deletion"]
    missing = [row in (8, 9) for row in rows]
    assert cell.value == pytest.approx(average_precision(missing, score[rows]))
    assert "|align:nist|eos:include" in cell.signature
    assert cells["before_deletion_percent"].value == pytest.approx(100 * 2 / 9)


def test_the_mean_of_several_ensembles_has_a_spread(tokens, rules, evaluation):
    constant = replace(tokens, tokens=tokens.tokens.assign(prex_score=1.0))
    for column in ("prex_score", "prex_score_word_max"):
        cell = by_column([tokens, constant], rules, evaluation)[column]
        alone = [
            by_column([measured_tokens], rules, evaluation)[column].value
            for measured_tokens in (tokens, constant)
        ]
        assert cell.value == pytest.approx(np.mean(alone))
        assert cell.spread == pytest.approx(np.std(alone, ddof=1))


def test_missing_value_has_a_reason(tokens, rules, evaluation):
    right = replace(tokens.decode, references=[*tokens.decode.texts[:3], None])
    cells = by_column([replace(tokens, decode=right)], rules, evaluation)
    assert cells["prex_score"].reason == "no token is an error"
    assert cells["prex_score_word_mean"].reason == "no word is an error"
    assert cells["prex_score_before_deletion"].reason == "no word is missing before a token"
    assert cells["token_error_rate_percent"].value == 0
    assert cells["before_deletion_percent"].value == 0
    none = replace(tokens.decode, references=[None] * 4)
    cells = by_column([replace(tokens, decode=none)], rules, evaluation)
    assert {cell.reason for cell in cells.values()} == {"no reference"}
    cells = by_column([tokens], None, evaluation)
    assert {cell.reason for cell in cells.values()} == {"the dictionary of tokens is missing"}


def test_hypotheses_without_tokens_have_reasons(tokens, rules, evaluation):
    decode = replace(tokens.decode, texts=[""] * 4)
    empty = replace(tokens, decode=decode, tokens=tokens.tokens[:0])
    cells = by_column([empty], rules, evaluation)
    assert {name for name, cell in cells.items() if cell.value is not None} == {
        "deleted_words_percent"
    }
    assert cells["prex_score_word_max"].reason == "no word is an error"
    assert cells["wrong_words_percent"].reason == "no word"


def test_words_that_an_own_tokenizer_changes_give_a_reason(tokens, rules, evaluation):
    texts = ["turn on", *tokens.decode.texts[1:]]
    changed = replace(tokens, decode=replace(tokens.decode, texts=texts))
    with pytest.raises(UnspelledTextError):
        by_column([changed], rules, evaluation)
    cells = by_column([changed], replace(rules, is_own=True), evaluation).values()
    assert {cell.value for cell in cells} == {None}
    assert {cell.reason for cell in cells} == {"the tokenizer changes words when it joins tokens"}
