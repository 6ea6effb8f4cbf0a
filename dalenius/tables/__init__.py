"""Private tables: SQL and dataframes over contributions that are bounded per unit, charged to an account.

`dp.table` opens one and `dp.agg` makes aggregates; docs/tables.md shows how they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.tables.asked import Asked
    from dalenius.tables.bounds import Bounds
    from dalenius.tables.explanation import Explanation
    from dalenius.tables.table import Table
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Asked": "dalenius.tables.asked",
            "Bounds": "dalenius.tables.bounds",
            "Explanation": "dalenius.tables.explanation",
            "Table": "dalenius.tables.table",
        },
    )

__all__ = ["Asked", "Bounds", "Explanation", "Table"]
