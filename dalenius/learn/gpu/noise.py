"""Rounded Gaussian noise on a GPU: the draws of `dalenius.noise.addressed`, added to a total where it lies.

Two kernels. The first makes a tile of words by ChaCha20, looks up what they propose and adds it; entries
whose slots are not sure are left as they are, and listed. The second goes through the list: a layer with V
against lines around the law, then against a double with its bound, and a new attempt where it does not pass.
What even doubles do not decide, a few times in 10¹⁰ draws, is listed for the processor, which uses balls.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from dalenius.learn.gpu import on
from dalenius.noise.addressed import AddressedSampler
from dalenius.noise.chacha import MOST, TILE, Addressed
from dalenius.noise.kernel import Grid

PART = 1 << 29
"""Entries that are done at once: their places fit 32 bits."""
ROOM = 256
"""What a list has room for beyond its expected length and twelve standard deviations."""
LANES = 32
"""Entries that are settled together, until all of them are."""
GRAIN = tl.constexpr(2.0**-32)
RELATIVE = tl.constexpr(2.0**-40)
ABSOLUTE = tl.constexpr(2.0**-300)


@triton.jit
def _turned(word, by: tl.constexpr):
    return (word << by) | (word >> (32 - by))


@triton.jit
def _quarter(a, b, c, d):
    a += b
    d = _turned(d ^ a, 16)
    c += d
    b = _turned(b ^ c, 12)
    a += b
    d = _turned(d ^ a, 8)
    c += d
    b = _turned(b ^ c, 7)
    return a, b, c, d


@triton.jit
def _block(key, counter, purpose, attempt):
    """Sixteen words for each counter (RFC 8439)."""
    zero = counter * 0
    s0, s1, s2, s3 = zero + 0x61707865, zero + 0x3320646E, zero + 0x79622D32, zero + 0x6B206574
    s4, s5, s6, s7 = (
        zero + tl.load(key).to(tl.uint32, bitcast=True),
        zero + tl.load(key + 1).to(tl.uint32, bitcast=True),
        zero + tl.load(key + 2).to(tl.uint32, bitcast=True),
        zero + tl.load(key + 3).to(tl.uint32, bitcast=True),
    )
    s8, s9, s10, s11 = (
        zero + tl.load(key + 4).to(tl.uint32, bitcast=True),
        zero + tl.load(key + 5).to(tl.uint32, bitcast=True),
        zero + tl.load(key + 6).to(tl.uint32, bitcast=True),
        zero + tl.load(key + 7).to(tl.uint32, bitcast=True),
    )
    s13, s14 = zero + purpose, zero + attempt
    x0, x1, x2, x3, x4, x5, x6, x7 = s0, s1, s2, s3, s4, s5, s6, s7
    x8, x9, x10, x11, x12, x13, x14, x15 = s8, s9, s10, s11, counter, s13, s14, zero
    for _ in range(10):
        x0, x4, x8, x12 = _quarter(x0, x4, x8, x12)
        x1, x5, x9, x13 = _quarter(x1, x5, x9, x13)
        x2, x6, x10, x14 = _quarter(x2, x6, x10, x14)
        x3, x7, x11, x15 = _quarter(x3, x7, x11, x15)
        x0, x5, x10, x15 = _quarter(x0, x5, x10, x15)
        x1, x6, x11, x12 = _quarter(x1, x6, x11, x12)
        x2, x7, x8, x13 = _quarter(x2, x7, x8, x13)
        x3, x4, x9, x14 = _quarter(x3, x4, x9, x14)
    return (
        x0 + s0,
        x1 + s1,
        x2 + s2,
        x3 + s3,
        x4 + s4,
        x5 + s5,
        x6 + s6,
        x7 + s7,
        x8 + s8,
        x9 + s9,
        x10 + s10,
        x11 + s11,
        x12 + counter,
        x13 + s13,
        x14 + s14,
        x15,
    )


@triton.jit
def _word(key, entry, purpose, attempt):
    """The word of each entry: word j of block 128·t + b for entry 128·j + b of tile t."""
    within = entry % 2048
    words = _block(key, (entry // 2048 * 128 + within % 128).to(tl.uint32), purpose, attempt)
    which = within // 128
    found = words[0]
    for j in tl.static_range(1, 16):
        found = tl.where(which == j, words[j], found)
    return found


@triton.jit
def _summed(total, noise, grid):
    """(total in whole steps, toward zero, within the limit, + noise) · factor."""
    kind = total.dtype
    inverse, limit, factor = tl.load(grid).to(kind), tl.load(grid + 1).to(kind), tl.load(grid + 2).to(kind)
    steps = tl.minimum(tl.maximum(total * inverse, -limit), limit)
    return (steps.to(tl.int32) + noise).to(kind) * factor


@triton.jit
def _add(
    total, size, start, key, firsts, grid, todo, drawn, counts, capacity,
    rest: tl.constexpr, left: tl.constexpr, more: tl.constexpr, sure: tl.constexpr,
):  # fmt: skip
    """One tile: entries from `start` on are those of `total`."""
    tile = start // 2048 + tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, 128)
    counter = (tile * 128 + lane).to(tl.uint32)
    words = _block(key, counter, 0, 0)
    if more:
        further = _block(key, counter, 2, 0)
    open_, seen = tl.zeros([128], tl.int32), tl.zeros([128], tl.int32)
    for j in tl.static_range(16):
        at = tile * 2048 + j * 128 + lane - start
        inside = (at >= 0) & (at < size)
        slot = words[j] >> rest
        place = words[j] & ((1 << left) - 1)
        if more:
            place = (place << more) | (further[j] & ((1 << more) - 1))
        noise = tl.load(firsts + slot) + place.to(tl.int32, bitcast=True)
        safe = inside & (slot < sure)
        tl.store(total + at, _summed(tl.load(total + at, mask=safe, other=0.0), noise, grid), mask=safe)
        open_ += (inside & (slot >= sure)).to(tl.int32)
        seen += inside.to(tl.int32)
    tl.atomic_add(counts + 2, tl.sum(seen))
    number = tl.sum(open_)
    place_in_list = tl.atomic_add(counts, number) + tl.cumsum(open_) - open_
    for j in tl.static_range(16):
        at = tile * 2048 + j * 128 + lane - start
        unsure = (at >= 0) & (at < size) & ((words[j] >> rest) >= sure)
        listed = unsure & (place_in_list < capacity)
        tl.store(todo + place_in_list, at, mask=listed)
        tl.store(drawn + place_in_list, words[j].to(tl.int32, bitcast=True), mask=listed)
        place_in_list += unsure.to(tl.int32)


@triton.jit
def _settle(
    total, start, key, firsts, grid, lines, law, todo, drawn, counts, capacity, open_, room,
    rest: tl.constexpr, left: tl.constexpr, more: tl.constexpr, sure: tl.constexpr, doubtful: tl.constexpr,
    lanes: tl.constexpr,
):  # fmt: skip
    """Listed entries, attempt by attempt. `law` is: 1/scale, and the unit C·W of heights.

    Blocks of the cipher are what takes time: V is made only where a lane's slot is not sure.
    """
    number = tl.minimum(tl.load(counts), capacity)
    place = tl.program_id(0) * lanes + tl.arange(0, lanes)
    active = place < number
    at = tl.load(todo + place, mask=active, other=0)
    word = tl.load(drawn + place, mask=active, other=0).to(tl.uint32, bitcast=True)
    entry = at.to(tl.int64) + start
    h, unit = tl.load(law), tl.load(law + 1)
    noise = tl.zeros([lanes], tl.int32)
    done = active & False
    attempt = 0
    while tl.max(active.to(tl.int32)) > 0:
        slot = word >> rest
        within = word & ((1 << left) - 1)
        if more:
            within = (within << more) | (_word(key, entry, 2, attempt) & ((1 << more) - 1))
        proposed = tl.load(firsts + slot) + within.to(tl.int32, bitcast=True)
        unsure = slot >= sure
        bits = tl.zeros([lanes], tl.uint32)
        if tl.max((active & unsure).to(tl.int32)) > 0:
            bits = _word(key, entry, 1, attempt)
        row = tl.where(unsure, slot - sure, 0).to(tl.int32, bitcast=True)
        layer, low = tl.load(lines + 4 * row), tl.load(lines + 4 * row + 1)
        high, slope = tl.load(lines + 4 * row + 2), tl.load(lines + 4 * row + 3)
        least = layer + bits.to(tl.float64) * GRAIN
        along = slope * within.to(tl.float64)
        passed = (slot < sure) | (least + GRAIN <= low + along)
        between = (slot >= sure) & (least + GRAIN > low + along) & (least < high + along)
        z = tl.abs(proposed).to(tl.float64) * h
        value = tl.exp(-0.5 * z * z)
        square = (h * z) * (h * z)
        rest_of = tl.exp(0.5 * h * z) * square * square / 20 + square * h * h / 3 + h * h * h * h / 8
        series = 1 + (square - h * h) / 24
        off = 2 * series * (RELATIVE * value + ABSOLUTE) + value * (rest_of / 79 + RELATIVE)
        value = value * series
        of_bin = row < doubtful
        passed |= between & of_bin & (least + GRAIN <= (value - off) * unit)
        failed = (slot >= sure) & (least + GRAIN > low + along) & (least >= high + along)
        failed |= between & of_bin & (least >= (value + off) * unit)
        unknown = active & (passed == 0) & (failed == 0)
        if tl.max(unknown.to(tl.int32)) > 0:
            where = tl.atomic_add(counts + 1, tl.sum(unknown.to(tl.int32)))
            where = where + tl.cumsum(unknown.to(tl.int32)) - 1
            tl.store(open_ + 2 * where, at, mask=unknown & (where < room))
            tl.store(open_ + 2 * where + 1, attempt, mask=unknown & (where < room))
        noise = tl.where(active & passed, proposed, noise)
        done |= active & passed
        active = active & failed
        attempt += 1
        if tl.max(active.to(tl.int32)) > 0:
            word = _word(key, entry, 0, attempt)
    tl.store(total + at, _summed(tl.load(total + at, mask=done, other=0.0), noise, grid), mask=done)


class DeviceNoise:
    """The noise of a sampler, on one device."""

    def __init__(self, sampler: AddressedSampler, device: torch.device) -> None:
        self.sampler, narrow = sampler, sampler.narrow
        self._firsts = torch.from_numpy(narrow.bins.firsts).to(device)
        self._lines = torch.from_numpy(narrow.acceptance.lines).to(device)
        law = [1 / float(narrow.acceptance.law.spread), narrow.table.scale * 2.0**narrow.table.shift]
        # Below, the series of a weight has no bound, and balls decide.
        self._series = narrow.acceptance.law.spread >= 1
        self._law = torch.tensor(law, dtype=torch.float64, device=device)
        slots = 1 << 32 - narrow.bins.rest
        self._unsure = 1 - narrow.table.sure / slots
        self._far = 1 - (narrow.table.sure + (narrow.table.doubtful if self._series else 0)) / slots
        self._sizes = {
            "rest": narrow.bins.rest,
            "left": narrow.table.shift - narrow.more,
            "more": narrow.more,
            "sure": narrow.table.sure,
        }

    def add(self, total: Tensor, stream: Addressed, grid: Grid, *, start: int = 0) -> None:
        """To a contiguous total, of which the first entry is number `start` of the stream."""
        self.begin(total, stream, grid, start=start)()

    def begin(self, total: Tensor, stream: Addressed, grid: Grid, *, start: int = 0) -> Callable[[], None]:
        """The same; it is done, and known to be, when what is returned has been called."""
        flat = total.detach().view(-1)
        if start + flat.numel() > MOST:
            raise ValueError(f"A stream has addresses for {MOST} entries.")
        with on(flat):
            begun = [
                self._begin(flat[first : first + PART], stream, grid, start + first)
                for first in range(0, flat.numel(), PART)
            ]

        def finish() -> None:
            for one in begun:
                one()

        return finish

    def _begin(self, flat: Tensor, stream: Addressed, grid: Grid, start: int) -> Callable[[], None]:
        size, device = flat.numel(), flat.device
        key = _there(torch.tensor(struct.unpack("<8i", stream.key), dtype=torch.int32), device)
        numbers = _there(torch.tensor([1 / grid.step, grid.limit, grid.factor], dtype=torch.float64), device)
        capacity, room = _length(size, self._unsure), _length(size, self._far)
        todo, drawn, open_, counts = (
            torch.zeros(many, dtype=torch.int32, device=device) for many in (capacity, capacity, 2 * room, 3)
        )
        tiles, table = -(-(start + size) // TILE) - start // TILE, self.sampler.narrow.table
        _add[(tiles,)](
            flat, size, start, key, self._firsts, numbers, todo, drawn, counts, capacity, **self._sizes,
            num_warps=4,
        )  # fmt: skip
        _settle[(-(-capacity // LANES),)](
            flat, start, key, self._firsts, numbers, self._lines, self._law, todo, drawn, counts, capacity,
            open_, room, **self._sizes, doubtful=table.doubtful if self._series else 0,
            lanes=LANES, num_warps=LANES // 32,
        )  # fmt: skip

        def finish() -> None:
            listed, left, seen = counts.tolist()
            if seen != size or listed > capacity or left > room:
                raise RuntimeError("Noise did not reach every entry; nothing is released.")
            for at, attempt in open_[: 2 * left].view(-1, 2).tolist():
                self._decide(flat[at : at + 1], stream, grid, start + at, attempt)

        return finish

    def _decide(self, one: Tensor, stream: Addressed, grid: Grid, entry: int, attempt: int) -> None:
        """By the processor."""
        from dalenius.noise import kernel

        value = one.cpu().numpy()
        kernel.loops.add(value, self.sampler.settled(stream, np.array([entry]), attempt), grid)
        one.copy_(torch.from_numpy(value))


def _length(size: int, share: float) -> int:
    """Of a list of the entries that are of a share of the slots at the first attempt, or at a later one."""
    expected = size * share / (1 - share) if share < 0.5 else size
    return min(size, math.ceil(expected + 12 * math.sqrt(expected)) + ROOM)


def _there(small: Tensor, device: torch.device) -> Tensor:
    """On the device, without waiting for what it does."""
    return small.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else small
