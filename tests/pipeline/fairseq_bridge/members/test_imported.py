from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hydra.core.global_hydra import GlobalHydra
from safetensors.torch import load_file

from pipeline.ensembles.imported import imported_member
from pipeline.errors import DataError
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.members.imported import convert_checkpoint
from pipeline.fairseq_bridge.members.member import FairseqMember, load_member
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration

SOURCE = torch.tensor([[5, 6, 7, 2]])
PREFIX = torch.tensor([[2, 9, 10]])
SIDE = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}
# The arguments that fairseq's parser makes of a command line for this model.
ARGUMENTS = {
    "arch": "transformer_wmt_en_de",
    "seed": 7,
    "source_lang": "en",
    "target_lang": "de",
    **{
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in SIDE.items()
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine: a=b, 日本")
    for language in ("en", "de"):
        words = "".join(f"w{index}@@ 1\n" for index in range(20))
        (folder / f"dict.{language}.txt").write_text(words, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    dictionary = load_dictionary(folder / "dict.de.txt")
    torch.manual_seed(1)
    configuration = model_configuration("transformer", {"encoder": SIDE, "decoder": SIDE})
    return build_model(configuration, dictionary, dictionary).eval()


def save(folder: Path, model: Any, /, **changes: Any) -> Path:
    path = folder / "checkpoint best=1.pt"
    state = {
        "args": Namespace(**ARGUMENTS),
        "model": model.state_dict(),
        "optimizer_history": [{"num_updates": 60, "lr_scheduler_state": {"best": 2.5}}],
        "extra_state": {"val_loss": np.float64(3.25)},
    }
    torch.save(state | changes, path)
    return path


def converted(folder: Path, path: Path) -> dict[str, Any]:
    dictionaries = folder / "dict.en.txt", folder / "dict.de.txt"
    return convert_checkpoint(path, *dictionaries, folder / "weights.safetensors")


def same_as(folder: Path, description: dict[str, Any], model: Any) -> bool:
    dictionary = load_dictionary(folder / "dict.de.txt")
    loaded = load_member(
        description["model"], folder / "weights.safetensors", dictionary, dictionary
    )
    logits, expected = (
        torch.cat(list(member.force(SOURCE, PREFIX, [3])))
        for member in (loaded, FairseqMember(model))
    )
    return torch.equal(logits, expected)


def test_a_checkpoint_with_arguments_gives_the_same_model(folder: Path, model: Any) -> None:
    state_before = GlobalHydra.instance().hydra
    description = converted(folder, save(folder, model))
    assert same_as(folder, description, model)
    assert description["architecture"] == "transformer_wmt_en_de"
    assert (description["seed"], description["updates"]) == (7, 60)
    assert (description["source_language"], description["target_language"]) == ("en", "de")
    assert GlobalHydra.instance().hydra is state_before


def test_a_checkpoint_with_a_configuration_gives_the_same_model(folder: Path, model: Any) -> None:
    flat = {"_name": "transformer_wmt_en_de", **ARGUMENTS}
    nested = {"_name": "transformer", "encoder": SIDE, "decoder": SIDE}
    for settings in (Namespace(**flat), flat, nested):
        cfg = {"model": settings, "common": {"seed": 5}, "task": {"source_lang": "en"}}
        description = converted(folder, save(folder, model, args=None, cfg=cfg))
        assert same_as(folder, description, model)
        assert (description["seed"], description["target_language"]) == (5, None)


def test_half_precision_weights_are_stored_in_single_precision(folder: Path, model: Any) -> None:
    half = {name: value.half() for name, value in model.state_dict().items()}
    converted(folder, save(folder, model, model=half))
    weights = load_file(folder / "weights.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float32}


def test_weights_that_are_not_finite_name_the_member_and_the_users_file(
    folder: Path, model: Any, tmp_path: Path
) -> None:
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    weights["decoder.layers.0.fc1.bias"][0] = np.nan
    path = save(folder, model, model=weights)
    with pytest.raises(DataError) as error:
        imported_member(
            "imported_2", path, (folder / "dict.en.txt", folder / "dict.de.txt"), tmp_path
        )
    assert str(error.value).startswith(
        f"member imported_2: {path}: decoder.layers.0.fc1.bias must be finite (got NaN or infinity)"
    )


def test_member_knows_the_users_file(folder: Path, model: Any, tmp_path: Path) -> None:
    path = save(folder, model)
    dictionaries = folder / "dict.en.txt", folder / "dict.de.txt"
    assert imported_member("imported_1", path, dictionaries, tmp_path).given == path


def test_shared_embeddings_of_two_vocabularies_are_rejected(folder: Path, model: Any) -> None:
    other = folder / "dict.fr.txt"
    other.write_text("".join(f"v{index} 1\n" for index in range(20)), encoding="utf-8")
    path = save(folder, model, args=Namespace(**ARGUMENTS, share_all_embeddings=True))
    with pytest.raises(DataError, match=r"best=1\.pt: does not fit its dictionaries .*joined dict"):
        convert_checkpoint(path, folder / "dict.en.txt", other, folder / "weights.safetensors")


class Malicious:
    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.target),)

    def __init__(self, target: Path) -> None:
        self.target = target


def test_code_in_a_checkpoint_is_rejected_and_not_run(folder: Path, model: Any) -> None:
    path = save(folder, model, extra_state=Malicious(folder / "made"))
    with pytest.raises(DataError, match=r"best=1\.pt: only tensors, .*got objects of .*mkdir"):
        converted(folder, path)
    assert not (folder / "made").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"args": None}, r"no settings of its model \(args or cfg\)"),
        ({"args": Namespace(arch="lstm")}, "transformers can be imported .got lstm"),
        ({"args": Namespace(arch="nothing")}, "got nothing"),
        ({"model": None}, "a fairseq checkpoint without a model"),
        ({"model": {}}, "weights do not fit its own model"),
        ({"args": Namespace(**ARGUMENTS | {"encoder_layers": "two"})}, "settings of a transformer"),
        (
            {"model": {"decoder.embed_tokens.weight": torch.zeros(30, 8)}},
            r"trained with 30 vocabulary entries, but .*dict\.de\.txt has 24",
        ),
        (
            {"model": {"encoder.embed_tokens.weight": torch.zeros(25, 8)}},
            r"trained with 25 vocabulary entries, but .*dict\.en\.txt has 24",
        ),
    ],
)
def test_other_checkpoints_are_rejected(
    folder: Path, model: Any, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        converted(folder, save(folder, model, **changes))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"PK", b"not a checkpoint at all"),
        # Pickles that pop from an empty stack, refer to a missing memo entry, and are truncated.
        *(b"\x80\x02a.", b"\x80\x02h\x05.", b"\x80\x02X\x05"),
    ],
)
def test_a_damaged_file_is_rejected(folder: Path, content: bytes) -> None:
    path = folder / "damaged.pt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged\.pt: damaged or"):
        converted(folder, path)


def test_a_truncated_file_is_rejected(folder: Path, model: Any) -> None:
    path = save(folder, model)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=r"best=1\.pt: damaged or"):
        converted(folder, path)
