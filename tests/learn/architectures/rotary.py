"""Llama- and T5-like models: root-mean-square norms, rotary positions, gates, biases looked up in buckets."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import given, integers, tagging


class RMSNorm(nn.Module):
    """x / √(mean x² + ε), scaled: no mean is taken off and no bias added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def rotated(x: Tensor) -> Tensor:
    """Pairs of coordinates of (B, heads, T, d) turned by angles that grow with the position."""
    half = x.shape[-1] // 2
    rates = 100.0 ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angles = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)[:, None] * rates
    left, right = x.chunk(2, dim=-1)
    return torch.cat(
        [left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()], dim=-1
    )


class LlamaBlock(nn.Module):
    """Four query heads share two key heads; the MLP is gated by SiLU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width // 2, bias=False)
        self.value = nn.Linear(width, width // 2, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 20, bias=False)
        self.up = nn.Linear(width, 20, bias=False)
        self.down = nn.Linear(20, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        y = self.norm1(x)
        query = rotated(self.query(y).reshape(n, length, 4, -1).transpose(1, 2))
        key = rotated(self.key(y).reshape(n, length, 2, -1).transpose(1, 2))
        value = self.value(y).reshape(n, length, 2, -1).transpose(1, 2)
        key, value = key.repeat_interleave(2, dim=1), value.repeat_interleave(2, dim=1)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def llama() -> nn.Module:
    blocks = (LlamaBlock(16), LlamaBlock(16))
    return nn.Sequential(nn.Embedding(20, 16), *blocks, RMSNorm(16), nn.Linear(16, 20, bias=False))


class T5Attention(nn.Module):
    """Unscaled attention of x to a memory, with a bias per head and pair of positions or none."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor, bias: Tensor | None) -> Tensor:
        sources = (x, memory, memory)
        query, key, value = (
            layer(source).unflatten(2, (2, -1)).transpose(1, 2)
            for layer, source in zip(self.layers[:3], sources, strict=True)
        )
        scores = query @ key.transpose(2, 3)
        weights = (scores if bias is None else scores + bias).softmax(-1)
        return self.layers[3]((weights @ value).transpose(1, 2).flatten(2))


class T5Stack(nn.Module):
    """One block: self-attention, attention to the encoder where there is one, a ReLU MLP."""

    def __init__(self, width: int, *, decoder: bool) -> None:
        super().__init__()
        self.biases = nn.Embedding(4, 2)
        self.attention = T5Attention(width)
        self.cross = T5Attention(width) if decoder else None
        self.mlp = nn.Sequential(
            nn.Linear(width, 16, bias=False), nn.ReLU(), nn.Linear(16, width, bias=False)
        )
        self.norms = nn.ModuleList(RMSNorm(width) for _ in range(4 if decoder else 3))

    def forward(self, x: Tensor, memory: Tensor | None) -> Tensor:
        steps = torch.arange(x.shape[1], device=x.device)
        distance = steps[:, None] - steps
        bias = self.biases(distance.abs().clamp(max=3)).permute(2, 0, 1)
        if memory is not None:
            bias = bias.masked_fill(distance < 0, float("-inf"))
        y = self.norms[0](x)
        x = x + self.attention(y, y, bias)
        if self.cross is not None and memory is not None:
            x = x + self.cross(self.norms[3](x), memory, None)
        return self.norms[2](x + self.mlp(self.norms[1](x)))


class T5(nn.Module):
    """One embedding for the source, the target and, scaled, the head."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.encoder = T5Stack(8, decoder=False)
        self.decoder = T5Stack(8, decoder=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encoder(self.tokens(source), None)
        x = self.decoder(self.tokens(target), memory)
        return functional.linear(x * 8**-0.5, self.tokens.weight)


ARCHITECTURES = (
    Architecture("Llama", llama, given(integers(20, 4), integers(20, 4)), tagging),
    Architecture("T5", T5, given(integers(20, 5), integers(20, 4), integers(20, 4)), tagging),
)
