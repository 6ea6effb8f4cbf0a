"""How released numbers and facts look: in a terminal (`tables`) and in a notebook (`pages`).

A number is written with its interval: `12 ± 3`, the value with as many digits as the interval has meaning
for and the interval rounded outward; `12 (8 to 20)` where it is more than a little lopsided; `12 (8 or more)`
where one side is open, and `12 (open)` where both are. Texts come from data sets, so what could act on a
terminal or a page is made harmless. Imports nothing of the library.
"""

from dalenius.display.cells import FLAGS, MARK, harmless, number, with_bar
from dalenius.display.pages import Fact, facts, grid, page, part_left, sentences
from dalenius.display.tables import ENDS, Columns, footnotes, line, table

__all__ = [
    "ENDS",
    "FLAGS",
    "MARK",
    "Columns",
    "Fact",
    "facts",
    "footnotes",
    "grid",
    "harmless",
    "line",
    "number",
    "page",
    "part_left",
    "sentences",
    "table",
    "with_bar",
]
