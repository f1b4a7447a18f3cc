"""chrF between the texts of a sentence: how similar several hypotheses are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pipeline.compiled import machine_code
from pipeline.quality.normalisation import normalised
from pipeline.quality.translation import BETA, CHARACTER_ORDER
from pipeline.quality.weighted_metric import FloatArray

_CODE_POINTS = 0x110000
_BLOCK_VALUES = 2**20


def mean_chrf_of_pairs(texts: Sequence[str], text_offset: NDArray[np.integer]) -> FloatArray:
    """Mean chrF over the ordered pairs of different texts of each sentence, in percent.

    texts [text]: those of sentence i are text_offset[i] to text_offset[i + 1]; text_offset
    [sentence + 1]. Returns [sentence], NaN for fewer than two texts. The chrF of a pair is that of
    `chrf_counts` for one sentence, with sacrebleu's defaults, where the first text is the
    hypothesis: 100 if both are empty, 0 if one is. Equal texts, of which thousands of samples have
    many, are compared once.
    """
    if np.diff(text_offset).max(initial=0) < 2:  # such as references, which have no pairs
        return np.full(len(text_offset) - 1, np.nan)
    stripped = ["".join(text.split()) for text in normalised(texts)]
    counts = [Counter(stripped[start:stop]) for start, stop in pairwise(text_offset)]
    different = [text for count in counts for text in count]
    n_equal = np.array([n for count in counts for n in count.values()], dtype=np.int64)
    different_offset = np.concatenate([[0], np.cumsum([len(count) for count in counts])])
    length = np.array([len(text) for text in different], dtype=np.int64)
    result = np.full(len(counts), np.nan)
    for first, last in _blocks(length, different_offset):
        start, stop = int(different_offset[first]), int(different_offset[last])
        offset = different_offset[first : last + 1] - start
        block = different[start:stop], length[start:stop], n_equal[start:stop]
        result[first:last] = _mean_of_block(*block, offset)
    return result


def _blocks(
    length: NDArray[np.int64], text_offset: NDArray[np.integer]
) -> Iterator[tuple[int, int]]:
    """Divide the sentences into ranges whose arrays are of bounded size."""
    characters = np.concatenate([[0], np.cumsum(length)])[text_offset]
    values = CHARACTER_ORDER * (np.diff(characters) + np.diff(text_offset) ** 2)
    before = np.concatenate([[0], np.cumsum(values)])
    first = 0
    while first < len(values):
        last = int(np.searchsorted(before, before[first] + _BLOCK_VALUES, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last


def _mean_of_block(
    texts: Sequence[str],
    length: NDArray[np.int64],
    n_equal: NDArray[np.int64],
    offset: NDArray[np.integer],
) -> FloatArray:
    """Mean over pairs [sentence] of different texts, each of which stands for n_equal [text]."""
    n_text = np.diff(offset)
    sentence = np.repeat(np.arange(len(n_text)), n_text)
    place = np.arange(len(texts)) - offset[:-1][sentence]
    shape = len(n_text), int(n_text.max(initial=0))
    lengths, weight = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    lengths[sentence, place] = length
    weight[sentence, place] = n_equal
    orders = np.arange(CHARACTER_ORDER)
    total = np.maximum(lengths[:, :, np.newaxis] - orders, 0)
    matches = _matches(texts, length, sentence, place, shape)
    percent = _chrf(matches, total[:, :, np.newaxis], total[:, np.newaxis], lengths)
    diagonal = np.arange(shape[1])
    percent[:, diagonal, diagonal] = 0
    between = (weight[:, np.newaxis] @ percent @ weight[:, :, np.newaxis])[:, 0, 0]
    of_equal = 100.0 * (weight * (weight - 1)).sum(axis=1)
    n = weight.sum(axis=1)
    mean = (between + of_equal) / np.maximum(n * (n - 1), 1)
    return np.asarray(np.where(n > 1, mean, np.nan))


def _matches(
    texts: Sequence[str],
    length: NDArray[np.int64],
    sentence: NDArray[np.int64],
    place: NDArray[np.int64],
    shape: tuple[int, int],
) -> NDArray[np.int64]:
    """Numbers of n-grams that the texts of a sentence share, [sentence, text, text, order].

    An n-gram is numbered by the number of its first n - 1 characters and its last one, and the
    empty one by the sentence, so that numbers ascend with the sentence at every order.
    """
    n_sentence, width = shape
    code = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32).astype(np.int64)
    text = np.repeat(np.arange(len(texts)), length)
    left = np.cumsum(length)[text] - np.arange(len(code))
    position = np.arange(len(code))
    number, sentence_of = sentence[text], np.arange(n_sentence)
    matches = np.zeros((n_sentence, width, width, CHARACTER_ORDER), dtype=np.int64)
    for order in range(CHARACTER_ORDER):
        position = position[left[position] > order]
        last = number[position] * _CODE_POINTS + code[position + order]
        different, ngram = np.unique(last, return_inverse=True)
        if not len(different):
            break
        number[position] = ngram
        sentence_of = sentence_of[different // _CODE_POINTS]
        cell = ngram * width + place[text[position]]
        count = np.bincount(cell, minlength=len(different) * width).reshape(-1, width)
        add_shared(count, sentence_of, matches[:, :, :, order])
    return matches + matches.transpose(0, 2, 1, 3)


def _add_shared(
    count: NDArray[np.int64], sentence_of: NDArray[np.int64], matches: NDArray[np.int64]
) -> None:
    """Add to matches [sentence, text, later text] how often two texts share each n-gram.

    count [ngram, text]; sentence_of [ngram].
    """
    n_text = count.shape[1]
    with_ngram = np.empty(n_text, np.int64)
    for ngram in range(len(count)):
        n_with = 0
        of_sentence = matches[sentence_of[ngram]]
        for text in range(n_text):
            own = count[ngram, text]
            if own:
                for earlier in with_ngram[:n_with]:
                    of_sentence[earlier, text] += min(count[ngram, earlier], own)
                with_ngram[n_with] = text
                n_with += 1


add_shared = machine_code(_add_shared, nogil=True)


def _chrf(
    matches: NDArray[np.int64],
    hypothesis: NDArray[np.int64],
    reference: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> FloatArray:
    """chrF in percent, [sentence, hypothesis, reference], from numbers of n-grams [..., order]."""
    # An order counts only if both sides are long enough to have n-grams of it.
    orders = np.maximum(((hypothesis > 0) & (reference > 0)).sum(axis=3), 1)
    precision = (matches / np.maximum(hypothesis, 1)).sum(axis=3) / orders
    recall = (matches / np.maximum(reference, 1)).sum(axis=3) / orders
    denominator = BETA**2 * precision + recall
    product = (1 + BETA**2) * precision * recall
    percent = 100 * np.divide(
        product, denominator, out=np.zeros_like(product), where=denominator > 0
    )
    both_empty = (lengths[:, :, np.newaxis] + lengths[:, np.newaxis]) == 0
    return np.asarray(np.where(both_empty, 100.0, percent))
