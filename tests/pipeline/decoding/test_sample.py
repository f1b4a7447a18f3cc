from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from pipeline.data.subwords import detokenise
from pipeline.decoding.blocks import Decoder
from pipeline.decoding.ensemble import MembersInTurn, as_ensemble
from pipeline.decoding.test_set import PreparedSentence, Sentence
from pipeline.decoding.tokenizer import SubwordTokenizer
from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import DumpConfig
from pipeline.store import open_own_store
from pipeline.store.validate import store_faults
from pipeline.uncertainty.sequence import sequence_measures
from tests.decode_to_store import decode_to_store

EOS, WORDS, LONGEST = 2, (3, 4), 3


@cache
def table(source: int, prefix: tuple[int, ...]) -> Any:
    """Return distributions of 3 members over 2 words and EOS; EOS is certain after 3 words."""
    random = np.random.default_rng([7, source, len(prefix), *prefix])
    rows = np.zeros((3, 34))
    rows[:, [EOS, *WORDS]] = random.dirichlet(np.full(3, 0.8), 3)
    if len(prefix) == LONGEST:
        rows[:] = np.eye(34)[EOS]
    return rows


def sequence_probability(combination: str, member: int = 0) -> dict[tuple[int, ...], float]:
    """Return the probability of every sequence of source 5, by enumeration."""
    samples = {}
    prefixes: list[tuple[int, ...]] = [()]
    while prefixes:
        prefix = prefixes.pop()
        for token in (EOS, *WORDS):
            words = (*prefix, token)
            steps = [
                table(5, words[:position])[:, words[position]] for position in range(len(words))
            ]
            each = np.prod(steps, axis=0)
            if not each.any():
                continue
            if token != EOS:
                prefixes.append(words)
                continue
            samples[words] = {
                "expr": each.mean(),
                "prex": np.prod(np.mean(steps, axis=1)),
                "member": each[member],
            }[combination]
    return samples


@pytest.fixture
def drawn(table_model: Any, sample: Any) -> Callable[..., Any]:
    """Return a function that draws samples of source 5."""
    batch = [Sentence(0, [5, EOS], None)]
    return lambda config: sample(table_model(table), batch, config.combination, config)[0]


def assert_frequencies(samples: list[Any], expected: dict[tuple[int, ...], float]) -> None:
    counts = Counter(tuple(hypothesis.token_id.tolist()) for hypothesis in samples)
    assert set(counts) <= set(expected)
    common = [sequence for sequence in expected if expected[sequence] * len(samples) >= 5]
    rest = len(samples) - sum(counts[sequence] for sequence in common)
    frequencies = np.array([*(expected[sequence] for sequence in common), 0.0])
    frequencies[-1] = 1 - frequencies.sum()
    kept = slice(None) if frequencies[-1] * len(samples) >= 5 else slice(-1)
    seen = np.array([*(counts[sequence] for sequence in common), rest], float)[kept]
    share = frequencies[kept] / frequencies[kept].sum()
    assert chisquare(seen, share * seen.sum()).pvalue > 1e-3


@pytest.mark.parametrize("combination", ["prex", "expr"])
@pytest.mark.slow
def test_frequencies_of_sequences_follow_the_posterior(
    combination: str, decode_config: Any, drawn: Any
) -> None:
    config = decode_config(regime="sample", combination=combination, beam=3000, min_length=0)
    samples = drawn(config)
    assert len(samples) == 3000
    assert_frequencies(samples, sequence_probability(combination))
    for hypothesis in samples[:20]:
        expected = np.log(sequence_probability(combination)[tuple(hypothesis.token_id.tolist())])
        assert hypothesis.score * len(hypothesis.token_id) == pytest.approx(expected, abs=1e-4)
        assert hypothesis.member == -1


@pytest.mark.slow
def test_each_member_draws_from_its_own_distribution(decode_config: Any, drawn: Any) -> None:
    config = decode_config(regime="sample", combination="member", beam=1000, min_length=0)
    samples = drawn(config)
    assert [hypothesis.member for hypothesis in samples] == [0] * 1000 + [1] * 1000 + [2] * 1000
    for member in range(3):
        own = [hypothesis for hypothesis in samples if hypothesis.member == member]
        assert_frequencies(own, sequence_probability("member", member))


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("combination", ["expr", "member"])
def test_samples_depend_on_neither_batch_nor_order(
    combination: str,
    stacked: bool,
    random_models: Any,
    decode_config: Any,
    sentences: list[Sentence],
    sample: Any,
) -> None:
    members = [FairseqMember(model) for model in random_models(2)]
    model = as_ensemble(members) if stacked else MembersInTurn(members)
    config = decode_config(regime="sample", beam=3, min_length=0)
    together = sample(model, sentences, combination, config)
    backwards = sample(model, sentences[::-1], combination, config)[::-1]
    alone = [sample(model, [sentence], combination, config)[0] for sentence in sentences]
    assert len({tuple(hypothesis.token_id) for best in together for hypothesis in best}) > 10
    for first, second, third in zip(together, backwards, alone, strict=True):
        for forward, backward, single in zip(first, second, third, strict=True):
            assert (
                forward.token_id.tolist() == backward.token_id.tolist() == single.token_id.tolist()
            )
            np.testing.assert_allclose(
                forward.statistics.entropy_prex, single.statistics.entropy_prex, atol=1e-4
            )


def test_seed_determines_the_samples(decode_config: Any, drawn: Any) -> None:
    first, repeated, reseeded = (
        [
            hypothesis.token_id.tolist()
            for hypothesis in drawn(decode_config(regime="sample", min_length=0, seed=seed))
        ]
        for seed in (1, 1, 2)
    )
    assert first == repeated != reseeded


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"sampling_top_k": 1}, 1),
        ({"sampling_top_p": 0.01}, 1),
        ({"sampling_top_k": 2}, 2),
        ({"sampling_temperature": 1e-3}, 1),
        ({"sampling_temperature": 1e3}, 3),
    ],
)
def test_truncation_and_temperature_change_the_frequencies(
    settings: dict[str, Any], allowed: int, decode_config: Any, drawn: Any
) -> None:
    config = decode_config(regime="sample", beam=200, min_length=0, **settings)
    first = Counter(int(hypothesis.token_id[0]) for hypothesis in drawn(config))
    posterior = table(5, ()).mean(axis=0)
    assert set(first) == set(np.argsort(-posterior)[:allowed].tolist())


def test_a_sample_without_eos_is_cut_at_the_length_limit(
    table_model: Any, decode_config: Any, sample: Any
) -> None:
    model = table_model(lambda source, prefix: np.eye(5)[[3, 3]])
    config = decode_config(regime="sample", beam=2, min_length=0, max_length_offset=4)
    for hypothesis in sample(model, [Sentence(0, [3, EOS], None)], "prex", config)[0]:
        assert hypothesis.token_id.tolist() == [3] * 5
        assert not hypothesis.finished


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"regime": "beam"}, r"decode\._target_: sample .*\(got beam\)"),
        ({"min_length": 1}, r"decode\.min_length: must be 0 .*\(got 1\)"),
        ({"unk_penalty": 0.5}, r"decode\.unk_penalty: must be 0 .*\(got 0\.5\)"),
    ],
)
def test_settings_that_do_not_fit_sampling_are_rejected(
    settings: dict[str, Any], message: str, decode_config: Any, drawn: Any
) -> None:
    with pytest.raises(ConfigError, match=message):
        drawn(decode_config(**{"regime": "sample", "min_length": 0} | settings))


def test_nan_is_rejected_with_member_and_sentence(
    table_model: Any, decode_config: Any, sample: Any
) -> None:
    model = table_model(lambda source, prefix: np.array([[0.2] * 5, [np.nan] * 5]))
    config = decode_config(regime="sample", min_length=0)
    with pytest.raises(DataError, match=r"sentence 9: member 1 returned a NaN log-prob"):
        sample(model, [Sentence(9, [3, EOS], None)], "prex", config)


@pytest.mark.parametrize("combination", ["prex", "expr", "member"])
@pytest.mark.slow
def test_monte_carlo_measures_of_samples_reach_the_exact_values(
    combination: str,
    tmp_path: Path,
    table_model: Any,
    dictionary: Any,
    decode_config: Any,
    sample: Any,
) -> None:
    config = decode_config(regime="sample", combination=combination, beam=4000, min_length=0)
    decoder = Decoder(
        SubwordTokenizer(dictionary, dictionary, detokenise),
        table_model(table),
        sample,
        config,
        DumpConfig("statistics", "statistics", "float32", 1),
    )
    attributes = {
        "regime": "sample", "combination": combination, "members": ["a", "b", "c"],
        "vocab_size": 34, "sampling_temperature": 1.0,
    }  # fmt: skip
    test_set = [PreparedSentence(0, "source", None, [dictionary.symbols[5]], None)]
    decode_to_store(decoder, test_set, tmp_path / "a.h5", attributes, "sample", tmp_path / "r")
    assert store_faults(tmp_path / "a.h5") == []
    with open_own_store(tmp_path / "a.h5") as store:
        row = sequence_measures(store, beam=4000, temperature=1.0, length_norm=False).iloc[0]
    if combination != "member":
        probability = np.array(list(sequence_probability(combination).values()))
        entropy = -(probability * np.log(probability)).sum()
        assert row[f"{combination}_entropy_smc"] == pytest.approx(entropy, abs=0.06)
        assert row[f"{combination}_entropy_cmc"] == pytest.approx(entropy, abs=0.06)
        return
    each = [np.array(list(sequence_probability("member", index).values())) for index in range(3)]
    mean_log = np.mean(
        [np.log(np.maximum(probability_of, 1e-300)) for probability_of in each], axis=0
    )
    epkl = np.mean(
        [
            (probability_of * (np.log(np.maximum(probability_of, 1e-300)) - mean_log)).sum()
            for probability_of in each
        ]
    )
    assert row["epkl_mc"] == pytest.approx(epkl, rel=0.1)
    posterior = np.array(list(sequence_probability("expr").values()))
    mi = np.mean(
        [
            (probability_of * np.log(np.maximum(probability_of, 1e-300) / posterior)).sum()
            for probability_of in each
        ]
    )
    assert row["expr_mi_mc"] == pytest.approx(mi, rel=0.1)
