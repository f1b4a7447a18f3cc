"""fairseq transformers of one architecture as one model, with weights stacked by member."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.fairseq_bridge import import_fairseq

if TYPE_CHECKING:
    from pipeline.fairseq_bridge.members.member import FairseqMember

# Optional modules of a fairseq layer that the original transformer lacks; None if unused.
_EXTRAS = ("c_attn", "attn_ln", "ffn_layernorm", "w_resid")


def can_stack(members: Sequence[FairseqMember]) -> bool:
    """Whether the decoders are plain transformers that differ only in their weights."""
    transformer = import_fairseq("fairseq.models.transformer")
    model_types = (transformer.TransformerModel, transformer.TransformerModelBase)
    models = [member.model for member in members]
    return (
        all(type(model) in model_types for model in models)
        and all(model.decoder.cfg == models[0].decoder.cfg for model in models)
        and _is_plain(models[0].decoder)
    )


def _is_plain(decoder: Any) -> bool:
    if decoder.cfg.base_layers or decoder.cfg.cross_self_attention:
        return False
    attentions = [
        attention for layer in decoder.layers for attention in (layer.self_attn, layer.encoder_attn)
    ]
    return (
        decoder.adaptive_softmax is None
        and decoder.project_in_dim is None
        and decoder.project_out_dim is None
        and decoder.layernorm_embedding is None
        and all(getattr(layer, name) is None for layer in decoder.layers for name in _EXTRAS)
        and all(
            attention is not None and attention.bias_k is None and not attention.add_zero_attn
            for attention in attentions
        )
    )


class StackedTransformers:
    """An EnsembleModel whose decoders take each step together, for members that `can_stack`.

    Encoders run one after the other, once per sentence. Logits are the same as if the members ran
    one after the other, up to rounding.
    """

    def __init__(self, members: Sequence[FairseqMember]) -> None:
        self._members = list(members)
        decoders = [member.model.decoder for member in members]
        self._decoders = decoders
        self.n_member = len(members)
        self.vocab_size = members[0].vocab_size
        first = members[0]
        self.pad, self.eos, self.unk, self.start = first.pad, first.eos, first.unk, first.start
        self.suppressed = first.suppressed
        self.max_source_tokens = first.max_source_tokens
        self.max_target_tokens = first.max_target_tokens
        self.max_shared_tokens = first.max_shared_tokens
        with torch.inference_mode():
            self._embedding = [decoder.embed_tokens.weight for decoder in decoders]
            # A contiguous copy makes the largest matrix product faster.
            self._output = torch.stack(
                [decoder.output_projection.weight.t() for decoder in decoders]
            )
            self._layers = [
                _Layer([decoder.layers[depth] for decoder in decoders])
                for depth in range(len(decoders[0].layers))
            ]
            norms = [decoder.layer_norm for decoder in decoders]
            self._norm = None if norms[0] is None else _Norm(norms)
            self._logits = self._output.new_empty(0)

    @torch.inference_mode()
    def encode(self, source: Tensor) -> _State:
        """Initial state, one row per sentence, of source [sentence, token], padded on the right."""
        encoded = [member.encoded(source)["encoder_out"][0] for member in self._members]
        output = torch.stack([states.transpose(0, 1) for states in encoded])
        padding = source.eq(self._members[0].padding)
        mask = output.new_zeros(padding.shape).masked_fill(padding.to(output.device), -torch.inf)
        return _State(
            1,
            mask[:, None, None, :] if padding.any() else None,
            [layer.cross_keys_values(output) for layer in self._layers],
            [layer.new_cache(self.n_member, len(source)) for layer in self._layers],
        )

    @torch.inference_mode()
    def step(self, state: _State, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, member, vocab] after prefix [row, token]."""
        prefix = prefix.to(self._output.device)
        last = prefix[:, -1]
        x = torch.stack([embedding.index_select(0, last) for embedding in self._embedding])
        x *= self._decoders[0].embed_scale
        if self._decoders[0].embed_positions is not None:
            x += torch.stack(
                [
                    decoder.embed_positions(prefix[:1], incremental_state={})[:, -1]
                    for decoder in self._decoders
                ]
            )
        for layer, cross, cache in zip(self._layers, state.cross, state.cache, strict=True):
            x = layer(x, cross, state.mask, cache, state.beam)
        if self._norm is not None:
            x = self._norm(x)
        size = self.n_member * len(prefix) * self.vocab_size
        if len(self._logits) < size:
            self._logits = x.new_empty(size)
        logits = self._logits[:size].view(self.n_member, len(prefix), self.vocab_size)
        torch.bmm(x, self._output, out=logits)
        return logits.transpose(0, 1)

    @torch.inference_mode()
    def reorder(self, state: _State, row: Tensor, beam: int) -> _State:
        """State of the rows `row` [new row], now `beam` consecutive ones per sentence."""
        row = row.to(self._output.device)
        sentence = row[::beam] // state.beam
        mask, cross = state.mask, state.cross
        if len(sentence) != cross[0][0].shape[1]:
            mask = None if mask is None else mask[sentence]
            cross = [
                (keys.index_select(1, sentence), values.index_select(1, sentence))
                for keys, values in cross
            ]
        cache = [(_extended(keys, row), _extended(values, row)) for keys, values in state.cache]
        return _State(beam, mask, cross, cache)

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Yield the logits of every next token [token, member, vocab] of each sentence."""
        by_member = [member.force(source, prefix, length) for member in self._members]
        for logits in zip(*by_member, strict=True):
            yield torch.stack(logits, dim=1)


@dataclass
class _State:
    """Attention mask, keys and values.

    mask: [sentence, 1, 1, source]. cross, per layer: keys [member, sentence, head, width, source]
    and values [member, sentence, head, source, width]. cache, per layer: keys and values
    [token, member, row, head, width], where the next step fills in the last token.
    """

    beam: int
    mask: Tensor | None
    cross: list[tuple[Tensor, Tensor]]
    cache: list[tuple[Tensor, Tensor]]


def _extended(cache: Tensor, row: Tensor) -> Tensor:
    """The cache of the rows `row` with room for one more token, in a single copy."""
    n_token, n_member, _, *rest = cache.shape
    extended = cache.new_empty((n_token + 1, n_member, len(row), *rest))
    torch.index_select(cache, 2, row, out=extended[:n_token])
    return extended


class _Linear:
    """A linear map per member: [member, row, in] -> [member, row, out]."""

    def __init__(self, modules: Sequence[Any], scale: float = 1.0) -> None:
        self.weight = torch.stack([module.weight.t() for module in modules]) * scale
        self.bias = torch.stack([module.bias for module in modules])[:, None] * scale

    def __call__(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)

    def concatenated(self, *maps: _Linear) -> _Linear:
        """Merge this map with other maps of the same input; their outputs are concatenated."""
        joined = copy.copy(self)
        joined.weight = torch.cat([self.weight, *(linear.weight for linear in maps)], dim=2)
        joined.bias = torch.cat([self.bias, *(linear.bias for linear in maps)], dim=2)
        return joined


class _Norm:
    """A layer norm per member: [member, row, width]."""

    def __init__(self, modules: Sequence[Any]) -> None:
        self.weight = torch.stack([module.weight for module in modules])[:, None]
        self.bias = torch.stack([module.bias for module in modules])[:, None]
        self.eps = modules[0].eps

    def __call__(self, x: Tensor) -> Tensor:
        normal = functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return torch.addcmul(self.bias, normal, self.weight)


class _Layer:
    """One decoder layer of all members, one step at a time."""

    def __init__(self, layers: Sequence[Any]) -> None:
        own = [layer.self_attn for layer in layers]
        cross = [layer.encoder_attn for layer in layers]
        self.heads = own[0].num_heads
        query = _Linear([attention.q_proj for attention in own], own[0].scaling)
        key = _Linear([attention.k_proj for attention in own])
        value = _Linear([attention.v_proj for attention in own])
        self.own_query_key_value = query.concatenated(key, value)
        self.own_out = _Linear([attention.out_proj for attention in own])
        self.cross_query = _Linear([attention.q_proj for attention in cross], cross[0].scaling)
        self.cross_key = _Linear([attention.k_proj for attention in cross])
        self.cross_value = _Linear([attention.v_proj for attention in cross])
        self.cross_out = _Linear([attention.out_proj for attention in cross])
        self.widen = _Linear([layer.fc1 for layer in layers])
        self.narrow = _Linear([layer.fc2 for layer in layers])
        self.activation = layers[0].activation_fn
        self.norm_first = layers[0].normalize_before
        self.own_norm = _Norm([layer.self_attn_layer_norm for layer in layers])
        self.cross_norm = _Norm([layer.encoder_attn_layer_norm for layer in layers])
        self.final_norm = _Norm([layer.final_layer_norm for layer in layers])

    def __call__(
        self,
        x: Tensor,
        cross: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: tuple[Tensor, Tensor],
        beam: int,
    ) -> Tensor:
        """Apply the layer to x [member, row, width]; fills in the last token of the cache."""
        first, last = self.norm_first, not self.norm_first
        y = self.own_norm(x) if first else x
        x = x + self._own_attention(y, *cache)
        x = self.own_norm(x) if last else x
        y = self.cross_norm(x) if first else x
        x = x + self._cross_attention(y, *cross, mask, beam)
        x = self.cross_norm(x) if last else x
        y = self.final_norm(x) if first else x
        x = x + self.narrow(self.activation(self.widen(y)))
        return self.final_norm(x) if last else x

    def cross_keys_values(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder output [member, sentence, source, width]."""
        n_member, n_sentence, n_source, _ = encoded.shape
        flat = encoded.flatten(1, 2)
        shape = (n_member, n_sentence, n_source, self.heads, -1)
        keys = self.cross_key(flat).view(shape).permute(0, 1, 3, 4, 2).contiguous()
        values = self.cross_value(flat).view(shape).transpose(2, 3).contiguous()
        return keys, values

    def new_cache(self, n_member: int, rows: int) -> tuple[Tensor, Tensor]:
        """Keys and values with room for the first token of every row."""
        width = self.cross_out.weight.shape[1] // self.heads
        shape = (1, n_member, rows, self.heads, width)
        return self.cross_out.weight.new_empty(shape), self.cross_out.weight.new_empty(shape)

    def _own_attention(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        shape = keys.shape[1:]
        query, key, value = self.own_query_key_value(x).chunk(3, dim=2)
        keys[-1], values[-1] = key.unflatten(2, shape[2:]), value.unflatten(2, shape[2:])
        query = query.unflatten(2, shape[2:])
        share = (keys * query).sum(dim=-1, keepdim=True).softmax(dim=0)
        return self.own_out((values * share).sum(dim=0).flatten(2))

    def _cross_attention(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, beam: int
    ) -> Tensor:
        n_member, n_row, _ = x.shape
        query = self.cross_query(x).view(n_member, n_row // beam, beam, self.heads, -1)
        score = query.transpose(2, 3) @ keys
        if mask is not None:
            score += mask
        context = score.softmax(dim=-1) @ values
        return self.cross_out(context.transpose(2, 3).reshape(n_member, n_row, -1))
