"""Rounded running sums of filtered Gaussians, exactly, with d numbers of memory.

Let N_0, N_1, … be independent real Gaussians of deviation `scale`, and C(x) = 1 + Σ_j ω_j x/(1 − θ_j x) with
0 ≤ θ_j < 1, ω_j > 0, Σω_j ≤ 1. Drawn are, half up and of the real numbers themselves,

    increments   R_t = round(y_t·2^shift),   y = C⁻¹N
    sums         R_t = round(Z_t·2^shift),   Z_t = y_0 + … + y_t.

How. 1/C = 1 − Σ_j w_j x/(1 − m_j x), where the m_j < θ_j interlace the θ_j: the zeros of
g(m) = Σ_j ω_j/(θ_j − m) − 1, which rises from pole to pole; w_j = 1/g′(m_j). With U_t = m_j·U_{t−1} + N_t
for each j, and V_t the sum of all N, y_t = N_t − Σw_j U_{j,t−1} and Z_t = βV_t + Σγ_j U_{j,t}, with
γ_j = w_j/(1 − m_j), β = 1/C(1). Each N is known by its cell, a rounded Gaussian on steps of a fine grid, and
U and V are held in floats. Let u = 2⁻⁵³, a pole be known to δ, τ = min(t + 1, 1/(1 − |m|)), and |N| and |U|
up to here be at most H and M. Then a computed U is off by at most

    2.1uMτ (two roundings a step) + 1.1δτ²H (the pole) + ½τ (the cell),

and the weighted sum by its weights, known to 1.1u of themselves, times that and d + 8 roundings of its terms.
Where it is proved that everything within this distance rounds to one integer, this is it. Elsewhere, hardly
once in a million, the sum is made again from the start of its block, where U and V are kept in fixed point
with 40 bits of each place (`checkpoints`). At a million steps that leaves it open with a probability below
scale·2^−60; then it is made from the first step on in balls, with as many further bits as are needed. The
answer is that of exact arithmetic, and when it is slow is decided by noise alone. (docs/proofs/buffered.md)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dalenius.arithmetic import arb, workprec
from dalenius.errors import InvalidArgument, NotSound
from dalenius.noise.checkpoints import POWER, Checkpoint, Enclosures, Places, enclosed, enclosed_number
from dalenius.noise.filtered import STEEP, real
from dalenius.noise.gaussian import RoundedGaussian
from dalenius.noise.law import Ints
from dalenius.noise.lazy import GUARD, STEP, ball
from dalenius.noise.sampler import Sampler
from dalenius.noise.stream import StreamKey

Floats = NDArray[np.float64]
FINE = 46
"""Cells are so small that `scale` has from 2⁴⁵ to 2⁴⁶ of them."""
BLOCK = 4096
"""Numbers that are drawn at a time, as far as that is at least `LEAST` steps."""
LEAST = 64
CELLS, FURTHER, PLACES = 1, 6, 7
"""The first numbers of the paths of streams."""
U = 2.0**-53
BITS = 128
GAIN = 1.1 * U
"""How far a gain may be from the truth, relatively."""
POLE = POWER + 4
"""Bits to which poles are enclosed for fixed point."""
MOST_PLACE = 2.0**62


@dataclass(frozen=True)
class Buffers:
    """The filter of C⁻¹ for C with these `decays` θ and `scales` ω; `summed` for sums of it."""

    decays: tuple[Fraction, ...]
    scales: tuple[Fraction, ...]
    summed: bool = True

    def __post_init__(self) -> None:
        ordered = sorted(self.decays)
        ends = [*ordered, Fraction(1)]
        rising = all(ends[k] < ends[k + 1] for k in range(len(ordered)))
        if not (ordered and ordered[0] >= 0 and rising and min(self.scales) > 0 and sum(self.scales) <= 1):
            raise InvalidArgument(
                "decays must differ and be from 0 to below 1, scales be above 0 and at most 1 together.",
                remedy="Leave out what has no scale, and join what has the same decay.",
            )

    def poles(self, bits: int) -> list[arb]:
        """The m_j, then 1 for the sum, to so many bits of how far they are from any decay."""
        found = [ball(left).union(ball(right)) for left, right in _zeros(self, bits)]
        return [*found, arb(1)] if self.summed else found

    def enclosures(self, bits: int) -> Enclosures:
        """Return fractions that enclose the poles, and 1 for the sum, at most 2^−bits apart."""
        found = _zeros(self, bits)
        return (*found, (Fraction(1), Fraction(1))) if self.summed else found

    def zero(self, low: Fraction, high: Fraction, bits: int) -> tuple[Fraction, Fraction]:
        """What holds the zero of g between −1 or a decay and the next decay: halved by signs that are exact.

        g rises there, from at most zero at −1 or from −∞ at a decay, to ∞.
        """
        if low == -1 and self._g(low) == 0:
            return low, low
        left, right = low, high
        while (right - left) * 2**bits > min(high - right, 1 if low == -1 else left - low):
            middle = (left + right) / 2
            height = self._g(middle)
            if height == 0:
                return middle, middle
            left, right = (middle, right) if height < 0 else (left, middle)
        return left, right

    def _g(self, m: Fraction) -> Fraction:
        pairs = zip(self.scales, self.decays, strict=True)
        return sum((scale / (decay - m) for scale, decay in pairs), Fraction(-1))

    def gains(self, poles: Sequence[arb]) -> list[arb]:
        """What the U are weighted by: γ_j and β, or −w_j."""
        weights = [self._weight(m) for m in poles[: len(self.decays)]]
        if not self.summed:
            return [-w for w in weights]
        pairs = zip(self.scales, self.decays, strict=True)
        whole = 1 + sum((scale / (1 - decay) for scale, decay in pairs), Fraction(0))
        return [*(w / (1 - m) for w, m in zip(weights, poles, strict=False)), ball(1 / whole)]

    def _weight(self, m: arb) -> arb:
        pairs = zip(self.scales, self.decays, strict=True)
        return 1 / sum((ball(scale) / (ball(decay) - m) ** 2 for scale, decay in pairs), arb(0))

    @cached_property
    def floats(self) -> tuple[Floats, Floats, Floats]:
        """Poles, gains, and how far poles may be from the truth; gains are within 1.1u of it, relatively."""
        with workprec(4 * BITS):
            poles = self.poles(BITS)
            gains = self.gains(poles)
            near, weights = ([float(each.mid()) for each in balls] for balls in (poles, gains))
            off = [0.0 if m == 1 else U + 2 * float(m.rad()) for m in poles]
            known = [abs(m - arb(pole)) <= far for m, pole, far in zip(poles, near, off, strict=True)]
            known += [abs(a - arb(gain)) <= GAIN * abs(a) for a, gain in zip(gains, weights, strict=True)]
        if not (all(known) and max(off) <= 2 * U):
            raise InvalidArgument(
                "The filter of these decays and scales is too near to one with fewer of them.",
                remedy="Leave out scales next to 0, and join decays next to each other.",
            )
        return np.array(near), np.array(weights), np.array(off)


class Running:
    """Blocks of rounded sums for `width` independent streams, one after the other."""

    def __init__(
        self, buffers: Buffers, scale: Fraction, key: StreamKey, width: int = 1, shift: int = 0
    ) -> None:
        self.buffers, self.key, self.width, self.shift = buffers, key, width, shift
        self.steps = block_steps(width)
        self.fine = FINE - math.ceil(math.log2(scale))
        self.law = scale * Fraction(2) ** self.fine
        self.poles, self.gains, self._off = buffers.floats
        self._held = np.zeros((len(self.poles), width))
        self._kept = Checkpoint(buffers.enclosures(POLE), width, self.steps)
        self._most, self._highest, self.blocks, self.settled = np.zeros(len(self.poles)), 0.0, 0, 0

    @property
    def size(self) -> int:
        """Bytes of what is carried from block to block."""
        return self._held.nbytes + self._most.nbytes + self._kept.size

    def cells(self, block: int) -> Ints:
        """Those of one block."""
        found = np.empty(self.steps * self.width, np.int64)
        _sampler(self.law).fill(found, self.key.stream(CELLS, block))
        return found.reshape(self.steps, self.width)

    def places(self, block: int) -> Places:
        """Return the first 64 bits of the places in their cells, of one block."""
        return (
            self.key.stream(PLACES, block).words(self.steps * self.width, np.uint64).reshape(self.steps, -1)
        )

    def next(self) -> Ints:
        """The integers of the next block, one row a step."""
        from scipy.signal import lfilter

        drawn, places = self.cells(self.blocks), self.places(self.blocks)
        cells = drawn.astype(np.float64)
        # Bounds may only widen: they hold whether or not this block is finished.
        self._highest = max(self._highest, float(np.abs(cells).max()))
        total, held = np.zeros_like(cells) if self.buffers.summed else cells.copy(), np.empty_like(self._held)
        for j, (pole, gain) in enumerate(zip(self.poles, self.gains, strict=True)):
            out, _ = lfilter([1.0], [1.0, -pole], cells, axis=0, zi=pole * self._held[j][None])
            self._most[j] = max(self._most[j], float(np.abs(out).max()))
            if self.buffers.summed:
                total += gain * out
            else:
                total[1:] += gain * out[:-1]
                total[0] += gain * self._held[j]
            held[j] = out[-1]
        found = self._rounded(total, drawn, places)
        kept = self._kept.after(drawn, places, highest=self._highest, bent=self._bent)
        self._held, self.blocks = held, self.blocks + 1
        self._kept.held, self._kept.off = kept
        return found

    @property
    def _bent(self) -> float:
        """e^L − 1, from above, for the largest cell so far (`filtered`)."""
        return math.expm1(min((self._highest + 1) / float(self.law) ** 2, STEEP)) * (1 + 1e-9)

    def _rounded(self, total: Floats, cells: Ints, within: Places) -> Ints:
        """By floats where they are proved to do, from the start of the block elsewhere."""
        first = self.blocks * self.steps
        unit = 2.0 ** (self.shift - self.fine)
        places = total * unit + 0.5
        if not np.all(np.abs(places) < MOST_PLACE):
            raise NotSound(
                "This noise does not fit 62 bits, or is no number.", remedy="Count in coarser units."
            )
        whole = np.floor(places)
        rest, margin = (
            places - whole,
            self._margin(first + self.steps) * unit + U * float(np.abs(places).max()),
        )
        found = whole.astype(np.int64)
        for step, column in np.argwhere(~((rest > margin) & (rest < 1 - margin))).tolist():
            one = slice(column, column + 1)
            near = self._from_block(step, column, cells[: step + 1, one], within[: step + 1, one])
            found[step, column] = self._exact(first + step, column) if near is None else near
            self.settled += 1
        return found

    def _from_block(self, row: int, column: int, cells: Ints, places: Places) -> int | None:
        """Return the integer of a row of the block at hand; None where fixed point leaves it open.

        Args:
            row: The row.
            column: The stream.
            cells: The cells of that stream up to the row.
            places: Their places.
        """
        rows = row + 1 if self.buffers.summed else row
        start, bent = self._kept.column(column), self._bent
        held, off = start.after(cells[:rows], places[:rows], highest=self._highest, bent=bent)
        with workprec(BITS + GUARD):
            gains = self.buffers.gains(self.buffers.poles(BITS))
            terms = zip(gains, held[:, 0], off, strict=True)
            total = sum((a * enclosed(int(u), far) for a, u, far in terms), arb(0))
            if not self.buffers.summed:
                total += enclosed_number(int(cells[row, 0]), int(places[row, 0]), bent)
            place = total * arb(2) ** (self.shift - self.fine) + arb(1) / 2
            whole = place.floor().unique_fmpz()
        return None if whole is None else int(whole)

    def _margin(self, steps: int) -> float:
        """How far a sum of so many steps may be off, in fine steps."""
        reach = np.minimum(float(steps), 1 / np.maximum(1 - np.abs(self.poles) - self._off, 1e-300))
        own = 2.1 * U * self._most * reach + 1.1 * self._off * reach**2 * self._highest + 0.5 * reach
        terms = (len(self.poles) + 8) * U * self._most
        direct = 0.5 + (len(self.poles) + 8) * U * self._highest
        return float(1.01 * (np.abs(self.gains) @ (own + terms) + direct))

    def _exact(self, step: int, column: int) -> int:
        """From the first step on, in balls."""
        more = 0
        while True:
            with workprec(BITS + more + GUARD):
                total = self._summed(step, column, more) * arb(2) ** (self.shift - self.fine) + arb(1) / 2
                whole = total.floor().unique_fmpz()
            if whole is not None:
                return int(whole)
            more += STEP

    def _summed(self, step: int, column: int, more: int) -> arb:
        poles = self.buffers.poles(BITS + more)
        gains, held, last = self.buffers.gains(poles), [arb(0)] * len(poles), arb(0)
        for number in self._numbers(step, column, more):
            if not self.buffers.summed:
                last = number + sum((a * u for a, u in zip(gains, held, strict=True)), arb(0))
            held = [m * u + number for m, u in zip(poles, held, strict=True)]
        return sum((a * u for a, u in zip(gains, held, strict=True)), arb(0)) if self.buffers.summed else last

    def _numbers(self, step: int, column: int, more: int) -> Iterator[arb]:
        """N_0, …, N_step in fine steps: cells alone, or places in them."""
        for block in range(step // self.steps + 1):
            places = self.places(block)
            for row, cell in enumerate(self.cells(block)[: step + 1 - block * self.steps, column].tolist()):
                if not more:
                    yield arb(cell, 0.5)
                    continue
                bits = self.key.stream(FURTHER, block * self.steps + row, column)
                known = int(places[row, column])
                for _ in range(more // STEP - 1):
                    known = known << STEP | bits.integer(STEP)
                yield real(cell, arb(2 * known + 1, 1) / arb(2) ** (more + 1), self.law)


@lru_cache(64)
def _zeros(buffers: Buffers, bits: int) -> tuple[tuple[Fraction, Fraction], ...]:
    ends = [Fraction(-1), *sorted(buffers.decays)]
    return tuple(buffers.zero(low, high, bits) for low, high in pairwise(ends))


def block_steps(width: int) -> int:
    """Steps of a block for so many streams: a power of two."""
    return max(LEAST, BLOCK >> (width - 1).bit_length())


@lru_cache(16)
def _sampler(scale: Fraction) -> Sampler:
    return Sampler(RoundedGaussian(scale))
