"""How the options of `dalenius query` are called where a message of the library names an argument of Python.

Messages keep the arguments that they name as data (`errors.Message`), so each is looked up here by its name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dalenius.errors import Argument, DaleniusError

OPTIONS: dict[str, str] = {
    "account": "--account {0}",
    "account.shared": "--share {0}",
    "bounds": "--bound-rows, --bound-groups or --bound-pairs",
    "bounds.groups": "--bound-groups {0}",
    "bounds.pairs": "--bound-pairs {0}",
    "bounds.ranges": '--bound-range "{0}=LOW:HIGH"',
    "bounds.rows": "--bound-rows {0}",
    "budget": "--budget {0} --delta {1}",
    "budget.left_out": "Leave out --budget and --delta",
    "by": "--by {0}",
    "dates": "--dates {0}",
    "decimal": "--decimal {0}",
    "delta": "--delta {0}",
    "epsilon": "--epsilon {0}",
    "keys": "--keys {0}",
    "ledger": "--ledger {0}",
    "name": "--name {0}",
    "null": "--null {0}",
    "public_size": "--public-size {0}",
    "purpose": "--purpose {0}",
    "ranges": "--range {0}=LOW:HIGH",
    "relation": "--relation {0}",
    "rows_per_unit": "--rows-per-unit {0}",
    "table": "--table {0}",
    "time": "--time {0}",
    "unit": "--unit-column {1}, or --unit {0} if each row is one",
    "unit.column": "--unit-column",
    "unit.missing": '--missing "{0}"',
}
"""The option for each argument, with the places of its values."""
NAMED: dict[str, str] = {
    "budget": "--budget and --delta",
    "unit": "--unit and --unit-column",
}
"""The same where no value is given, if that is not the option by itself."""


def option(argument: Argument) -> str:
    """Return what a command line writes for an argument; what has no option stays as it is."""
    written = OPTIONS.get(argument.name)
    if written is None:
        return argument.python
    if "{" not in written:
        return written
    if argument.values:
        return written.format(*argument.values)
    return NAMED.get(argument.name, written.split()[0])


@contextmanager
def naming_options() -> Iterator[None]:
    """Raise the errors of the block with options in place of arguments."""
    try:
        yield
    except DaleniusError as error:
        raise error.spelled(option) from None
