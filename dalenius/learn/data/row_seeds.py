"""Seeds of single rows: what is random in reading a row depends on that row and on the step alone.

Augmentation draws from generators that a whole process shares. Seeded row by row (`quiet.seed_generators`),
it does not depend on the other rows of a batch, their order, or the number of worker processes. A data set
with a generator of its own is not covered.
"""

from __future__ import annotations

from hashlib import blake2b

READ_ALONE = "reading and collating a row uses that row alone, and keeps nothing for the next"
"""What is taken for granted of the code that reads rows, as a sentence for a receipt."""
SEED_BYTES = 4
"""The length of seeds, which NumPy limits."""


def row_seed(seed: int, row: int, slot: int) -> int:
    """Return the seed of a row.

    Args:
        seed: The secret seed of the step.
        row: The number of the row in the data set.
        slot: Which of the rows of its example it is, so that several views of a row differ.
    """
    digest = blake2b(f"{seed} {row} {slot}".encode(), digest_size=SEED_BYTES).digest()
    return int.from_bytes(digest, "little")
