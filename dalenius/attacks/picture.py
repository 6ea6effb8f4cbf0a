"""People with and without a secret, by what an attack says of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dalenius.figures import Figure, Series


def apart(title: str, secret: NDArray[np.bool_], said: NDArray[np.float64]) -> Figure:
    """What is said of those who have the secret and of those who do not, each in rising order."""
    drawn = []
    for name, chosen in (("has the secret", secret), ("has it not", ~secret)):
        height = np.sort(said[chosen])
        drawn.append(Series(name, np.linspace(0, 1, len(height)).tolist(), height.tolist(), style="points"))
    return Figure(
        title,
        "people, in rising order",
        "what the answers say: 1 is yes, 0 is no",
        series=[*drawn, Series("taken as yes above", [0, 1], [0.5, 0.5], style="dashed")],
    )
