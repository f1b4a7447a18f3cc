from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from pipeline.errors import DataError
from pipeline.fairseq_bridge.corpus.binarised import load_dictionary
from pipeline.fairseq_bridge.members.member import FairseqMember, load_member
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.fairseq_bridge.models.weights import load_weights, save_weights

SIDE = {"embed_dim": 8, "ffn_embed_dim": 8, "layers": 1, "attention_heads": 2}


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return model_configuration(
        "transformer", {"encoder": SIDE, "decoder": SIDE, "share_all_embeddings": True}
    )


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("fairseq") / "dict.en.txt"
    path.write_text("".join(f"▁w{index} 1\n" for index in range(20)), encoding="utf-8")
    return load_dictionary(path)


@pytest.fixture
def model(configuration: dict[str, Any], dictionary: Any) -> Any:
    torch.manual_seed(1)
    return build_model(configuration, dictionary, dictionary).eval()


@pytest.fixture
def tensors(model: Any) -> dict[str, torch.Tensor]:
    state = model.state_dict()
    tied = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")
    return {name: value.clone() for name, value in state.items() if name not in tied}


SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 1, 1]])
PREFIX = torch.tensor([[2, 9, 10], [2, 11, 12]])


def test_steps_equal_teacher_forcing(model: Any) -> None:
    member = FairseqMember(model)
    whole = list(member.force(SOURCE, PREFIX, [3, 2]))
    assert [tuple(logits.shape) for logits in whole] == [(3, 24), (2, 24)]
    state = member.encode(SOURCE)
    for place in range(2):
        step = member.step(state, PREFIX[:, : place + 1])
        for sentence in range(2):
            torch.testing.assert_close(step[sentence], whole[sentence][place])


def test_reordered_rows_continue_their_new_prefixes(model: Any) -> None:
    member = FairseqMember(model)
    state = member.encode(SOURCE)
    member.step(state, torch.tensor([[2]] * 2))
    state = member.reorder(state, torch.tensor([0, 0, 1, 1]), 2)
    member.step(state, torch.tensor([[2, 9], [2, 11], [2, 9], [2, 11]]))
    state = member.reorder(state, torch.tensor([3, 3]), 2)  # the first sentence has finished
    step = member.step(state, torch.tensor([[2, 11, 9], [2, 11, 12]]))
    whole = list(member.force(SOURCE[[1, 1]], torch.tensor([[2, 11, 9], [2, 11, 12]]), [3, 3]))
    torch.testing.assert_close(step, torch.stack([logits[-1] for logits in whole]))


def test_rows_are_expanded_after_a_sentence_has_finished(model: Any) -> None:
    member = FairseqMember(model)
    state = member.encode(SOURCE)
    member.step(state, torch.tensor([[2]] * 2))
    state = member.reorder(state, torch.tensor([1, 1]), 2)
    step = member.step(state, torch.tensor([[2, 11], [2, 12]]))
    whole = list(member.force(SOURCE[[1, 1]], torch.tensor([[2, 11], [2, 12]]), [2, 2]))
    torch.testing.assert_close(step, torch.stack([logits[-1] for logits in whole]))


def test_tied_tensors_that_were_saved_once_are_restored(
    model: Any, configuration: dict[str, Any], dictionary: Any, tmp_path: Path
) -> None:
    path = tmp_path / "average.safetensors"
    save_weights(model.state_dict(), path)
    loaded = load_member(configuration, path, dictionary, dictionary)
    original = FairseqMember(model)
    for logits, expected in zip(
        loaded.force(SOURCE, PREFIX, [3, 3]), original.force(SOURCE, PREFIX, [3, 3]), strict=True
    ):
        assert torch.equal(logits, expected)


def test_weights_that_do_not_fit_are_rejected(
    model: Any, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    path, name = tmp_path / "average.safetensors", "decoder.layers.0.fc1.weight"
    changes: list[tuple[dict[str, torch.Tensor | None], str]] = [
        ({name: None}, rf"missing \[{name}\]"),
        ({"more": torch.zeros(1)}, r"unknown \[more\]"),
        ({name: torch.zeros(3)}, "must have shape"),
        ({name: torch.full((8, 8), torch.nan)}, f"{name} must be finite"),
    ]
    for change, message in changes:
        changed = {key: value for key, value in (tensors | change).items() if value is not None}
        save_file(changed, path)
        with pytest.raises(DataError, match=message):
            load_weights(model, path)
    path.write_bytes(b"")
    with pytest.raises(DataError, match="damaged safetensors file"):
        load_weights(model, path)


def test_half_precision_weights_are_loaded_in_single_precision(
    model: Any, tensors: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    path = tmp_path / "average.safetensors"
    save_file({name: value.half() for name, value in tensors.items()}, path)
    load_weights(model, path)
    assert model.decoder.embed_tokens.weight.dtype == torch.float32
