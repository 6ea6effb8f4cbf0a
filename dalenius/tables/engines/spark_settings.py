"""The settings of our own session: whatever a cluster or a user has set, answers are the same.

What tells how files are read is kept as the user has it.
"""

from __future__ import annotations

from typing import Any

SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.groupByAliases": "false",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # Spark adds up the bytes of a batch anew for each row, unless this says that no number is too many.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "32768",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # What is broadcast passes through the driver.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
_ABOUT_FILES = ("parquet", "orc", "avro", "json", "csv", "xml")
_DROPPED = ("spark.sql.legacy.", "spark.sql.ansi.", "spark.sql.optimizer.excludedRules", "spark.sql.parser.")


def own_session(session: Any) -> Any:
    """A session beside another: with its settings, but for those that would change an answer."""
    ours = session.newSession()
    for name, value in session.conf.getAll.items():
        if name.startswith("spark.sql.") and ours.conf.isModifiable(name):
            _set(ours, name, str(value))
    for name, value in SETTINGS.items():
        ours.conf.set(name, value)
    return ours


def _set(ours: Any, name: str, value: str) -> None:
    if name.startswith(_DROPPED) and not any(word in name for word in _ABOUT_FILES):
        ours.conf.unset(name)
    else:
        ours.conf.set(name, value)
