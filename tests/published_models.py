"""A folder like those in which fairseq publishes translation models, with tiny random models."""

from __future__ import annotations

import io
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sacremoses import MosesTokenizer
from subword_nmt.learn_bpe import learn_bpe

from pipeline.data.subwords import MosesBpeModel
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration

SIDE = {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2}
CHECKPOINTS = ("wmt18.model1.pt", "wmt18.model2.pt", "wmt18.model3.pt")
_PADDED_TO = 8
# The parsed command line of fairseq, and the configuration that newer versions make of it.
_ARGUMENTS = {
    "arch": "transformer_wmt_en_de_big",
    "task": "translation",
    "source_lang": "en",
    "target_lang": "de",
    "share_all_embeddings": True,
    "dropout": 0.3,
    "seed": 1,
    **{
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in SIDE.items()
    },
}  # fmt: skip


def publish(folder: Path, texts: Sequence[str], languages: tuple[str, str]) -> None:
    """Write BPE codes and a joint dictionary of `texts`, and three checkpoints in three formats."""
    folder.mkdir(parents=True)
    _write_codes(folder / "bpecodes", texts)
    subword_model = MosesBpeModel(folder / "bpecodes", languages[0])
    counts = Counter(subword for text in texts for subword in subword_model.subwords(text))
    lines = [f"{subword} {count}" for subword, count in counts.most_common()]
    padding = -(len(lines) + 4) % _PADDED_TO
    lines += [f"madeupword{index:04d} 0" for index in range(padding)]
    for language in languages:
        path = folder / f"dict.{language}.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    dictionary = load_dictionary(folder / f"dict.{languages[1]}.txt")
    settings = {"encoder": SIDE, "decoder": SIDE, "share_all_embeddings": True}
    for index, name in enumerate(CHECKPOINTS):
        torch.manual_seed(index)
        configuration = model_configuration("transformer", settings)
        weights = build_model(configuration, dictionary, dictionary).state_dict()
        torch.save(_checkpoint(weights, index), folder / name)


def _write_codes(path: Path, texts: Sequence[str]) -> None:
    tokeniser = MosesTokenizer("en")
    tokens = [
        tokeniser.tokenize(text, aggressive_dash_splits=True, return_str=True) for text in texts
    ]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        learn_bpe(io.StringIO("\n".join(tokens)), file, 40, min_frequency=1)


def _checkpoint(weights: dict[str, Any], index: int) -> dict[str, Any]:
    """Return a checkpoint in the oldest form, with arguments, or with a configuration."""
    state: dict[str, Any] = {
        "args": Namespace(**_ARGUMENTS),
        "model": _as_before_attention_was_split(weights) if index == 0 else weights,
        "optimizer_history": [{"num_updates": 40, "criterion_name": "Criterion"}],
        "extra_state": {"epoch": 2},
        "last_optimizer_state": None,
    }
    if index == 2:
        cfg = {"_name": _ARGUMENTS["arch"], **_ARGUMENTS}
        task = {"source_lang": "en", "target_lang": "de"}
        state |= {"args": None, "cfg": {"model": Namespace(**cfg), "task": task, "common": {}}}
    return state


def _as_before_attention_was_split(weights: dict[str, Any]) -> dict[str, Any]:
    """Return weights with queries, keys and values in one matrix, as in fairseq until 2019."""
    merged = dict(weights)
    for name in [name for name in weights if ".q_proj." in name]:
        matrices = [merged.pop(name.replace(".q_proj.", f".{letter}_proj.")) for letter in "qkv"]
        merged[name.replace(".q_proj.", ".in_proj_")] = torch.cat(matrices)
    return merged
