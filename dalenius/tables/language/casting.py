"""What a text must look like to be cast, whatever the engine: regular expressions that all of them read.

    integer    an optional sign and digits                   " -12 "
    real       digits with a point or an exponent, or none   "1.5", ".5", "5.", "1e-3"
    date       a year, month and day, a time may follow      "2024-02-29"
    moment     the same, to the microsecond                  "2024-02-29 12:34:56.789", "2024-02-29T12:34"
    boolean    true, t, yes, y, 1, false, f, no, n, 0        without regard to case, and without blanks

Blanks around it do not matter. All else, such as "inf", "1_000", "0x1F", "24:00:00", or a text of more than
`LONGEST` characters, is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
INTEGER = " *[+-]?[0-9]+ *"
REAL = " *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,3})? *"
MOMENT = f" *{_DAY}([ T]{_TIME})? *"
GRAMMAR: Mapping[str, str] = {"integer": INTEGER, "real": REAL, "date": MOMENT, "moment": MOMENT}
"""By the type that a text is cast to; truth values are listed."""
TRUE, FALSE = "('true', 't', 'yes', 'y', '1')", "('false', 'f', 'no', 'n', '0')"
LONGEST = 255
