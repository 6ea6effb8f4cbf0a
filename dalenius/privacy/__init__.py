"""Who is protected, how far one unit can move a value, and values on a grid.

`unit` holds `Unit` and the neighbouring relations, `sensitivity` the bounds in each norm,
`quantized` the grid on which values enter a mechanism, `numbers` the exact reading of arguments,
`records` the reading of private records, none of which is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.privacy.quantized import Grid, clip_norm, exact_sum
    from dalenius.privacy.sensitivity import Sensitivity
    from dalenius.privacy.unit import Unit, steps_between
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Grid": "dalenius.privacy.quantized",
            "Sensitivity": "dalenius.privacy.sensitivity",
            "Unit": "dalenius.privacy.unit",
            "clip_norm": "dalenius.privacy.quantized",
            "exact_sum": "dalenius.privacy.quantized",
            "steps_between": "dalenius.privacy.unit",
        },
    )

__all__ = ["Grid", "Sensitivity", "Unit", "clip_norm", "exact_sum", "steps_between"]
