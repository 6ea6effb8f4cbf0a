"""The state of a filter at the start of a block, in fixed point, so that no sum is made again from its start.

A filter carries U_t = m·U_{t−1} + N_t for each pole m, |m| ≤ 1 (`buffered`). Floats hold U well enough for
nearly every sum. For the few that they leave open, U is held here as well, at the start of each block: as a
whole number of 2^−40 fine steps, with a bound on how far it is off. From there a sum is at most a block away,
so that settling it takes as long at every step.

Theorem (error). Let H bound the cells so far, and let the first 40 bits of each place u be known. Then N is
within 1 + κ units of 2^40·(cell − ½) + ⌊2^40·u⌋, κ = 2^40·(e^L − 1)/2, L = (H + 1)/scale² (`filtered`). With
weights W_k, whole numbers within 1.01 of 2^100·m^k, and powers P_k within 3k + 3 of 2^200·m^k, r steps take a
U that is off by e units to

    ⌊U·P_r/2^200⌋ + ⌊Σ_k W_{r−1−k}·N_k/2^100⌋,
    off by |m|^r·e + 3 + 1.01·r·(H + 1)·2^−60 + r·(1 + κ)·(1 + 2^−60):

the first term errs by one for the floor and, as |U| < 2^180, by less than one for the power; the second by
one for the floor, by what weights are off, and by what each N is off, whose weight is at most 1 + 2^−60. ∎

Sums are exact: numbers and weights are cut into limbs of 20 bits, so that a product is at most 2^40 and the
sum of a block's 4096 at most 2^52. Floats hold these whole numbers, in whatever order they are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb
from dalenius.noise.law import Ints

Floats = NDArray[np.float64]
Places = NDArray[np.uint64]
Enclosures = tuple[tuple[Fraction, Fraction], ...]
LIMB, LIMBS = 20, 5
PLACE = 2 * LIMB
"""Bits of a place that are used: a unit is 2^−40 of a fine step."""
WEIGHT = LIMB * LIMBS
POWER = 200
MOST_STEPS = 1 << 12
MOST_CELL = 2.0**59
"""Cells from which limbs would overflow; a Gaussian does not get there."""
LOW = (1 << LIMB) - 1


class Checkpoint:
    """U of each pole and stream at the start of a block, in units of 2^−40 fine steps.

    Args:
        poles: For each pole two fractions that enclose it, at most 2^−204 apart.
        width: How many streams there are.
        steps: How many steps a block has, 4096 at most.
    """

    def __init__(self, poles: Enclosures, width: int, steps: int) -> None:
        self._table, self._powers, self._sizes = _weights(poles, steps)
        self._width, self._steps = width, steps
        self.held: NDArray[np.object_] = np.zeros((len(poles), width), dtype=object)
        self.off = [0.0] * len(poles)

    @property
    def size(self) -> int:
        """Return the bytes of what is carried from block to block."""
        return sum((int(number).bit_length() + 7) // 8 for number in self.held.flat) + 8 * len(self.off)

    def after(
        self, cells: Ints, places: Places, *, highest: float, bent: float
    ) -> tuple[NDArray[np.object_], list[float]]:
        """Return U after some steps of a block, and how far it may be off.

        Args:
            cells: The cells of these steps, a row each.
            places: Their places, of which the first 40 of 64 bits are used.
            highest: The largest cell so far, without its sign.
            bent: e^L − 1, from above.
        """
        steps, streams = cells.shape
        sums = self._table[:, self._steps - steps :] @ _limbs(cells, places).reshape(steps, LIMBS * streams)
        whole = sums.astype(np.int64).reshape(len(self.off), LIMBS, LIMBS, streams)
        total = np.zeros((len(self.off), streams), dtype=object)
        for place in range(2 * LIMBS - 1):
            parts = [whole[:, a, place - a] for a in range(LIMBS) if 0 <= place - a < LIMBS]
            total += np.sum(parts, axis=0).astype(object) << (LIMB * place)
        powers = np.array([power[steps] for power in self._powers], dtype=object)[:, None]
        held = (self.held[: len(self.off), :streams] * powers >> POWER) + (total >> WEIGHT)
        own = 3 + 1.01 * steps * (highest + 1) * 2.0**-60 + steps * (1.0001 + bent * 2.0 ** (PLACE - 1))
        if not highest < MOST_CELL:
            own = float("inf")
        off = [
            (size**steps * off + own) * (1 + 1e-9) for size, off in zip(self._sizes, self.off, strict=True)
        ]
        return np.asarray(held), off

    def column(self, number: int) -> Checkpoint:
        """Return the same for one of the streams."""
        one = object.__new__(Checkpoint)
        one._table, one._powers, one._sizes = self._table, self._powers, self._sizes
        one._width, one._steps, one.held, one.off = (
            1,
            self._steps,
            self.held[:, number : number + 1],
            self.off,
        )
        return one


def enclosed(held: int, off: float) -> arb:
    """Return a ball, in fine steps, that holds what is `off` by so many units."""
    return arb(held, off) / arb(2) ** PLACE


def enclosed_number(cell: int, place: int, bent: float) -> arb:
    """Return a ball, in fine steps, that holds the number at a place of a cell, given by 64 bits."""
    return enclosed(
        (cell << PLACE) + (place >> (64 - PLACE)) - (1 << (PLACE - 1)), 1.0001 + bent * 2.0 ** (PLACE - 1)
    )


def _limbs(cells: Ints, places: Places) -> Floats:
    """Numbers in units, as limbs of 20 bits with the sign in the last: steps, limbs, streams."""
    low = (places >> np.uint64(64 - PLACE)).astype(np.int64) - (1 << (PLACE - 1))
    # The sign of the low part is carried into the cell.
    whole = cells + (low >> PLACE)
    parts = (low & LOW, (low >> LIMB) & LOW, whole & LOW, (whole >> LIMB) & LOW, whole >> (2 * LIMB))
    return np.stack(parts, axis=1).astype(np.float64)


@lru_cache(16)
def _weights(poles: Enclosures, steps: int) -> tuple[Floats, Sequence[Sequence[int]], Sequence[float]]:
    """Limbs of the weights of a block, the last step's last; powers of poles; and their sizes, from above."""
    assert 0 < steps <= MOST_STEPS
    rows, powers, sizes = [], [], []
    for left, right in poles:
        pole, found = int(left * 2**POWER // 1), [1 << POWER]
        for _ in range(steps):
            found.append(found[-1] * pole >> POWER)
        short = [power >> (POWER - WEIGHT) for power in reversed(found[:steps])]
        for limb in range(LIMBS - 1):
            rows.append([power >> (LIMB * limb) & LOW for power in short])
        rows.append([power >> (LIMB * (LIMBS - 1)) for power in short])
        powers.append(found)
        sizes.append(min(1.0, float(max(abs(left), abs(right))) * (1 + 1e-15)))
    return np.array(rows, dtype=np.float64), powers, sizes
