"""The numerical model of a private step: what floating point may do to a sum, and the noise on it.

Gradients are floats, and so are their sums. Their errors cannot be left out of a privacy claim, and cannot be
proved for every kernel of every processor; they are modelled, and the receipt says so:

    clip    every example's gradient is clipped to C(1 − η), and charged as C
    round   the sum is rounded toward zero on a grid of C·2⁻ᵐ, of which C are 2ᵐ steps
    noise   rounded Gaussian noise of `noise_multiplier`·2ᵐ steps is added in integers, exactly

With P numbers in the sum, rounding moves two sums apart by at most √P steps; m is such that this is about
2⁻⁹ of C, or more where noise would be beyond what 32 bits hold. η is the sum of that, of 2⁻¹¹ for the norm
and the gradient of one example, and of

    4u(k√(kN) + n√N),   u the unit roundoff, n twice the expected batch, in N chunks of k examples,

what rounding errors, taken as independent, make of a sum of n vectors of norm C that are all alike. A batch
of more than twice the expected size B has a probability below e^{−B/3}. Chunks vary in size
(`chunk_assignment`), so there may be more of them than n/k, and N is the larger number. Of p processes each
has chunks that may be short: p is added to N where there are several. For Laplace noise the L1 norm takes the
place of the L2 norm, P that of √P, and 64 bits that of 32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import torch

from dalenius.errors import NotSound

GRID = 9
"""Rounding to the grid costs 2⁻⁹ of C, about."""
WIDEST = {"l2": 26, "l1": 48}
"""Noise has a scale of at most so many bits, in steps."""
OWN = Fraction(1, 2**11)
"""What the arithmetic of one example's gradient and norm may cost, of C."""
MOST = Fraction(1, 20)
"""A step whose sums may be off by more than this is refused."""


def grid_bits(parameters: int, noise_multiplier: Fraction, norm: str) -> int:
    """m: about as many as rounding asks for, and no more than noise leaves room for."""
    apart = math.sqrt(parameters) if norm == "l2" else float(parameters)
    room = WIDEST[norm] - math.ceil(math.log2(noise_multiplier))
    return max(1, min(math.ceil(math.log2(apart)) + GRID, room))


@dataclass(frozen=True)
class Numerics:
    """So many steps of the grid make C; the rest of the clip is kept for errors."""

    bits: int
    slack: Fraction

    @classmethod
    def of(
        cls,
        parameters: int,
        *,
        noise_multiplier: Fraction,
        batch: Fraction,
        chunk: int,
        dtype: torch.dtype,
        norm: str = "l2",
        processes: int = 1,
        chunks: int = 1,
    ) -> Numerics:
        """Return the model of a sum over a batch.

        Args:
            parameters: How many numbers the sum has.
            noise_multiplier: The scale of the noise over the clipping bound.
            batch: The expected number of examples of a batch.
            chunk: The most examples of one backward pass.
            dtype: The type of the parameters.
            norm: The norm that is clipped, "l2" or "l1".
            processes: The number of processes that share a batch.
            chunks: The number of chunks that a batch is handed out in, if it is more than size asks for.
        """
        apart = math.sqrt(parameters) if norm == "l2" else float(parameters)
        bits = grid_bits(parameters, noise_multiplier, norm)
        grid = Fraction(apart) / 2**bits
        if grid > MOST / 2:
            raise NotSound(
                f"Noise of {float(noise_multiplier):.3g} times the bound, on {parameters} parameters, needs "
                f"more than {WIDEST[norm]} bits.",
                remedy="Allow a larger epsilon, more rows or fewer steps, or train fewer parameters.",
            )
        examples = max(1.0, 2 * float(batch))
        inside = min(float(chunk), examples)
        # Every process has as many chunks, of which some may be short.
        sums = max(examples / inside, chunks) + (processes if processes > 1 else 0)
        unit = torch.finfo(dtype).eps / 2
        off = 4 * unit * (inside * math.sqrt(inside * sums) + examples * math.sqrt(sums))
        slack = grid + OWN + Fraction(off)
        if slack > MOST:
            raise NotSound(
                f"Sums over batches of {float(batch):g} in {dtype} may be off by {float(slack):.0%} of clip.",
                remedy="Choose smaller physical batches, or train in torch.float64.",
            )
        return cls(bits, slack)

    def within(self, clip: float) -> float:
        """What is clipped to, for what is charged as `clip`."""
        return clip * float(1 - self.slack)

    def __str__(self) -> str:
        share = f"{math.ceil(float(self.slack) * 1e5) / 1e3:g} %"
        return (
            f"integer noise on a grid of clip·2^-{self.bits}; gradients are summed in floating point and "
            f"clipped {share} below what is charged, which covers rounding errors as modelled (independent), "
            "not as proved"
        )
