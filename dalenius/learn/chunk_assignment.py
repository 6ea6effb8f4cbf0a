"""Assign the examples of a batch to chunks, each by itself, so that a loop may treat chunks differently.

A batch that does not fit into memory is handed out in chunks, and the loop may do something else in each: a
sign by its own counter, an annealed weight, random numbers that are drawn once. If chunks were cut at equal
distances, one more example would move others across the cuts, and with them the gradients of others.

Here every example gets the number of its chunk by random bits of its own:

    number_i = ⌊u_i · count / 2³²⌋,   u_i independent and uniform on the integers below 2³²

*Claim.* Let the number of chunks follow from public facts, and let the gradient of an example be a function
of the example, of the number of its chunk, of random numbers, and of public values. Then the sums of clipped
gradients of two batches that differ by one example differ by at most what the clipping rule says of one
example, if each example that is in both has the same chunk and random numbers in both. The law of the pairs
(example is in the batch, number of its chunk) is the same for both, so they can be taken to be the same; the
loss of a step, a mixture over them, is bounded by that of the sampled step (joint convexity). ∎

Sizes of chunks vary, as sums of independent coins do. The number of chunks is chosen so that a chunk exceeds
`chunk` examples once in a million times. Where that would ask for chunks of less than a quarter of `chunk` on
average, which is so for a `chunk` below 20, chunks of a quarter are used, and exceed it more often.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dalenius.noise.bits import Bits

RARE = 1e-6
"""The probability that a chunk has more examples than were planned for."""
SMALLEST = 4
"""The planned size of a chunk is at least its largest size divided by this."""
WORD = 32
"""Bits of randomness of the number of a chunk. Its law need not be uniform: it is the same for everybody."""


@lru_cache(maxsize=64)
def chunk_count(examples: int, chunk: int) -> int:
    """Return into how many chunks a batch is cut.

    Args:
        examples: A public number that batches hardly ever exceed.
        chunk: The most examples that a chunk is planned to hold.
    """
    if examples <= chunk:
        return 1
    from scipy.special import bdtrc

    low, high = -(-examples // chunk), -(-SMALLEST * examples // chunk)
    while low < high:
        middle = (low + high) // 2
        if bdtrc(chunk, examples, 1 / middle) <= RARE:
            high = middle
        else:
            low = middle + 1
    return low


def assign_chunks(rows: NDArray[np.int64], count: int, bits: Bits) -> list[NDArray[np.int64]]:
    """Return the examples of each chunk, in the order in which they are given.

    Args:
        rows: One entry, or one line, for each example of the batch.
        count: The number of chunks.
        bits: Random bits of which every example gets 32.
    """
    if count == 1:
        return [rows]
    words = bits.words(len(rows), np.uint32).astype(np.uint64)
    numbers = words * np.uint64(count) >> np.uint64(WORD)
    order = np.argsort(numbers, kind="stable")
    return np.split(rows[order], np.searchsorted(numbers[order], np.arange(1, count, dtype=np.uint64)))
