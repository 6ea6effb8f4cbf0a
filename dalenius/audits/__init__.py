"""Audits: the library attacks its own claims, and anybody's. `audit` is the adversary, `Audit` the report.

`audit_training` attacks a model from one training run; `replay` holds a training loop against its declared
loss. An audit that finds nothing is no proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names

if TYPE_CHECKING:
    from dalenius.audits.claims import audit
    from dalenius.audits.replaying import Recorder, replay
    from dalenius.audits.report import Audit
    from dalenius.audits.single_run import TrainingAudit, one_run
    from dalenius.audits.training import audit_training
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Audit": "dalenius.audits.report",
            "Recorder": "dalenius.audits.replaying",
            "TrainingAudit": "dalenius.audits.single_run",
            "audit": "dalenius.audits.claims",
            "audit_training": "dalenius.audits.training",
            "one_run": "dalenius.audits.single_run",
            "replay": "dalenius.audits.replaying",
        },
    )

__all__ = ["Audit", "Recorder", "TrainingAudit", "audit", "audit_training", "one_run", "replay"]
