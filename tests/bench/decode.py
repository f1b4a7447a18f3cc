"""Decoding compared with fairseq's generator: speed, cost of the statistics, memory."""

from __future__ import annotations

import copy
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import torch
from omegaconf import OmegaConf

from pipeline.data.subwords import detokenise
from pipeline.decoding.beam import beam_search
from pipeline.decoding.compiled import CompiledDistributions
from pipeline.decoding.ensemble import as_ensemble
from pipeline.decoding.test_set import Sentence, padded
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.corpus.binarised import (
    load_dictionary,
    write_dictionaries,
    write_split,
)
from pipeline.fairseq_bridge.members.member import FairseqMember
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.fairseq_bridge.models.weights import load_weights
from pipeline.fairseq_bridge.training.job import TrainJob
from pipeline.fairseq_bridge.training.trainer import train_member
from pipeline.run.settings import CONF, ROOT, DecodeConfig
from pipeline.store.statistics import DISTRIBUTION_STATISTICS, n_columns
from tests.bench.measurement import Measurement

BATCH, BEAM, VOCAB_SIZE, UPDATES = 64, 5, 4000, 120
# Noise added to one trained model to obtain members, in standard deviations of each weight matrix.
NOISE = 0.02
MODEL_SETTINGS: dict[str, Any] = OmegaConf.to_container(  # type: ignore[assignment]
    OmegaConf.load(CONF / "model" / "transformer_tiny.yaml").settings  # type: ignore[union-attr]
)
PEAK = """
import sys
from pathlib import Path
from tests.bench.decode import decode_many
decode_many(int(sys.argv[1]), Path(sys.argv[2]))
# ru_maxrss includes the memory of the parent at the start of a process; VmHWM does not.
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) / 2**10)
"""


def measure() -> list[Measurement]:
    """Measure the speed relative to fairseq, the cost of the statistics, and peak memory."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        dictionary, models = trained_models(Path(name), 10)
    batch = sentences(BATCH)
    measurements = []
    for n_member, target in ((5, ">= 1.8"), (10, ">= 2")):
        measurements += _compared_with_fairseq(models[:n_member], dictionary, batch, target)
    measurements.append(_statistics_cost(models[:5], batch))
    wide, wide_models = random_models(40_000, 5)
    measurements.append(_statistics_cost(wide_models, sentences(8, len(wide))))
    return [*measurements, *_memory()]


def trained_models(folder: Path, n_member: int) -> tuple[Any, list[Any]]:
    """Return noisy copies of a briefly trained model, so that hypotheses end like text."""
    words = [f"w{place}" for place in range(VOCAB_SIZE - 4)]
    chooser = random.Random(0)
    write_dictionaries(folder, ("en", "de"), dict.fromkeys(words, 1))
    for split, size in (("train", 4000), ("valid", 20)):
        side = [_zipf_words(words, chooser) for _ in range(size)]
        write_split(folder, split, ("en", "de"), (side, [words[::-1] for words in side]))
    out = folder / "member"
    out.mkdir()
    train = OmegaConf.to_container(OmegaConf.load(CONF / "train" / "default.yaml"))
    assert isinstance(train, dict)
    short = dict.fromkeys(("updates", "checkpoint_interval_updates"), UPDATES)
    train |= short | {"average_last": 1, "warmup_updates": 30, "validate_interval_updates": UPDATES}
    model = {"architecture": "transformer", "settings": MODEL_SETTINGS}
    train_member(TrainJob("bench", folder, out, folder / "resume", 1, "en", "de", model, train))
    dictionary = load_dictionary(folder / "dict.en.txt")
    models = _built(dictionary, n_member)
    for seed, model in enumerate(models):
        load_weights(model, out / "average.safetensors")
        torch.manual_seed(seed)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight += NOISE * weight.std() * torch.randn_like(weight)
    return dictionary, models


def random_models(vocab_size: int, n_member: int) -> tuple[Any, list[Any]]:
    """Return untrained members."""
    dictionary = import_fairseq("fairseq.data").Dictionary()
    for place in range(vocab_size - 4):
        dictionary.add_symbol(f"w{place}")
    return dictionary, _built(dictionary, n_member)


def sentences(count: int, vocab_size: int = VOCAB_SIZE) -> list[Sentence]:
    """Return source sentences of 8 to 16 words."""
    chooser = random.Random(1)
    identities = [str(place) for place in range(4, vocab_size)]
    return [
        Sentence(place, [*map(int, _zipf_words(identities, chooser)), 2], None)
        for place in range(count)
    ]


def decode_many(count: int, path: Path) -> None:
    """Decode `count` short sentences into a store, as the decode stage does."""
    from pipeline.decoding.blocks import Decoder
    from pipeline.decoding.test_set import read_test_set
    from pipeline.decoding.tokenizer import SubwordTokenizer
    from pipeline.run.settings import DumpConfig
    from tests.decode_to_store import decode_to_store

    torch.set_num_threads(1)
    dictionary, models = random_models(300, 2)
    model = as_ensemble([FairseqMember(model) for model in models])
    chooser = random.Random(2)
    prepared = path.with_suffix(".jsonl")
    unknown = ("reference", "reference_pieces", "group", "original")
    fields = {"source": "source", **dict.fromkeys(unknown)}
    with prepared.open("w", encoding="utf-8") as file:
        for place in range(count):
            pieces = _zipf_words(dictionary.symbols[4:], chooser)
            file.write(json.dumps({"id": place, "source_pieces": pieces, **fields}) + "\n")
    attributes: dict[str, Any] = {
        "regime": "beam", "combination": "prex", "n_member": 2, "vocab_size": len(dictionary),
    }  # fmt: skip
    dump = DumpConfig("statistics", "statistics", "float32", 1)
    settings = config(beam=2, max_length_offset=4)
    tokenizer = SubwordTokenizer(dictionary, dictionary, detokenise)
    decoder = Decoder(tokenizer, model, beam_search, settings, dump)
    blocks = path.with_suffix(".blocks")
    decode_to_store(decoder, read_test_set(prepared), path, attributes, "bench", blocks)


def _compared_with_fairseq(
    models: Sequence[Any], dictionary: Any, batch: list[Sentence], target: str
) -> list[Measurement]:
    # fairseq's generator modifies the attention modules of its models.
    generator = import_fairseq("fairseq.sequence_generator").SequenceGenerator(
        copy.deepcopy(list(models)), dictionary, beam_size=BEAM, max_len_a=0, max_len_b=40
    )
    source = padded([sentence.source for sentence in batch], dictionary.pad())
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(dim=1)}}
    ours = _search(models, batch)
    expected = [best[0]["tokens"].tolist() for best in generator.generate([], sample)]
    found = [best[0].token_id.tolist() for best in ours()]
    assert found == expected, "both must find the same hypotheses"
    theirs_seconds, ours_seconds = _cpu_seconds(lambda: generator.generate([], sample), ours)
    n_token = sum(len(hypothesis.token_id) for n_best in ours() for hypothesis in n_best)
    shape = f"M={len(models)} beam {BEAM} batch {BATCH} K={len(dictionary)}"
    return [
        Measurement(f"tokens/s with statistics, {shape}", n_token / ours_seconds, "tokens/s"),
        Measurement(f"ratio to fairseq, {shape}", theirs_seconds / ours_seconds, "x", target),
    ]


def _statistics_cost(models: Sequence[Any], batch: list[Sentence]) -> Measurement:
    search = _search(models, batch)
    columns = n_columns(len(models), DISTRIBUTION_STATISTICS)

    def without() -> object:
        def nothing(_self: object, row: torch.Tensor, _prefix: object) -> object:
            return np.zeros((len(row), columns), np.float32)

        with mock.patch.object(CompiledDistributions, "statistics", nothing):
            return search()

    search()
    bare, whole = _cpu_seconds(without, search)
    vocab_size = models[0].decoder.output_projection.weight.shape[0]
    name = f"time with statistics / without, M={len(models)} K={vocab_size}"
    return Measurement(name, whole / bare, "x", "<= 1.25")


def _cpu_seconds(*ways: Callable[[], object]) -> list[float]:
    """Return the median CPU seconds of each implementation, alternating, in this thread."""
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(5):
        for way, taken in zip(ways, seconds, strict=True):
            start = time.process_time()
            way()
            taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in seconds]


def _memory() -> list[Measurement]:
    counts, peaks = (5_000, 20_000), []
    with TemporaryDirectory() as name:
        for count in counts:
            command = [sys.executable, "-c", PEAK, str(count), f"{name}/{count}.h5"]
            run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            peaks.append(float(run.stdout.split()[-1]))
    growth_bytes = (peaks[1] - peaks[0]) * 2**20 / (counts[1] - counts[0])
    return [
        *(
            Measurement(f"peak memory, {count:,} short sentences", peak, "MiB")
            for count, peak in zip(counts, peaks, strict=True)
        ),
        Measurement("peak memory, 20,000 / 5,000", peaks[1] / peaks[0], "x", "<= 1.02"),
        Measurement("growth of the peak per sentence", growth_bytes, "bytes"),
    ]


def _search(models: Sequence[Any], batch: list[Sentence]) -> Callable[[], Any]:
    ensemble = as_ensemble([FairseqMember(model) for model in models])
    settings = config(beam=BEAM, max_length_offset=40)
    return lambda: beam_search(ensemble, batch, "prex", settings)


def config(**settings: Any) -> Any:
    """The default search with these settings."""
    beam = OmegaConf.load(CONF / "decode" / "beam.yaml")
    return OmegaConf.merge(
        OmegaConf.structured(DecodeConfig), beam, {"max_length_ratio": 0.0}, settings
    )


def _built(dictionary: Any, n_member: int) -> list[Any]:
    configuration = model_configuration("transformer", MODEL_SETTINGS)
    return [build_model(configuration, dictionary, dictionary).eval() for _ in range(n_member)]


def _zipf_words(words: Sequence[str], chooser: random.Random) -> list[str]:
    return [words[int(len(words) ** chooser.random()) - 1] for _ in range(chooser.randint(8, 16))]
