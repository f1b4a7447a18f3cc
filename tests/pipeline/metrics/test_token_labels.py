from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from pipeline.errors import DataError
from pipeline.metrics.token_labels import (
    SPECIAL_TOKENS,
    MeasuredTokens,
    read_tokens,
    token_labels,
    token_rules,
)
from pipeline.run.files import write_json


@pytest.fixture
def with_eos(rules):
    return replace(rules, with_eos=True)


def test_tokens_of_wrong_words_are_errors_and_eos_is_left_out(tokens, rules):
    labels = token_labels(tokens, tokens.decode.scorable, rules)
    assert labels.tokens.wrong.tolist() == [0, 1, 0, 0, 0, 0, 0, 1, 1]
    assert labels.tokens.row.tolist() == [0, 1, 2, 3, 4, 6, 7, 9, 10]
    assert labels.tokens.sentence.tolist() == [0] * 5 + [1, 1, 2, 2]
    assert labels.word.tolist() == [0, 1, 2, 3, 3, 4, 5, 6, 6]
    assert labels.deleted.tolist() == [0, 2, 1]
    assert labels.reference_words.tolist() == [4, 4, 2]


def test_eos_is_an_error_where_the_reference_continues(tokens, with_eos):
    labels = token_labels(tokens, tokens.decode.scorable, with_eos)
    ends = dict(zip(labels.tokens.row.tolist(), labels.tokens.wrong.tolist(), strict=True))
    assert (ends[5], ends[8]) == (False, True)
    assert len(ends) == 11
    assert labels.word.tolist() == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 8]


def test_deletion_sites_are_first_tokens_of_words_and_eos(tokens, rules, with_eos):
    references = ["turn please on the lamp", "turn off the lamp", "please turn<unk> it", "turn"]
    decode = replace(tokens.decode, references=references)
    for labelling in (rules, with_eos):
        sites = token_labels(
            replace(tokens, decode=decode), decode.scorable, labelling
        ).deletion_sites
        marks = dict(zip(sites.row.tolist(), sites.wrong.tolist(), strict=True))
        # Rows 4 and 10 continue a word; 5 and 8 are EOS; the last hypothesis has no EOS.
        assert list(marks) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
        assert [row for row, missing in marks.items() if missing] == [1, 8, 9]


def test_tokens_of_white_space_are_left_out(tokens, rules):
    space = replace(rules, subwords=[*rules.subwords, "▁"])
    frame = tokens.tokens.assign(token_id=tokens.tokens.token_id.replace(9, 10).replace(4, 10))
    decode = replace(tokens.decode, texts=["on the lamp", "", "<unk>", None])
    measured = replace(tokens, decode=decode, tokens=frame)
    labels = token_labels(measured, decode.scorable, space)
    assert labels.tokens.row.tolist() == [0, 1, 2, 3, 4, 9, 10]
    assert labels.deletion_sites.row.tolist() == [0, 2, 3, 5, 8, 9]
    ends = token_labels(measured, decode.scorable, replace(space, with_eos=True)).tokens
    assert ends.row.tolist() == [0, 1, 2, 3, 4, 5, 8, 9, 10]
    assert ends.wrong[ends.row == 8].tolist() == [True]


def test_words_of_transcripts_are_labelled_through_the_words_of_the_text(tokens, rules):
    """The first text has a dash by itself, which is no word, and one word that is two."""
    pieces = [*rules.subwords, "▁Turn", "▁—", "▁half", "-", "time", "."]
    frame = pd.DataFrame({"sentence_id": 0, "token_id": [10, 11, 12, 13, 14, 15, 2]})
    decode = replace(tokens.decode, texts=["Turn — half-time."], references=["turn at half times"])
    labelling = replace(rules, subwords=pieces, with_eos=True, transcripts="words")
    labels = token_labels(MeasuredTokens(decode, frame), decode.scorable, labelling)
    assert labels.tokens.row.tolist() == [0, 2, 3, 4, 5, 6]
    assert labels.tokens.wrong.tolist() == [False, True, True, True, True, False]
    assert labels.deletion_sites.row.tolist() == [0, 2, 6]
    assert labels.deletion_sites.wrong.tolist() == [False, True, False]
    assert (labels.deleted, labels.reference_words) == ([1], [4])
    plain = replace(labelling, transcripts="as_decoded")
    decoded = token_labels(MeasuredTokens(decode, frame), decode.scorable, plain)
    assert decoded.tokens.wrong.tolist() == [True] * 6 + [False]


def test_words_change_no_label_of_prepared_references(tokens, with_eos):
    texts = ["turn on the lamp", "turn off", "turn", None]
    decode = replace(tokens.decode, texts=texts)
    frame = tokens.tokens[tokens.tokens.token_id != SPECIAL_TOKENS.index("<unk>")]
    measured = MeasuredTokens(decode, frame.reset_index(drop=True))
    as_decoded, words = (
        token_labels(measured, decode.scorable, replace(with_eos, transcripts=transcripts))
        for transcripts in ("as_decoded", "words")
    )
    assert as_decoded.tokens.wrong.tolist() == words.tokens.wrong.tolist()
    assert as_decoded.deletion_sites.wrong.tolist() == words.deletion_sites.wrong.tolist()
    assert as_decoded.word.tolist() == words.word.tolist()


def test_tokens_that_do_not_spell_the_hypothesis_are_rejected(tokens, rules):
    decode = replace(tokens.decode, texts=["turn on", *tokens.decode.texts[1:]])
    with pytest.raises(DataError, match=r"tokens of sentence 0 spell 4 words and its text has 2"):
        token_labels(replace(tokens, decode=decode), decode.scorable, rules)


def test_dictionary_and_best_hypotheses_are_read(tmp_path: Path, tokens, rules) -> None:
    dictionary = tmp_path / "dict.en.txt"
    assert token_rules(dictionary, "nist", with_eos=False)(tokens.decode) is None
    lines = "".join(f"{subword} 1\n" for subword in rules.subwords[4:])
    dictionary.write_text(lines, encoding="utf-8")
    assert token_rules(dictionary, "nist", with_eos=False)(tokens.decode) == rules
    path = tmp_path / "token.parquet"
    with pytest.raises(DataError, match=r"token\.parquet: no such file\. Run python -m"):
        read_tokens(path)
    second = tokens.tokens.assign(hypothesis=1)
    pd.concat([second, tokens.tokens[::-1]]).to_parquet(path)
    pd.testing.assert_frame_equal(read_tokens(path), tokens.tokens)


def test_an_ensemble_with_its_own_tokenizer_has_its_own_pieces_and_eos(
    tmp_path: Path, tokens, rules
) -> None:
    # The same tokens with other ids: control tokens are at the end, and EOS is the last one.
    first, n_token = len(SPECIAL_TOKENS), len(rules.subwords)
    pieces = [*rules.subwords[first:], *SPECIAL_TOKENS[:2], "<unk>", "</s>"]
    content = {"pieces": pieces, "eos": n_token - 1, "control": []}
    write_json(tmp_path / "vocabulary.json", {"mine": content})
    moved = {2: n_token - 1, 3: n_token - 2}
    frame = tokens.tokens.assign(
        token_id=[moved.get(token, token - first) for token in tokens.tokens.token_id]
    )
    decode = replace(
        tokens.decode,
        path=tmp_path / "part" / "store.h5",
        cell=replace(tokens.decode.cell, ensemble="mine"),
    )
    own = token_rules(tmp_path / "no such file", "nist", with_eos=False)(decode)
    labels = token_labels(MeasuredTokens(decode, frame), decode.scorable, own)
    expected = token_labels(tokens, tokens.decode.scorable, rules)
    for name in ("tokens", "deletion_sites"):
        ours, theirs = getattr(labels, name), getattr(expected, name)
        assert ours.row.tolist() == theirs.row.tolist()
        assert ours.wrong.tolist() == theirs.wrong.tolist()


def test_control_tokens_spell_nothing(tmp_path: Path, tokens) -> None:
    content = {"pieces": ["</s>", "<pad>", "▁a"], "eos": 0, "control": [0, 1]}
    write_json(tmp_path / "vocabulary.json", {"random_init": content})
    decode = replace(tokens.decode, path=tmp_path / "part" / "store.h5")
    assert token_rules(tmp_path, "nist", with_eos=True)(decode).subwords == ["", "", "▁a"]
