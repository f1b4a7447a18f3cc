"""How much a task's test sets hold: as prepared, or as the paper's tables and the settings say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.data.paper_corpora import SPEECH_FRAMES_A_WORD, TEST_SETS
from pipeline.decoding.inputs import Prepared
from pipeline.decoding.test_set import read_test_set
from pipeline.ensembles import Ensemble, Member
from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.training.state import kept_weights
from pipeline.run.settings import (
    EnsembleConfig,
    MainEnsembleConfig,
    PipelineConfig,
    TestSetConfig,
    TrainConfig,
    plain,
)


def planned_ensembles(
    config: MainEnsembleConfig, train: TrainConfig
) -> tuple[list[Ensemble], list[Ensemble]]:
    """Ensembles of the main kind and of `ensemble.also`, of members without weights.

    Members have the names that they will have. A kind of the user's own is taken to have one
    member a training run, whose names are not known. Raises ConfigError where training is too short
    for a checkpoint ensemble.
    """
    further = [one for name, one in config.also.items() if name != config.name]
    return _of_kind(config, train), [
        ensemble for one in further for ensemble in _of_kind(one, train)
    ]


def _of_kind(config: EnsembleConfig, train: TrainConfig) -> list[Ensemble]:
    kind = config.name
    of_run = _OF_EACH_RUN.get(kind)
    if of_run is None:
        names = _runs(config) if kind == "random_init" else _numbered(config)
        return [Ensemble(kind, kind, _members(names))]
    return [
        Ensemble(kind, f"{kind}.seed_{seed}", _members(of_run(config, train, f"seed_{seed}")))
        for seed in config.seeds
    ]


def _members(names: Iterator[str]) -> tuple[Member, ...]:
    return tuple(Member(name, Path(), "", None, {}) for name in names)


def _runs(config: EnsembleConfig) -> Iterator[str]:
    return (f"seed_{seed}" for seed in config.seeds)


def _numbered(config: EnsembleConfig) -> Iterator[str]:
    settings = config.settings
    count = settings.get("members", len(settings.get("checkpoints", config.seeds)))
    return (f"{config.name}_{place}" for place in range(1, int(count) + 1))


def _last_checkpoints(config: EnsembleConfig, train: TrainConfig, run: str) -> Iterator[str]:
    settings = config.settings
    count, average, every = (int(settings[name]) for name in ("members", "average", "every"))
    kept = list(kept_weights(Path(), plain(train)))
    needed = average + (count - 1) * every
    if needed > len(kept):
        raise ConfigError(
            f"train.updates must give the {needed} checkpoints that ensemble {config.name} needs, "
            f"got {train.updates}, which give {len(kept)}"
        )
    mean = f".mean_of_{average}" if average > 1 else ""
    for place in reversed(range(count)):
        yield f"{run}.update_{kept[-1 - place * every]:08d}{mean}"


def _ends_of_cycles(config: EnsembleConfig, train: TrainConfig, run: str) -> Iterator[str]:
    cycles = int(config.settings["cycles"])
    for cycle in range(1, cycles + 1):
        yield f"{run}.update_{cycle * train.updates // cycles:08d}"


def _average(config: EnsembleConfig, train: TrainConfig, run: str) -> Iterator[str]:
    yield run


# The names of the members of a kind that has an ensemble of each training run.
_OF_EACH_RUN: dict[str, Callable[[EnsembleConfig, TrainConfig, str], Iterator[str]]] = {
    "checkpoint": _last_checkpoints,
    "checkpoint_average": _average,
    "snapshot": _ends_of_cycles,
}

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
        return SetSize(n_sentence, words * SPEECH_FRAMES_A_WORD, words * UNITS_A_WORD)
    data = config.data
    words = min(words, (data.min_words + data.max_words) / 2)
    return SetSize(n_sentence, words * UNITS_A_WORD, words * UNITS_A_WORD)
