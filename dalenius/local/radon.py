"""Sums over the hyperplanes of a finite space, all at once: the decoder of geometric oracles.

Let F hold a number for each (y_1, …, y_m, s). For every (x_1, …, x_m) and s wanted is the sum of all F with
s − x_1·y_1 − … − x_m·y_m in the place of s. One coordinate after the other is summed, which replaces y_j by
x_j:

    F'(x_j, y_{j+1}, …, s) = Σ over y_j of F(y_j, y_{j+1}, …, s − x_j·y_j).

Each step costs `order` additions for every number there is, all of them of whole numbers and exact. This is
the dynamic programme of Feldman, Nelson, Nguyen and Talwar (2022) in one formula.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.local.finite_field import Field

Ints = NDArray[np.int64]


def swept(table: Ints, field: Field, coordinates: int, *, last: int | None = None) -> Ints:
    """A table of shape (order^coordinates, order), of y and s, as one of x and s.

    The first coordinate of y varies the fastest, and of x the slowest. With `last`, only the column of that s
    is made in the last step.
    """
    q = field.order
    elements = np.arange(q, dtype=np.int32)
    state = table.reshape(1, -1, q)
    for step in range(coordinates):
        wanted = elements if last is None or step + 1 < coordinates else elements[last : last + 1]
        rest = state.reshape(len(state), -1, q, q)
        total = np.zeros((len(state), rest.shape[1], q, len(wanted)), np.int64)
        for y in range(q):
            moved = field.opposites[field.multiply(elements, np.full(q, y, np.int32))]
            places = field.add(moved[:, None], wanted[None, :])
            total += np.take(rest[:, :, y, :], places, axis=2)
        state = np.ascontiguousarray(total.transpose(0, 2, 1, 3)).reshape(-1, rest.shape[1], len(wanted))
    return state[:, 0, :]
