from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from pipeline.decoding import beam, scoring
from pipeline.decoding import sample as sampling
from pipeline.decoding.device import DeviceDistributions, distributions_of
from pipeline.decoding.test_set import Sentence
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.run.settings import DecodeConfig

WORDS = 30


@pytest.fixture(scope="session")
def dictionary() -> Any:
    vocabulary = import_fairseq("fairseq.data").Dictionary()
    for word in range(WORDS):
        vocabulary.add_symbol(f"▁w{word}")
    return vocabulary


@pytest.fixture(scope="session")
def random_models(dictionary: Any) -> Callable[..., list[Any]]:
    """Return a function that makes tiny transformers whose words depend on the source."""

    @cache
    def built(member: int, normalize_before: bool) -> Any:
        side = {
            "embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2,
            "normalize_before": normalize_before,
        }  # fmt: skip
        configuration = model_configuration("transformer", {"encoder": side, "decoder": side})
        torch.manual_seed(member)
        model = build_model(configuration, dictionary, dictionary).eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.dim() > 1 and "embed" not in name:
                    weight.mul_(2.0)
                if name == "decoder.output_projection.weight":
                    weight[dictionary.eos()] *= 1.6
        return model

    def copies(n_member: int, normalize_before: bool = True) -> list[Any]:
        return [copy.deepcopy(built(member, normalize_before)) for member in range(n_member)]

    return copies


@cache
def _default_settings() -> Any:
    defaults = {
        "name": "beam", "_target_": "pipeline.decoding.beam.beam_search", "regime": "beam",
        "combination": "prex", "beam": 5, "n_best": None, "length_penalty": 1.0,
        "ending": "fairseq",
        "unk_penalty": 0.0, "min_length": 1, "max_length_ratio": 0.0,
        "max_length_offset": 12, "sampling_temperature": 1.0, "sampling_top_k": 0,
        "sampling_top_p": 1.0, "seed": 0, "batch_sentences": 4, "part_sentences": 512,
        "parts_per_job": 1, "shards": 1, "subsets_per_size": 0,
        "search_members": [], "hypotheses": None, "self_check": False,
        "device": "cpu", "device_memory_mib": 1024, "dtype": "float32",
        "also": [], "settings": {},
    }  # fmt: skip
    return OmegaConf.merge(OmegaConf.structured(DecodeConfig), defaults)


@pytest.fixture
def decode_config() -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        return OmegaConf.merge(_default_settings(), settings)

    return make


@pytest.fixture(scope="session")
def sentences(dictionary: Any) -> list[Sentence]:
    """Return random sentences of 1 to 8 words with random targets."""
    random = np.random.default_rng(0)

    def words() -> list[int]:
        return [*random.integers(4, len(dictionary), random.integers(1, 9)).tolist(), 2]

    return [Sentence(index, words(), words()) for index in range(7)]


class TableModel:
    """An EnsembleModel whose members' distributions come from a function of the prefix.

    distribution(first source token, prefix) gives P_m of the next token [member, vocab].
    """

    pad, eos, unk = 1, 2, 3
    start: tuple[int, ...] = (2,)
    max_source_tokens = max_target_tokens = 100
    max_shared_tokens: int | None = None

    def __init__(self, distribution: Callable[[int, tuple[int, ...]], Any]) -> None:
        self.distribution = distribution
        self.n_member, self.vocab_size = np.shape(distribution(3, ()))

    def suppressed(self, n_token: int) -> Sequence[int]:
        return ()

    def encode(self, source: torch.Tensor) -> list[int]:
        return [int(row[0]) for row in source]

    def step(self, state: list[int], prefix: torch.Tensor) -> torch.Tensor:
        rows = [
            self.distribution(source, tuple(row[len(self.start) :].tolist()))
            for source, row in zip(state, prefix, strict=True)
        ]
        return torch.tensor(np.array(rows)).float().log()

    def reorder(self, state: list[int], row: torch.Tensor, beam: int) -> list[int]:
        return [state[index] for index in row.tolist()]

    def force(
        self, source: torch.Tensor, prefix: torch.Tensor, length: list[int]
    ) -> Iterator[torch.Tensor]:
        n_start = len(self.start)
        for first, row, count in zip(source[:, 0].tolist(), prefix.tolist(), length, strict=True):
            steps = [
                self.distribution(first, tuple(row[n_start : n_start + position]))
                for position in range(count)
            ]
            yield torch.tensor(np.array(steps)).float().log()


@pytest.fixture(scope="session")
def table_model() -> type[TableModel]:
    return TableModel


def in_small_blocks(logits: torch.Tensor, _decode: Any) -> DeviceDistributions:
    """What runs on an accelerator, forced on the CPU, with few rows per block."""
    return DeviceDistributions(logits, memory_bytes=2**16)


@pytest.fixture(params=["compiled", "device"])
def distributions(request: pytest.FixtureRequest) -> Any:
    """Both ways to compute the distributions of a step."""
    return distributions_of if request.param == "compiled" else in_small_blocks


@pytest.fixture
def beam_search(distributions: Any) -> Any:
    return partial(beam.beam_search, distributions=distributions)


@pytest.fixture
def sample(distributions: Any) -> Any:
    return partial(sampling.sample, distributions=distributions)


@pytest.fixture
def score_targets(distributions: Any) -> Any:
    return partial(scoring.score_targets, distributions=distributions)
