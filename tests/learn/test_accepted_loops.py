"""Loops that keep examples apart are accepted as they are written."""

from __future__ import annotations

import pytest
import torch

from .accepted import LOOPS, Loop
from .runs import flat

ROWS = 12


def test_names_are_unique() -> None:
    assert len({loop.name for loop in LOOPS}) == len(LOOPS)


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
