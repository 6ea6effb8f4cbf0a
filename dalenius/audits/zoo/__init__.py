"""A zoo of broken mechanisms, each beside its correct twin: what an audit must catch, and must not accuse.

    >>> from dalenius.audits.zoo import table, zoo
    >>> row, = table(each for each in zoo() if each.name == "Laplace at half the scale")
    >>> row.caught, row.twin_rejected
    (True, False)

Nothing in it may be used to protect anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.audits.zoo.collection import zoo
    from dalenius.audits.zoo.specimen import Row, Specimen, Verdict, table
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Row": "dalenius.audits.zoo.specimen",
            "Specimen": "dalenius.audits.zoo.specimen",
            "Verdict": "dalenius.audits.zoo.specimen",
            "table": "dalenius.audits.zoo.specimen",
            "zoo": "dalenius.audits.zoo.collection",
        },
    )

__all__ = ["Row", "Specimen", "Verdict", "table", "zoo"]
