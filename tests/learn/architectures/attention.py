"""nn.MultiheadAttention and the transformer layers of torch, in their options."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .architecture import Architecture
from .data import TimeFirst, features, given, integers, regression, tagging, tagging_time_first, time_first


class SelfAttention(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **options)
        self.head = nn.Linear(8, 3)
        # Biases start at zero, where a mistake in them could hide.
        for name, parameter in self.attention.named_parameters():
            if name.endswith("bias"):
                nn.init.normal_(parameter, std=0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + self.attention(x, x, x, need_weights=False)[0])


class CausalAttention(SelfAttention):
    """With a mask and with the weights asked for, which takes another route through torch."""

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        attended, weights = self.attention(x, x, x, attn_mask=mask)
        return self.head(attended + weights.square().sum(-1, keepdim=True))


class CrossAttention(nn.Module):
    """Keys and values of widths of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, kdim=5, vdim=6, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return self.head(self.attention(x, keys, values, need_weights=False)[0])


class SharedAttention(nn.Module):
    """One attention called as self- and as cross-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(x + self.attention(x, memory, memory, need_weights=False)[0])


class Encoder(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **options)
        # Two copies, not one layer twice.
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(x))


class EncoderDecoder(nn.Module):
    """torch's own sequence-to-sequence transformer, with a causal mask on its target side."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, target: Tensor, source: Tensor) -> Tensor:
        length = target.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        return self.head(self.transformer(source, target, tgt_mask=mask))


class Perceiver(nn.Module):
    """Learned queries, one copy per example, read the input; their mean is the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, 8))
        self.attention = nn.MultiheadAttention(8, 2, kdim=5, vdim=5, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        queries = self.latents.expand(x.shape[0], -1, -1)
        latents = queries + self.attention(queries, x, x, need_weights=False)[0]
        return self.head(self.norm(latents).mean(1))


SEQUENCES = given(features(4, 8), integers(3, 4))
TIME_FIRST = given(time_first(features(4, 8)), integers(3, 4))
PAIRS = given(features(4, 8), features(5, 8), integers(3, 4))
WIDTHS = given(features(4, 8), features(6, 5), features(6, 6), integers(3, 4))

ARCHITECTURES = (
    Architecture("self-attention", lambda: SelfAttention(batch_first=True), SEQUENCES, tagging),
    Architecture(
        "self-attention, time first", SelfAttention, TIME_FIRST, tagging_time_first, batch_dim=1, awkward=True
    ),
    Architecture("self-attention, time first inside", lambda: TimeFirst(SelfAttention()), SEQUENCES, tagging),
    Architecture(
        "attention with bias_kv",
        lambda: SelfAttention(batch_first=True, add_bias_kv=True, add_zero_attn=True),
        SEQUENCES,
        tagging,
    ),
    Architecture(
        "attention without bias", lambda: SelfAttention(batch_first=True, bias=False), SEQUENCES, tagging
    ),
    Architecture("causal attention", lambda: CausalAttention(batch_first=True), SEQUENCES, tagging),
    Architecture("cross-attention", CrossAttention, WIDTHS, tagging),
    Architecture("attention used twice", SharedAttention, PAIRS, tagging),
    Architecture("transformer encoder", lambda: Encoder(batch_first=True), SEQUENCES, tagging),
    Architecture(
        "transformer encoder, norm first",
        lambda: Encoder(batch_first=True, norm_first=True, activation="gelu", bias=False),
        SEQUENCES,
        tagging,
    ),
    Architecture(
        "transformer encoder, time first", Encoder, TIME_FIRST, tagging_time_first, batch_dim=1, awkward=True
    ),
    Architecture("transformer", EncoderDecoder, PAIRS, tagging),
    Architecture("Perceiver", Perceiver, given(features(6, 5), features(3)), regression),
)
