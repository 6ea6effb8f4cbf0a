"""Reports: studies and pages laid out from runs, attacks, receipts and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.report import study as study
else:
    __getattr__, __dir__ = lazy_names(__name__, {"study": "dalenius.report.study"})

__all__: list[str] = []
