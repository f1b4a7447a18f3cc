"""Sides of a test set in a language that only its edition for another pair has.

WMT publishes a test set for each pair: newstest14 of English-German and that of English-French are
other sentences. The paper's L-FR of its English-German systems is the French side of the latter.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.config import DataConfig, TaskConfig, TestSetConfig
from pipeline.data.corpus import Corpus
from pipeline.data.sacrebleu_cache import fetching_command, is_cached, read_sacrebleu

Pair = tuple[str, str]


def other_pairs(data: DataConfig, task: TaskConfig) -> Iterator[tuple[str, Pair]]:
    """Each role whose side is of another pair of sacrebleu's `data.test`, with that pair."""
    for role, test_set in task.test_sets.items():
        language = _lacking(test_set, (task.source_language, task.target_language))
        if data.source == "sacrebleu" and test_set.kind == "other_side" and language is not None:
            yield str(role), (task.source_language, language)


def read_other_pair(data: DataConfig, pair: Pair) -> Corpus | str:
    """The edition of `data.test` for a pair; or the reason why it is absent, in words."""
    assert data.test is not None  # the configuration was checked
    if is_cached(data.test, pair):
        return read_sacrebleu(data.test, pair)
    return (
        f"sacrebleu's cache holds no {data.test} of {'-'.join(pair)}: "
        f"run {fetching_command(data.test, pair)}"
    )


def _lacking(test_set: TestSetConfig, pair: Pair) -> str | None:
    sides = (test_set.language, test_set.reference_language)
    lacking = [one for one in sides if one is not None and one not in pair]
    return lacking[0] if lacking else None
