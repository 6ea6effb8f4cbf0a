"""On a GPU: noise is what a processor draws, entry by entry. Skipped where there is none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from dalenius.noise import addressed, kernel
from dalenius.noise.addressed import AddressedSampler
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.kernel import Grid
from dalenius.noise.narrow import NarrowSampler
from dalenius.noise.stream import StreamKey
from dalenius.noise.table import lay_out

if not torch.cuda.is_available():
    pytest.skip("there is no GPU: see benchmarks/results/learn_gpu.md", allow_module_level=True)

GRID = Grid(2.0**-12, 2.0**29, 2.0**-12 / 3)


def coarse(scale: int) -> AddressedSampler:
    law = RoundedGaussian(Fraction(scale))
    return AddressedSampler(NarrowSampler(law, lay_out(law, bits=6, fineness=1)))


@pytest.mark.parametrize("start", [0, 1, 2047, 12345])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [2**10, 2**20, 2**26, -10, -(10**6)])
def test_the_same_as_a_processor(scale: int, kind: torch.dtype, start: int) -> None:
    from dalenius.learn.gpu.noise import DeviceNoise

    sampler = addressed.rounded_gaussian(scale) if scale > 0 else coarse(-scale)
    stream, here = StreamKey.fresh().addressed(1), torch.randn(30_001, dtype=kind)
    there, wanted = here.cuda(), here.numpy()
    DeviceNoise(sampler, there.device).add(there, stream, GRID, start=start)
    kernel.loops.add(wanted, sampler.draw(stream, start, start + wanted.size), GRID)
    assert np.array_equal(there.cpu().numpy(), wanted)
