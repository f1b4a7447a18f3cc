from __future__ import annotations

from pipeline.decoding.test_set import Sentence, batches, padded


def test_batches_hold_sentences_of_like_length_and_every_sentence_once() -> None:
    sentences = [Sentence(one, [5] * (1 + one * 7 % 10), None) for one in range(10)]
    plan = list(batches(sentences, 4))
    assert [len(batch) for batch in plan] == [4, 4, 2]
    lengths = [len(one.source) for batch in plan for one in batch]
    assert lengths == sorted(lengths, reverse=True)
    assert sorted(one.id for batch in plan for one in batch) == list(range(10))


def test_long_sentences_come_in_smaller_batches() -> None:
    sentences = [Sentence(one, [5] * 128, None) for one in range(4)]
    assert [len(batch) for batch in batches(sentences, 4)] == [2, 2]
    assert [len(batch) for batch in batches(sentences[:2], 1)] == [1, 1]


def test_padding_is_at_the_right() -> None:
    assert padded([[4, 2], [2]], pad=1).tolist() == [[4, 2], [2, 1]]
