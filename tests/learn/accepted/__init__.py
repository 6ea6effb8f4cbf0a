"""Training loops that must be accepted, by kind."""

from __future__ import annotations

from . import (
    augmentation,
    checkpointing,
    classification,
    combined_losses,
    functions,
    generative,
    huggingface_senses,
    huggingface_text,
    progress,
    regression,
    schedules,
    sequences,
    speech,
    token_losses,
)
from .loop import Loop

KINDS = (
    classification,
    regression,
    token_losses,
    combined_losses,
    sequences,
    speech,
    generative,
    augmentation,
    progress,
    schedules,
    checkpointing,
    functions,
    huggingface_text,
    huggingface_senses,
)
LOOPS: tuple[Loop, ...] = tuple(loop for kind in KINDS for loop in kind.LOOPS)

__all__ = ["LOOPS", "Loop"]
