"""How much a task's test sets hold: as prepared, or as the paper's tables and the settings say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.data.paper_corpora import SPEECH_FRAMES_PER_WORD, TEST_SETS
from pipeline.decoding.inputs import Prepared
from pipeline.decoding.test_set import read_test_set
from pipeline.run.settings import PipelineConfig, TestSetConfig

UNITS_A_WORD = 1.3  # of a joint BPE, with EOS and punctuation: an assumption
_LIKE_NEWSTEST = TEST_SETS["newstest14"]


@dataclass(frozen=True)
class SetSize:
    """source_length: mean tokens, or frames of speech; target_length: mean tokens, both of one."""

    sentences: int
    source_length: float
    target_length: float


def set_sizes(config: PipelineConfig) -> tuple[dict[str, SetSize], bool]:
    """Role -> size of every test set, and whether they were read from prepared data."""
    task = config.task
    folder = Path(config.io.root) / "prepare" / task.name
    prepared = Prepared(folder, task.source_language, task.target_language)
    if not (folder / "manifest.json").is_file():
        return {role: _expected(config, role, one) for role, one in task.test_sets.items()}, False
    absent = prepared.absent_sets()
    there = [role for role in task.test_sets if role not in absent]
    return {role: _prepared_size(prepared.test_set(role)) for role in there}, True


def baseline_size(config: PipelineConfig, sizes: Mapping[str, SetSize]) -> SetSize:
    """The size of the set that is like the training data."""
    return sizes[next(role for role, one in config.task.test_sets.items() if one.baseline)]


def target_share(config: PipelineConfig, size: SetSize) -> float:
    """Target tokens of a training batch for each of its source tokens, or frames.

    A batch of text has as many tokens on either side, with padding.
    """
    return size.target_length / size.source_length if config.task.family == "speech" else 1.0


def _prepared_size(path: Path) -> SetSize:
    sentences = read_test_set(path)
    n_sentence = len(sentences)
    target = sum(one.expected_tokens for one in sentences) / n_sentence
    utterances = sentences[0].utterances
    frames = target if utterances is None else float(utterances.n_frame.sum()) / n_sentence
    return SetSize(n_sentence, frames, target)


def _expected(config: PipelineConfig, role: str, test_set: TestSetConfig) -> SetSize:
    paper = TEST_SETS.get(role, _LIKE_NEWSTEST)
    language = test_set.language or config.task.source_language
    n_sentence = min(paper.sentences, config.data.test_sentences)
    words = paper.words.get(language, next(iter(paper.words.values())))
    if config.task.family == "speech":
        return SetSize(n_sentence, words * SPEECH_FRAMES_PER_WORD, words * UNITS_A_WORD)
    data = config.data
    words = min(words, (data.min_words + data.max_words) / 2)
    return SetSize(n_sentence, words * UNITS_A_WORD, words * UNITS_A_WORD)
