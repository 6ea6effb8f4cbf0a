"""Loops that keep examples apart are accepted as they are written."""

from __future__ import annotations

import pytest
import torch

from .accepted import LOOPS, Loop
from .architectures.huggingface import ADAPTERS
from .runs import flat

ROWS = 12


def test_names_are_unique() -> None:
    assert len({loop.name for loop in LOOPS}) == len(LOOPS)


NAMED = (
    *("HF T5", "HF BERT", "HF Llama", "HF Mamba", "HF Whisper", "HF ViT", "LoRA of peft"),
    *("VAE, randn_like", "diffusion", "GAN", "Gaussian noise on inputs", "layerdrop", "loss printed"),
    *("tokens, masked mean of each row", "packed sequences", "embedding bag with offsets, mean"),
)


@pytest.mark.skipif(not ADAPTERS, reason="needs transformers and peft")
def test_the_list_has_the_loops_that_people_write() -> None:
    names = {loop.name for loop in LOOPS}
    assert names >= set(NAMED)
    assert sum(name.startswith("HF") for name in names) >= 20


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_the_loop_is_accepted(loop: Loop) -> None:
    """Two steps or more are made on Poisson samples, and move the parameters.

    A batch of nobody has a probability of 4⁻¹² in a step.
    """
    model = loop.model()
    private = loop.private(model, loop.rows(ROWS, torch.Generator().manual_seed(1)), public_size=ROWS)
    before = flat(model).clone()
    loop.train(private)
    assert private.steps == private.sampling.steps >= 2
    assert torch.isfinite(flat(model)).all() and not torch.equal(flat(model), before)
