"""Small architectures of every family that private training must get exactly right, by name."""

from __future__ import annotations

from . import (
    adapted,
    attention,
    composed,
    convolutional,
    convolutions,
    dense,
    embeddings,
    huggingface,
    norms,
    raw_parameters,
    recurrent,
    residual,
    rotary,
    routed,
    sharing,
    transformers,
    vision,
)
from .architecture import Architecture

FAMILIES = (
    dense,
    convolutions,
    convolutional,
    residual,
    attention,
    vision,
    transformers,
    rotary,
    recurrent,
    embeddings,
    norms,
    raw_parameters,
    sharing,
    adapted,
    composed,
    routed,
    huggingface,
)
ARCHITECTURES: tuple[Architecture, ...] = tuple(
    architecture for family in FAMILIES for architecture in family.ARCHITECTURES
)

__all__ = ["ARCHITECTURES", "Architecture"]
