"""Sessions of our own beside the user's: whatever a cluster or a user has set, answers are the same.

What tells how files are read is kept as the user has it.

A session takes about half a megabyte of the driver, and threads of Spark hold on to it long after nobody uses
it. So a session that a closed table has returned is used again, with its settings made anew: there are never
more than tables that were open at the same time.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import WeakKeyDictionary

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
    # The driver keeps descriptions of the last thousand queries, and event logs keep them all.
    "spark.sql.maxPlanStringLength": "2048",
    "spark.sql.ui.explainMode": "simple",
    # What the parser has learned of the grammar grows with every new form of a query, and is never let go.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "10000",
    # What is broadcast passes through the driver.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
_ABOUT_FILES = ("parquet", "orc", "avro", "json", "csv", "xml")
_DROPPED = ("spark.sql.legacy.", "spark.sql.ansi.", "spark.sql.optimizer.excludedRules", "spark.sql.parser.")


_returned: WeakKeyDictionary[Any, deque[Any]] = WeakKeyDictionary()
"""Sessions that no table uses, by the context of Spark that they belong to. No lock is taken, as a table may
be closed by the collector of garbage, in whatever thread and at whatever moment."""


def own_session(session: Any) -> Any:
    """Return a session beside another, with its settings but for those that would change an answer.

    It belongs to the caller until `return_session` is called with it.
    """
    unused = _returned.setdefault(session.sparkContext, deque())
    try:
        ours = unused.pop()
    except IndexError:
        ours = session.newSession()
    else:
        _forget_settings(ours)
    for name, value in session.conf.getAll.items():
        if name.startswith("spark.sql.") and ours.conf.isModifiable(name):
            _set(ours, name, str(value))
    for name, value in SETTINGS.items():
        ours.conf.set(name, value)
    return ours


def return_session(ours: Any) -> None:
    """Let another table use a session of `own_session`, from which all views were dropped."""
    _returned.setdefault(ours.sparkContext, deque()).append(ours)


def _forget_settings(ours: Any) -> None:
    """Take back what was set in a session."""
    for name in ours.conf.getAll:
        if name.startswith("spark.sql.") and ours.conf.isModifiable(name):
            ours.conf.unset(name)


def _set(ours: Any, name: str, value: str) -> None:
    if name.startswith(_DROPPED) and not any(word in name for word in _ABOUT_FILES):
        ours.conf.unset(name)
    else:
        ours.conf.set(name, value)
