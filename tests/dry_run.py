"""`python -m tests.dry_run`: try the models of the paper on a CPU.

Build the model of each task and check its number of parameters. Train English-German for two
updates on artificial text with a vocabulary of the real size. Decode three sentences with ten
members, one at a time in memory. Write a store of token statistics and validate it.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hydra import compose, initialize_config_dir

from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.run.settings import CONF, PipelineConfig, plain, typed

PARAMETERS = {"nmt_ende": 217e6, "nmt_enfr": 217e6, "asr": 315e6}
MAX_GIB = 24
N_MEMBER, N_SENTENCE, N_TOKEN = 10, 3, 8
# Deviations from the paper: what a CPU cannot do or a dry run does not need.
ON_CPU = (
    "train.updates=2",
    "train.processes=1",
    "train.batch_tokens=128",
    "train.precision=fp32",
    "train.validate_interval_updates=2",
    "train.validate_quality_sentences=0",
    "train.checkpoint_interval_updates=2",
    "train.keep_checkpoints=1",
    "train.average_last=1",
    "~ensemble.also",
    "decode.device=cpu",
    "decode.max_length_offset=12",
    "decode.search_members=[seed_1]",
)


def main() -> None:
    """Run and time all steps. Raises AssertionError if a result differs from the paper."""
    for task in PARAMETERS:
        _step(f"parameters of {task}", lambda task=task: _parameters(_settings(f"task={task}")))
    settings = _settings(*ON_CPU)
    with TemporaryDirectory() as name:
        folder = Path(name)
        _step("artificial text, 40,000 subwords", lambda: _prepare(folder / "data", settings))
        _step("two updates", lambda: _train(folder, settings))
        _step(f"three sentences, {N_MEMBER} members", lambda: _decode(folder, settings))
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak_gib:.1f} GiB, at most {MAX_GIB} allowed")
    assert peak_gib <= MAX_GIB


def _step(title: str, work: Callable[[], str]) -> None:
    start = time.perf_counter()
    result = work()
    print(f"{title}: {result} ({time.perf_counter() - start:.0f} s)", flush=True)


def _settings(*overrides: str) -> PipelineConfig:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        return typed(compose("pipeline", ["experiment=paper", *overrides]))


def _parameters(settings: PipelineConfig) -> str:
    from pipeline.plan.costs import model_costs

    is_speech = settings.task.family == "speech"
    data = settings.data.speech if is_speech else settings.data
    bins = settings.data.speech.feature_bins if is_speech else None
    costs = model_costs(
        settings.model.architecture,
        plain(settings.model.settings),
        data.vocabulary_size,
        16,
        4,
        bins,
    )
    expected = PARAMETERS[settings.task.name]
    assert abs(costs.parameters / expected - 1) < 0.01, (costs.parameters, expected)
    return f"{costs.parameters:,}"


def _words(settings: PipelineConfig) -> list[str]:
    return [f"unit{index}" for index in range(settings.data.vocabulary_size - 4)]


def _prepare(folder: Path, settings: PipelineConfig) -> str:
    from pipeline.fairseq_bridge.corpus.binarised import write_dictionaries, write_split

    words = _words(settings)
    pair = (settings.task.source_language, settings.task.target_language)
    write_dictionaries(folder, pair, dict.fromkeys(words, 1))
    for split, count in (("train", 64), ("valid", 2)):
        side = [words[index * N_TOKEN : (index + 1) * N_TOKEN] for index in range(count)]
        write_split(folder, split, pair, (side, [subwords[::-1] for subwords in side]))
    return "written"


def _train(folder: Path, settings: PipelineConfig) -> str:
    from pipeline.fairseq_bridge.training.job import TrainJob
    from pipeline.fairseq_bridge.training.trainer import train_member

    out = folder / "member"
    out.mkdir()
    train_member(
        TrainJob(
            title="dry run",
            data=folder / "data",
            out=out,
            resume=folder / "resume",
            seed=settings.ensemble.seeds[0],
            source_language=settings.task.source_language,
            target_language=settings.task.target_language,
            model=plain(settings.model),
            train=plain(settings.train),
        )
    )
    return (out / "curve.csv").read_text(encoding="utf-8").splitlines()[-1]


def _decode(folder: Path, settings: PipelineConfig) -> str:
    from pipeline.data.subwords import detokenise
    from pipeline.decoding.part import decoder_of
    from pipeline.decoding.plan import Part
    from pipeline.decoding.test_set import PreparedSentence
    from pipeline.decoding.tokenizer import SubwordTokenizer
    from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
    from pipeline.run.settings import implementation
    from pipeline.store import open_store, validate
    from tests.decode_to_store import decode_to_store

    dictionary = load_dictionary(folder / "data" / f"dict.{settings.task.target_language}.txt")
    names = tuple(f"seed_{seed}" for seed in settings.ensemble.seeds)
    assert len(names) == N_MEMBER
    load = {name: _loader(folder / "member", dictionary, index) for index, name in enumerate(names)}
    searching = tuple(settings.decode.search_members)
    part = Part(
        "dry_run", "dry_run", "random_init", "random_init", names, "beam", "prex", searching, False
    )
    search = implementation(settings.decode._target_, "decode._target_")
    decoder = decoder_of(
        *(part, load, search, SubwordTokenizer(dictionary, dictionary, detokenise)),
        *(settings.decode, settings.dump, None),
    )
    words = _words(settings)
    test_set = [
        PreparedSentence(index, "source", None, words[index : index + N_TOKEN], None)
        for index in range(N_SENTENCE)
    ]
    attributes: dict[str, Any] = {
        "regime": "beam",
        "combination": "prex",
        "n_member": N_MEMBER,
        "vocab_size": len(dictionary),
    }
    path = folder / "store.h5"
    decode_to_store(decoder, test_set, path, attributes, "dry run", folder / "blocks")
    assert validate(path) == []
    with open_store(path) as store:
        shape = store.read("/token/logprob").shape
    assert shape[1] == N_MEMBER
    return f"a valid store of {shape[0]} tokens, {path.stat().st_size / 1e3:.0f} kB"


def _loader(folder: Path, dictionary: Any, index: int) -> Callable[[], FairseqMember]:
    """Return a loader of the trained weights, with noise for every member but the first."""
    import json

    import torch

    from pipeline.fairseq_bridge.members.member import load_member

    model = json.loads((folder / "model.json").read_text(encoding="utf-8"))["model"]

    def load() -> FairseqMember:
        member = load_member(model, folder / "average.safetensors", dictionary, dictionary)
        generator = torch.Generator().manual_seed(index)
        with torch.no_grad():
            for weight in member.model.parameters() if index else ():
                if weight.dim() > 1:
                    row = torch.randn(weight.shape[-1], generator=generator)
                    weight += 0.1 * weight.std() * row
        return member

    return load


if __name__ == "__main__":
    main()
