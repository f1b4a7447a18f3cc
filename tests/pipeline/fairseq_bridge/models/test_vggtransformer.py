"""The VGG-Transformer equals fairseq's and depends neither on padding nor on the batch."""

from __future__ import annotations

import argparse
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from pipeline.errors import ConfigError, DataError
from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.member import SpeechMember
from pipeline.fairseq_bridge.models.configuration import build_model, model_configuration
from pipeline.fairseq_bridge.models.weights import load_weights, save_weights
from pipeline.run.settings import CONF

BINS = 6
SETTINGS = {
    "input_feat_per_channel": BINS,
    "in_channels": 3,
    "position_rows": 4,
    "vggblock_enc_config": "[(4, 3, 2, 1, False), (8, 3, 2, 2, True)]",
    "transformer_enc_config": "((16, 2, 16, True, 0.1, 0.1, 0.1),) * 2",
    "enc_output_dim": 12,
    "tgt_embed_dim": 8,
    "conv_dec_config": "((16, 3, True),) * 2",
    "transformer_dec_config": "((12, 2, 16, True, 0.1, 0.1, 0.1),) * 2",
}
# Without our own settings, and with no two equal values that a mistake could exchange.
THEIRS = {
    "input_feat_per_channel": BINS,
    "in_channels": 1,
    "vggblock_enc_config": "[(4, 3, 2, 1, False), (8, 3, 2, 2, True)]",
    "transformer_enc_config": "((12, 2, 20, True, 0.1, 0.2, 0.3), (16, 4, 24, False, 0.3, 0.1, 0))",
    "enc_output_dim": 12,
    "tgt_embed_dim": 8,
    "conv_dec_config": "((16, 3, True), (10, 2, False))",
    "transformer_dec_config": "((12, 2, 28, False, 0.2, 0.3, 0.1), (12, 3, 16, True, 0.1, 0.3, 0))",
}
PREFIX = torch.tensor([[2, 9, 10, 5], [2, 11, 12, 7], [2, 4, 4, 4]])
LENGTHS = (1, 13, 24, 50)


@pytest.fixture(scope="module")
def dictionary() -> Any:
    vocabulary = import_fairseq("fairseq.data").Dictionary()
    for word in range(20):
        vocabulary.add_symbol(f"▁w{word}")
    return vocabulary


@pytest.fixture(scope="session")
def theirs() -> Any:
    """Import fairseq's own model. Its examples import each other under the name `examples`."""
    package = types.ModuleType("examples")
    package.__path__ = [str(Path(str(import_fairseq().__file__)).parent / "examples")]
    sys.modules["examples"] = package
    try:
        return import_fairseq("examples.speech_recognition.models.vggtransformer")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "examples"]:
            del sys.modules[name]


def _model(dictionary: Any, **settings: Any) -> Any:
    torch.manual_seed(1)
    configuration = model_configuration("vggtransformer", SETTINGS | settings)
    return build_model(configuration, None, dictionary).eval()


@pytest.fixture(scope="module")
def member(dictionary: Any) -> SpeechMember:
    return SpeechMember(_model(dictionary))


def _utterances(lengths: tuple[int, ...]) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(length, BINS, generator=generator) for length in lengths]


def _batch(utterances: list[torch.Tensor]) -> torch.Tensor:
    pad = torch.nn.utils.rnn.pad_sequence
    return pad(utterances, batch_first=True, padding_value=torch.nan)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*mismatched key_padding_mask")
def test_without_own_settings_it_is_the_model_of_fairseq_bit_by_bit(
    dictionary: Any, theirs: Any
) -> None:
    ours = _model(dictionary, **THEIRS, position_rows=0)
    arguments = argparse.Namespace(**THEIRS)
    task = types.SimpleNamespace(target_dictionary=dictionary)
    torch.manual_seed(1)
    decoder = theirs.VGGTransformerModel.build_decoder(arguments, task)
    encoder = theirs.VGGTransformerModel.build_encoder(arguments, task)
    models = (ours, theirs.VGGTransformerModel(encoder, decoder))
    assert list(ours.state_dict()) == list(models[1].state_dict())
    assert_equal(*(model.state_dict().values() for model in models))

    sources, lengths = torch.stack(_utterances((30, 30, 30))), torch.tensor([30, 30, 30])
    prefix = torch.tensor([[2, 9, 10, 5], [2, 11, 12, 1], [2, 4, 1, 1]])
    logits, gradients, steps = [], [], []
    for model in models:
        model.train()
        torch.manual_seed(2)  # of dropout
        logits.append(model(sources, lengths, prefix)[0])
        logits[-1].logsumexp(dim=-1).sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
        model.eval()
        with torch.inference_mode():
            encoded, state = model.encoder(sources, lengths), {}
            steps.append(
                [model.decoder(prefix[:, :length], encoded, state)[0] for length in (1, 2, 3, 4)]
            )
    assert_equal(*([tensor] for tensor in logits))
    assert_equal(*gradients)
    assert_equal(*steps)


def assert_equal(ours: Iterable[torch.Tensor], theirs: Iterable[torch.Tensor]) -> None:
    assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))


def test_vggtransformer_2_has_the_settings_of_fairseq(theirs: Any) -> None:
    arguments = argparse.Namespace()
    theirs.vggtransformer_2(arguments)
    theirs.base_architecture(arguments)
    del arguments.transformer_context  # a setting of another model
    ours = yaml.safe_load((CONF / "model" / "vggtransformer_2.yaml").read_text())["settings"]
    assert {name: ours[name] for name in vars(arguments)} == vars(arguments)
    assert model_configuration("vggtransformer", {})["position_rows"] == ours["position_rows"] == 0


def test_case_5_the_encoder_ignores_padding(member: SpeechMember) -> None:
    utterances = _utterances(LENGTHS)
    batch = torch.nn.utils.rnn.pad_sequence(utterances, batch_first=True, padding_value=100.0)
    with torch.inference_mode():
        together = member.model.encoder(batch, torch.tensor(LENGTHS))["encoder_out"]
        for place, utterance in enumerate(utterances):
            alone = member.encoded(utterance[None])["encoder_out"][:, 0]
            torch.testing.assert_close(
                together[: len(alone), place], alone, atol=1e-5, rtol=0, check_stride=False
            )
            assert len(alone) == -(-len(utterance) // 12)


def test_case_5_scores_in_a_batch_of_64_equal_scores_alone(member: SpeechMember) -> None:
    utterances = _utterances(tuple(range(3, 67)))
    prefix = PREFIX[:1].expand(64, -1)
    together = list(member.force(_batch(utterances), prefix, [4] * 64))
    for place in range(0, 64, 9):
        (alone,) = member.force(utterances[place][None], prefix[:1], [4])
        torch.testing.assert_close(together[place], alone, atol=1e-5, rtol=0)


def test_steps_equal_teacher_forcing(member: SpeechMember) -> None:
    source = _batch(_utterances(LENGTHS[:3]))
    whole = list(member.force(source, PREFIX, [4, 3, 2]))
    assert [tuple(logits.shape) for logits in whole] == [(4, 24), (3, 24), (2, 24)]
    state = member.encode(source)
    for place in range(4):
        step = member.step(state, PREFIX[:, : place + 1])
        for sentence in range(3):
            if place < len(whole[sentence]):
                torch.testing.assert_close(
                    step[sentence], whole[sentence][place], atol=1e-5, rtol=0
                )


def test_reordered_rows_continue_their_new_prefixes(member: SpeechMember) -> None:
    source = _batch(_utterances(LENGTHS[:3]))
    state = member.encode(source)
    member.step(state, torch.tensor([[2]] * 3))
    state = member.reorder(state, torch.tensor([0, 0, 1, 1, 2, 2]), 2)
    second = [[2, 9], [2, 11], [2, 4], [2, 5], [2, 6], [2, 7]]
    member.step(state, torch.tensor(second))
    state = member.reorder(state, torch.tensor([3, 2, 5, 5]), 2)  # the first sentence has finished
    prefix = torch.tensor([[2, 5, 9], [2, 4, 9], [2, 7, 8], [2, 7, 4]])
    step = member.step(state, prefix)
    whole = list(member.force(source[[1, 1, 2, 2]], prefix, [3] * 4))
    torch.testing.assert_close(
        step, torch.stack([logits[-1] for logits in whole]), atol=1e-5, rtol=0
    )


def test_weights_survive_a_safetensors_file(dictionary: Any, tmp_path: Path) -> None:
    model, path = _model(dictionary), tmp_path / "average.safetensors"
    save_weights(model.state_dict(), path)
    torch.manual_seed(2)
    again = build_model(model_configuration("vggtransformer", SETTINGS), None, dictionary)
    load_weights(again, path)
    for tensor, loaded in zip(
        model.state_dict().values(), again.state_dict().values(), strict=True
    ):
        assert torch.equal(tensor, loaded)


def test_frames_with_another_number_of_bins_are_rejected(member: SpeechMember) -> None:
    with pytest.raises(DataError, match=r"expects features with 6 bins \(got 7"):
        member.encode(torch.zeros(1, 4, 7))


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("conv_dec_config", "((16, 0, True),)", "kernels must be at least 1"),
        ("conv_dec_config", "()", "at least one tuple of 3 values"),
        ("vggblock_enc_config", "[(4, 3, (2, 2), 1, False)]", "pooling must be an integer"),
        ("transformer_enc_config", "__import__('os').abort()", "at least one tuple of 7"),
        ("transformer_enc_config", "((16, 3, 16, True, 0.1, 0.1, 0.1),)", r"heads \(got 16 and 3"),
        ("transformer_dec_config", "((12, 0, 16, True, 0.1, 0.1, 0.1),)", r"\(got 12 and 0"),
        ("enc_output_dim", 16, r"width of the decoder's layers, 12 \(got 16"),
        ("position_rows", 3, r"even number >= 0 \(got 3"),
    ],
)
def test_invalid_settings_are_rejected(
    dictionary: Any, setting: str, value: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=rf"model\.settings\.{setting}: .*{message}"):
        _model(dictionary, **{setting: value})
