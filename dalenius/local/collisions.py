"""How many people a sketch cannot tell from those who have a string: surveys of sketches, without reports.

Given the hashes, which are public, a report is of a row where its own string falls on the same column as d
with the chance k/rows, where k is in how many rows the two do. So of n_s people with each string s

    M = Σ_s Bin(n_s, k_sd/rows)   report where d falls, and   Bin(M, p) + Bin(n − M, q)   support it,

exactly, for each d by itself. Rows are a power of two, so the first needs fair coins alone (`crowds`).
"""

from __future__ import annotations

import numpy as np

from dalenius.errors import InvalidArgument
from dalenius.local.crowds import Ints, dyadic
from dalenius.local.strings import Words, constants, places

MOST_STRINGS = 1000
AT_ONCE = 1 << 20
"""Places of strings in rows that are compared at a time."""


def collided(words: Words, people: Ints, rows: int, columns: int) -> Ints:
    """M of each string, each by itself."""
    if len(words) > MOST_STRINGS:
        raise InvalidArgument(
            f"Surveys of sketches are drawn for at most {MOST_STRINGS} strings.",
            remedy="Pass the most frequent ones, and those that are asked about.",
        )
    # Those who meet a string in as many rows are one number of trials.
    keys = np.arange(len(words))[:, None] * (rows + 1) + meeting(words, rows, columns)
    different, groups = np.unique(keys, return_inverse=True)
    trials, found = np.zeros(different.size, np.int64), np.zeros(len(words), np.int64)
    np.add.at(trials, groups.reshape(keys.shape), people[None])
    which, parts = np.divmod(different, rows + 1)
    np.add.at(found, which, dyadic(trials, parts, (rows - 1).bit_length()))
    return found


def meeting(words: Words, rows: int, columns: int) -> Ints:
    """In how many rows two strings fall on the same column, for each pair."""
    from scipy.sparse import csr_array

    many, family = len(words), constants(rows)
    found, step = np.zeros((many, many), np.int64), max(AT_ONCE // many, 1)
    for start in range(0, rows, step):
        spots = places(words[:, None], family[None, start : start + step], columns)
        here = spots.shape[1]
        cells = spots + np.arange(here) * columns
        marks = csr_array(
            (np.ones(cells.size, np.int32), cells.ravel(), np.arange(many + 1) * here),
            shape=(many, here * columns),
        )
        found += (marks @ marks.T).toarray()
    return found
