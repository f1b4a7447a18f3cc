from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.errors import ConfigError
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.store import open_store
from stages.decode import decode
from tests.stages.trained_members import (
    decoded_store,
    settings,
)

ENSEMBLES = {
    "random_init": ("random_init", ["seed_1", "seed_2"], []),
    "checkpoint": (
        "checkpoint.seed_2",
        ["seed_2.update_00000020", "seed_2.update_00000040", "seed_2.update_00000060"],
        [],
    ),
    "checkpoint_average": ("checkpoint_average.seed_1", ["seed_1"], []),
    "mc_dropout": (
        "mc_dropout",
        ["mc_dropout_1", "mc_dropout_2"],
        ["ensemble.settings.members=2"],
    ),
    "snapshot": (
        "snapshot.seed_1",
        ["seed_1.update_00000020", "seed_1.update_00000040", "seed_1.update_00000060"],
        ["ensemble.settings.cycles=3"],
    ),
}


@pytest.mark.parametrize("kind", ENSEMBLES)
@pytest.mark.parametrize("regime", ["prex", "expr", "teacher_forcing"])
def test_every_kind_of_ensemble_decodes(root: Path, kind: str, regime: str) -> None:
    name, members, overrides = ENSEMBLES[kind]
    part = f"{name}.{regime}.help"
    with open_store(
        decoded_store(root, part, f"ensemble={kind}", "decode.self_check=true", *overrides)
    ) as store:
        assert (store.attributes["ensemble"], store.members) == (kind, members)
        logprob = store.read("/token/logprob")
        assert len({tuple(column) for column in logprob.T}) == len(members)


@pytest.mark.parametrize("own_dictionary", [False, True])
def test_imported_models_decode(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any, own_dictionary: bool
) -> None:
    monkeypatch.chdir(root)
    folder = Path("mine: a=b, 日本")
    folder.mkdir(exist_ok=True)
    prepared = root / "prepare" / "nmt_ende" / "fairseq" / "dict.de.txt"
    words = prepared.read_text(encoding="utf-8").splitlines(keepends=True)
    path = folder / "dict=.txt"
    path.write_text("".join(words[:3] if own_dictionary else words), encoding="utf-8")
    dictionary = load_dictionary(path)
    side = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
    configuration = model_configuration("transformer", {"encoder": side, "decoder": side})
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = build_model(configuration, dictionary, dictionary).state_dict()
        cfg = {"model": {"_name": "transformer", "encoder": side, "decoder": side}}
        torch.save({"args": None, "cfg": cfg, "model": model}, folder / f"lr=0.{seed}.pt")
    overrides = [
        "ensemble=imported",
        "ensemble.seeds=[]",
        f"ensemble.settings.checkpoints=['{folder}/lr=0.1.pt','{folder}/lr=0.2.pt']",
        f"ensemble.settings.source_dictionary='{path}'",
        f"ensemble.settings.target_dictionary='{path}'",
    ]
    caplog.set_level(logging.INFO)
    with open_store(decoded_store(root, "imported.prex.help", *overrides)) as store:
        assert store.members == ["imported_1", "imported_2"]
        assert store.n_hypothesis == 4 * 2
    source, target = (7, 2) if own_dictionary else (0, 0)
    unknown = f"{source} of 10 source subwords and {target} of 5 reference subwords"
    assert f"not in the vocabularies: {unknown}" in caplog.text


def test_missing_imported_models_are_named(root: Path) -> None:
    overrides = ["part=imported.prex.debian-reference", "ensemble=imported", "ensemble.seeds=[]"]
    with pytest.raises(ConfigError, match=r"settings\.checkpoints .*at least one \(got \[\]\)"):
        decode(settings(root, *overrides))
    with pytest.raises(ConfigError, match=r"settings\.checkpoints .*no such file \(got a=\.pt\)"):
        decode(settings(root, *overrides, "ensemble.settings.checkpoints=['a=.pt']"))
