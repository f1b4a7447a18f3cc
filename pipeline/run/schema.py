"""The schema of conf/: every setting with its type and its rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from omegaconf import MISSING

from pipeline.run.setting_rules import (
    above,
    are_files,
    at_least,
    each,
    is_number,
    one_of,
    rule,
    within,
)
from pipeline.run.test_set_kinds import KINDS_OF_TEST_SETS

# The tokenisers of sacrebleu, without `spm`, which is the old name of flores101.
BLEU_TOKENISERS = (
    *("13a", "zh", "ja-mecab", "ko-mecab", "flores200", "flores101", "spBLEU-1K"),
    *("intl", "char", "none"),
)
_LARGEST_SEED = 2**32 - 1  # the largest that numpy accepts


@dataclass
class IoConfig:
    """The paths that a stage reads and writes."""

    root: str = MISSING
    store: Any = rule("null, a file or a list of files", are_files, default=None)
    baseline: Any = rule("null, a file or a list of files", are_files, default=None)
    out: str | None = rule("null or a folder", lambda value: value != "", default=None)
    member_stores: list[str] = field(default_factory=list)


@dataclass
class SpeechDataConfig:
    """The audio of a speech task, and how it becomes features and subwords."""

    corpus: str = MISSING
    train: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    test: str | None = None
    test_other: str | None = None
    ami: str | None = None
    common_voice: str | None = None
    commands: int = at_least(1)
    sampling_rate_hz: int = at_least(4000)
    feature_bins: int = at_least(4)
    shortest_seconds: float = at_least(0.025)
    longest_seconds: float = above(0)
    unit_kind: str = one_of("bpe", "unigram", "word")
    # a-z, 0-9, the apostrophe, the mark of a word's beginning, and three control symbols.
    vocabulary_size: int = at_least(41)


@dataclass
class UnitsConfig:
    """The subword model of text: learnt from it, or brought by models that the user has."""

    name: str = one_of("learnt", "imported", "own")
    codes: str | None = None
    sentencepiece: str | None = None
    source_dictionary: str | None = None
    target_dictionary: str | None = None


@dataclass
class CopiesConfig:
    """Shares of the training sentences that are repeated with one text on both sides."""

    source: float = within(0, 1)
    target: float = within(0, 1)
    third: float = within(0, 1)


@dataclass
class DataConfig:
    """The corpus, and how it is cleaned, split and cut into subwords."""

    source: str = one_of("libreoffice", "files", "sacrebleu")
    corpus: str = MISSING
    train: str | None = None
    dev: str | None = None
    test: str | None = None
    librispeech: str | None = None
    khresmoi: str | None = None
    check_paper_sizes: bool = MISSING
    downloads: str = MISSING
    packages: str | None = None
    pin: bool = MISSING
    min_words: int = at_least(1)
    max_words: int = at_least(1)
    min_letter_share: float = within(0, 1)
    max_length_ratio: float = at_least(1)
    length_allowance_words: int = at_least(0)
    dev_sentences: int = at_least(1)
    test_sentences: int = at_least(1)
    max_sentences_per_page: int | None = rule(
        "null or at least 1", lambda value: value is None or value >= 1
    )
    train_sentences: int | None = rule(
        "null or at least 1", lambda value: value is None or value >= 1
    )
    copies: CopiesConfig = field(default_factory=CopiesConfig)
    untranslated: str = one_of("drop", "keep")
    near_duplicate_jaccard: float = rule("in (0, 1]", lambda value: 0 < value <= 1)
    vocabulary_size: int = at_least(64)
    units: UnitsConfig = field(default_factory=UnitsConfig)
    speech: SpeechDataConfig = field(default_factory=SpeechDataConfig)


@dataclass
class TestSetConfig:
    """One test set: how it is made, from which corpus, and how it is decoded and evaluated."""

    kind: str = one_of(*dict.fromkeys(name for _, name in KINDS_OF_TEST_SETS))
    roles: list[str] = field(default_factory=list)
    corpus: str = MISSING
    in_domain: bool = False
    baseline: bool = False
    regimes: list[str] = field(
        default_factory=lambda: ["search"],
        metadata={
            "rule": "a list with search, teacher_forcing or both",
            "holds": lambda value: bool(value) and {*value} <= {"search", "teacher_forcing"},
        },
    )
    language: str | None = None
    reference_language: str | None = None
    librispeech_subset: str | None = None
    stand_in: bool = True
    path: str | None = None


@dataclass
class TaskConfig:
    """A task: its languages, test sets and the metric of its predictive performance.

    label: its name in tables and figures; None: `name`.
    """

    name: str = MISSING
    label: str | None = None
    family: str = one_of("translation", "speech")
    quality: str = one_of("bleu", "wer_percent")
    source_language: str = MISSING
    target_language: str = MISSING
    test_sets: dict[str, TestSetConfig] = field(default_factory=dict)


@dataclass
class ModelConfig:
    """A fairseq architecture and the settings of its configuration."""

    name: str = MISSING
    architecture: str = MISSING
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class TrainConfig:
    """Settings of the training of one member."""

    name: str = MISSING
    _target_: str = MISSING
    updates: int = at_least(1)
    batch_tokens: int = at_least(1)
    accumulate_batches: int = at_least(1)
    processes: int = at_least(1)
    precision: str = one_of("fp32", "fp16", "bf16")
    learning_rate: float = above(0)
    schedule: str = one_of("inverse_sqrt", "cosine", "fixed")
    cycles: int = at_least(1)
    warmup_updates: int = at_least(0)
    optimizer: str = one_of("adam", "adadelta")
    adam_betas: list[float] = rule(
        "two numbers in [0, 1)",
        lambda value: len(value) == 2 and all(0 <= beta < 1 for beta in value),
    )
    adadelta_rho: float = rule("in [0, 1)", lambda value: 0 <= value < 1)
    adadelta_eps: float = above(0)
    clip_norm: float = at_least(0)
    weight_decay: float = at_least(0)
    label_smoothing: float = within(0, 1)
    validate_interval_updates: int = at_least(1)
    validate_quality_sentences: int = at_least(0)
    checkpoint_interval_updates: int = at_least(1)
    keep_checkpoints: int = at_least(1)
    average_last: int = at_least(1)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class EnsembleConfig:
    """A kind of ensemble with its settings; seeds default to those of the main ensemble."""

    name: str = MISSING
    _target_: str = MISSING
    seeds: list[int] = rule(
        f"whole numbers in [0, {_LARGEST_SEED}]",
        lambda value: all(0 <= seed <= _LARGEST_SEED for seed in value),
        default="${ensemble.seeds}",
    )
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class MainEnsembleConfig(EnsembleConfig):
    """The ensemble that everything is decoded with, and further ensembles."""

    seeds: list[int] = rule(
        f"whole numbers in [0, {_LARGEST_SEED}]",
        lambda value: all(0 <= seed <= _LARGEST_SEED for seed in value),
    )
    also: dict[str, EnsembleConfig] = field(default_factory=dict)


@dataclass
class DecodeConfig:
    """Settings of the search, and the posteriors and test sets to decode."""

    name: str = MISSING
    _target_: str = MISSING
    regime: str = one_of("beam", "greedy", "teacher_forcing", "sample")
    combination: str = one_of("prex", "expr", "member")
    beam: int = at_least(1)
    n_best: int | None = rule("null or at least 1", lambda value: value is None or value >= 1)
    length_penalty: float = MISSING
    ending: str = one_of("fairseq", "early", "heuristic", "never")
    unk_penalty: float = at_least(0)
    min_length: int = at_least(0)
    max_length_ratio: float = at_least(0)
    max_length_offset: int = at_least(1)
    sampling_temperature: float = above(0)
    sampling_top_k: int = at_least(0)
    sampling_top_p: float = rule("in (0, 1]", lambda value: 0 < value <= 1)
    seed: int = at_least(0)
    batch_sentences: int = at_least(1)
    part_sentences: int = at_least(1)
    parts_per_job: int = at_least(1)
    shards: int = at_least(1)
    subsets_per_size: int = at_least(0)
    search_members: list[str] = field(default_factory=list)
    hypotheses: str | None = None
    self_check: bool = MISSING
    device: str = one_of("cpu", "cuda")
    device_memory_mib: int = at_least(1)
    dtype: str = one_of("float32", "float16")
    also: list[str] = each(
        "one of expr, members, members_ood, teacher_forcing",
        lambda value: value in ("expr", "members", "members_ood", "teacher_forcing"),
    )
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass
class DumpConfig:
    """The part of the token distributions that a decode store keeps."""

    name: str = MISSING
    kind: str = one_of("statistics", "topk", "full")
    dtype: str = one_of("float16", "float32")
    k: int = at_least(1)


@dataclass
class UncertaintyConfig:
    """Settings of the offline measures; lists span a grid."""

    name: str = MISSING
    beam: Any = each(
        "a whole number of at least 1", lambda value: type(value) is int and value >= 1
    )
    temperature: Any = each(
        "a number greater than 0 with a finite inverse",
        lambda value: is_number(value) and value > 0 and isfinite(1 / value),
    )
    length_norm: Any = each("true or false", lambda value: isinstance(value, bool))
    weights_from: str = one_of("decoding", "prex", "expr")
    eos: str = one_of("include", "zero")
    equal_texts: str = one_of("keep", "merge")
    extra_measures: dict[str, str] = field(default_factory=dict)
    hypothesis_measures: dict[str, str] = field(default_factory=dict)


@dataclass
class ScoresConfig:
    """External scores of sentences: their files, and whether a higher score is better."""

    files: str = MISSING
    higher_is_better: bool = MISSING


@dataclass
class MetricsConfig:
    """Settings of the quality, error-detection and OOD metrics."""

    name: str = MISSING
    resamples: int = at_least(0)
    resample: str = one_of("group", "sentence")
    bleu_tokenize: str = one_of("auto", *BLEU_TOKENISERS)
    transcripts: str = one_of("as_decoded", "words")
    aligner: str = one_of("nist", "sclite", "levenshtein")
    token_eos: str = one_of("exclude", "include")
    sbleu: str = one_of("effective", "floor-1.1")
    prr: str = one_of("exact", "shifted")
    aupr: str = one_of("average_precision", "trapezoid")
    extra_metrics: dict[str, str] = field(default_factory=dict)
    scores: dict[str, ScoresConfig] = field(default_factory=dict)


@dataclass
class ReportConfig:
    """The tables to make: labels of the paper, and label -> function for any other table.

    figures: name -> function that makes a figure's sheet; claims: name -> function that returns
    claims.
    """

    name: str = MISSING
    paper_tables: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    beside_paper: bool = MISSING
    page_sentences: int = at_least(1)


@dataclass
class TrackingConfig:
    """The MLflow store to which runs are logged."""

    name: str = MISSING
    enabled: bool = MISSING
    uri: str | None = None


@dataclass
class ExperimentConfig:
    """The name of a set of choices for the whole pipeline."""

    name: str = MISSING


@dataclass
class PlanConfig:
    """The hardware that stage plan assumes."""

    hardware: str = one_of("this_machine", "v100", "a100", "h100")
    devices: int | None = rule("null or at least 1", lambda value: value is None or value >= 1)
    usable_share: float | None = rule("null or in (0, 1]", lambda x: x is None or 0 < x <= 1)


@dataclass
class PipelineConfig:
    """All settings: one field per group of conf/, and the keys of pipeline.yaml."""

    seed: int = at_least(0)
    from_config: str | None = None
    part: str | None = None
    io: IoConfig = field(default_factory=IoConfig)
    data: DataConfig = field(default_factory=DataConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    ensemble: MainEnsembleConfig = field(default_factory=MainEnsembleConfig)
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    dump: DumpConfig = field(default_factory=DumpConfig)
    uncertainty: UncertaintyConfig = field(default_factory=UncertaintyConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    report: ReportConfig = field(default_factory=ReportConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    experiment: ExperimentConfig = field(default_factory=ExperimentConfig)
    plan: PlanConfig = field(default_factory=PlanConfig)
