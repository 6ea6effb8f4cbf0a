"""Language models after GPT-2 and BERT: learned positions, tied heads, Hugging Face's Conv1D."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .architecture import Architecture
from .data import classification, given, integers, tagging


class Conv1D(nn.Module):
    """A linear layer with weight (in, out), as one addmm on the positions of all examples together."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(0.1 * torch.randn(outputs))

    def forward(self, x: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.reshape(*x.shape[:-1], -1)


class Block(nn.Module):
    """GPT-2's: causal attention and an MLP, each on a normed copy and added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = Conv1D(width, 3 * width)
        self.out = Conv1D(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = Conv1D(width, 2 * width)
        self.down = Conv1D(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        query, key, value = (part.reshape(n, length, 2, -1).transpose(1, 2) for part in parts)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(n, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Positions are looked up for arange(length), without a batch; the head is the embedding again.

    `module` ties by giving the head's Linear the embedding's parameter, otherwise the weight is used
    directly in a product.
    """

    def __init__(self, *, module: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.positions = nn.Embedding(6, 8)
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.norm = nn.LayerNorm(8)
        if module:
            self.head = nn.Linear(8, 20, bias=False)
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x) if hasattr(self, "head") else functional.linear(x, self.tokens.weight)


class BertLayer(nn.Module):
    """Post-norm, with a Linear each for queries, keys and values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        # A shift of all keys changes no softmax: a bias here would have no gradient to compare.
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        n, length, width = x.shape
        layers = (self.query, self.key, self.value)
        query, key, value = (layer(x).reshape(n, length, 2, -1).transpose(1, 2) for layer in layers)
        scores = query @ key.transpose(2, 3) / (width // 2) ** 0.5
        weights = scores.masked_fill(~mask[:, None, None, :], float("-inf")).softmax(-1)
        x = self.norm1(x + self.out((weights @ value).transpose(1, 2).reshape(n, length, width)))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Bert(nn.Module):
    """Tokens, positions and segments are embedded and added; the first position is pooled.

    Token 0 is padding: it has no gradient and no attention.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(20, 8, padding_idx=0)
        self.positions = nn.Embedding(6, 8)
        self.segments = nn.Embedding(2, 8)
        self.norm = nn.LayerNorm(8)
        self.layers = nn.ModuleList(BertLayer(8) for _ in range(2))
        self.pooler = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor, segments: Tensor) -> Tensor:
        # The first position is never padding.
        mask = torch.cat([torch.ones_like(tokens[:, :1], dtype=torch.bool), tokens[:, 1:] != 0], dim=1)
        positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        x = self.norm(self.tokens(tokens) + self.positions(positions) + self.segments(segments))
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(torch.tanh(self.pooler(x[:, 0])))


TEXT = given(integers(20, 4), integers(20, 4))

ARCHITECTURES = (
    Architecture("GPT-2", GPT2, TEXT, tagging),
    Architecture("GPT-2 with a tied module", lambda: GPT2(module=True), TEXT, tagging),
    Architecture("BERT", Bert, given(integers(20, 6), integers(2, 6), integers(3)), classification),
)
