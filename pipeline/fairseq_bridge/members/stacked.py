"""fairseq's transformers of one architecture as one model: weights stacked along a member axis."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from pipeline.fairseq_bridge import import_fairseq
from pipeline.fairseq_bridge.members.member import FairseqMember

# What a layer may have beyond the original transformer; None where it is off.
_EXTRAS = ("c_attn", "attn_ln", "ffn_layernorm", "w_resid")


def can_stack(members: Sequence[FairseqMember]) -> bool:
    """Whether the decoders are plain transformers that differ in nothing but their weights."""
    transformer = import_fairseq("fairseq.models.transformer")
    kinds = (transformer.TransformerModel, transformer.TransformerModelBase)
    models = [member.model for member in members]
    return (
        all(type(model) in kinds for model in models)
        and all(model.decoder.cfg == models[0].decoder.cfg for model in models)
        and _is_plain(models[0].decoder)
    )


def _is_plain(decoder: Any) -> bool:
    if decoder.cfg.base_layers or decoder.cfg.cross_self_attention:
        return False
    attentions = [one for layer in decoder.layers for one in (layer.self_attn, layer.encoder_attn)]
    return (
        decoder.adaptive_softmax is None
        and decoder.project_in_dim is None
        and decoder.project_out_dim is None
        and decoder.layernorm_embedding is None
        and all(getattr(layer, name) is None for layer in decoder.layers for name in _EXTRAS)
        and all(one is not None and one.bias_k is None for one in attentions)
        and not any(one.add_zero_attn for one in attentions)
    )


class StackedTransformers:
    """An EnsembleModel of members for which `can_stack` holds; the decoders take a step as one.

    Encoders run in turn, once a sentence. Its logits are those of the members in turn, up to
    rounding.
    """

    def __init__(self, members: Sequence[FairseqMember]) -> None:
        self._members = list(members)
        decoders = [member.model.decoder for member in members]
        self._decoders = decoders
        self.n_member = len(members)
        self.vocab_size = members[0].vocab_size
        first = members[0]
        self.pad, self.eos, self.unk = first.pad, first.eos, first.unk
        self.max_source_tokens = members[0].max_source_tokens
        self.max_target_tokens = members[0].max_target_tokens
        with torch.inference_mode():
            self._embedding = [one.embed_tokens.weight for one in decoders]
            # Copied, so that the largest product of all reads it in the order of memory.
            self._output = torch.stack([one.output_projection.weight.t() for one in decoders])
            self._layers = [
                _Layer([one.layers[depth] for one in decoders])
                for depth in range(len(decoders[0].layers))
            ]
            norms = [one.layer_norm for one in decoders]
            self._norm = None if norms[0] is None else _Norm(norms)
            self._logits = self._output.new_empty(0)

    @torch.inference_mode()
    def encode(self, source: Tensor) -> _State:
        """State of one row a sentence; source [sentence, token], padded at the right."""
        encoded = [member.encoded(source) for member in self._members]
        output = torch.stack([one["encoder_out"][0].transpose(0, 1) for one in encoded])
        padding = source.to(output.device).eq(self.pad)
        mask = output.new_zeros(padding.shape).masked_fill(padding, -torch.inf)
        return _State(
            1,
            mask[:, None, None, :] if padding.any() else None,
            [layer.cross_keys_values(output) for layer in self._layers],
            [layer.no_cache(self.n_member, len(source)) for layer in self._layers],
        )

    @torch.inference_mode()
    def step(self, state: _State, prefix: Tensor) -> Tensor:
        """Logits of the next token [row, member, vocab] after prefix [row, token]."""
        prefix = prefix.to(self._output.device)
        last = prefix[:, -1]
        x = torch.stack([one.index_select(0, last) for one in self._embedding])
        x *= self._decoders[0].embed_scale
        if self._decoders[0].embed_positions is not None:
            x += torch.stack(
                [
                    one.embed_positions(prefix[:1], incremental_state={})[:, -1]
                    for one in self._decoders
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
        return logits.transpose(0, 1).float()

    @torch.inference_mode()
    def reorder(self, state: _State, row: Tensor, beam: int) -> _State:
        """State of the rows row [new row], from now on `beam` of a sentence in succession."""
        row = row.to(self._output.device)
        sentence = row[::beam] // state.beam
        mask, cross = state.mask, state.cross
        if len(sentence) != cross[0][0].shape[1]:
            mask = None if mask is None else mask[sentence]
            cross = [
                (keys.index_select(1, sentence), values.index_select(1, sentence))
                for keys, values in cross
            ]
        cache = [(_grown(keys, row), _grown(values, row)) for keys, values in state.cache]
        return _State(beam, mask, cross, cache)

    def force(self, source: Tensor, prefix: Tensor, length: list[int]) -> Iterator[Tensor]:
        """Logits of every next token [token, member, vocab], one sentence after the other."""
        each = [member.force(source, prefix, length) for member in self._members]
        for sentence in zip(*each, strict=True):
            yield torch.stack(sentence, dim=1)


@dataclass
class _State:
    """mask [sentence, 1, 1, source]; cross, a layer: keys [member, sentence, head, width, source]
    and values [member, sentence, head, source, width]; cache, a layer: keys and values
    [token, member, row, head, width], whose last token is still to be filled in.
    """

    beam: int
    mask: Tensor | None
    cross: list[tuple[Tensor, Tensor]]
    cache: list[tuple[Tensor, Tensor]]


def _grown(cache: Tensor, row: Tensor) -> Tensor:
    """The cache of other rows, with room for one more token: moved and grown in one copy."""
    n_token, n_member, _, *rest = cache.shape
    grown = cache.new_empty((n_token + 1, n_member, len(row), *rest))
    torch.index_select(cache, 2, row, out=grown[:n_token])
    return grown


class _Linear:
    """A linear map a member: [member, row, in] -> [member, row, out]."""

    def __init__(self, modules: Sequence[Any], scale: float = 1.0) -> None:
        self.weight = torch.stack([one.weight.t() for one in modules]) * scale
        self.bias = torch.stack([one.bias for one in modules])[:, None] * scale

    def __call__(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)

    def beside(self, *others: _Linear) -> _Linear:
        """This map with others of the same input as one product: outputs side by side."""
        joined = copy.copy(self)
        joined.weight = torch.cat([self.weight, *(one.weight for one in others)], dim=2)
        joined.bias = torch.cat([self.bias, *(one.bias for one in others)], dim=2)
        return joined


class _Norm:
    """A layer norm a member: [member, row, width]."""

    def __init__(self, modules: Sequence[Any]) -> None:
        self.weight = torch.stack([one.weight for one in modules])[:, None]
        self.bias = torch.stack([one.bias for one in modules])[:, None]
        self.eps = modules[0].eps

    def __call__(self, x: Tensor) -> Tensor:
        normal = functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return torch.addcmul(self.bias, normal, self.weight)


class _Layer:
    """One decoder layer of all members, one step at a time."""

    def __init__(self, layers: Sequence[Any]) -> None:
        own, cross = [one.self_attn for one in layers], [one.encoder_attn for one in layers]
        self.heads = own[0].num_heads
        query = _Linear([one.q_proj for one in own], own[0].scaling)
        key = _Linear([one.k_proj for one in own])
        value = _Linear([one.v_proj for one in own])
        self.own_query_key_value = query.beside(key, value)
        self.own_out = _Linear([one.out_proj for one in own])
        self.cross_query = _Linear([one.q_proj for one in cross], cross[0].scaling)
        self.cross_key = _Linear([one.k_proj for one in cross])
        self.cross_value = _Linear([one.v_proj for one in cross])
        self.cross_out = _Linear([one.out_proj for one in cross])
        self.widen = _Linear([one.fc1 for one in layers])
        self.narrow = _Linear([one.fc2 for one in layers])
        self.activation = layers[0].activation_fn
        self.norm_first = layers[0].normalize_before
        self.own_norm = _Norm([one.self_attn_layer_norm for one in layers])
        self.cross_norm = _Norm([one.encoder_attn_layer_norm for one in layers])
        self.final_norm = _Norm([one.final_layer_norm for one in layers])

    def __call__(
        self,
        x: Tensor,
        cross: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: tuple[Tensor, Tensor],
        beam: int,
    ) -> Tensor:
        """x [member, row, width] through the layer; fills in the last token of the cache."""
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
        """Keys and values of the source; encoded [member, sentence, source, width]."""
        n_member, n_sentence, n_source, _ = encoded.shape
        flat = encoded.flatten(1, 2)
        shape = (n_member, n_sentence, n_source, self.heads, -1)
        keys = self.cross_key(flat).view(shape).permute(0, 1, 3, 4, 2).contiguous()
        values = self.cross_value(flat).view(shape).transpose(2, 3).contiguous()
        return keys, values

    def no_cache(self, n_member: int, rows: int) -> tuple[Tensor, Tensor]:
        """Room for the first token of every row."""
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
        found = score.softmax(dim=-1) @ values
        return self.cross_out(found.transpose(2, 3).reshape(n_member, n_row, -1))
