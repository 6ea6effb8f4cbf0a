"""Audits: the library attacks its own claims. `audit` is the adversary, `Audit` the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.audits.claims import audit
    from dalenius.audits.report import Audit
else:
    __getattr__, __dir__ = lazy_names(
        __name__, {"Audit": "dalenius.audits.report", "audit": "dalenius.audits.claims"}
    )

__all__ = ["Audit", "audit"]
