"""`Release`: the only thing that leaves, with the `Receipt` that says what it cost and how it was made.

A release is a small table. Keys name the rows, measures are what was released; each measure comes with its
error bars as columns of their own (`n`, `n_low`, `n_high`), which hold the true value with the stated
confidence, each by itself, by the law of the noise. Where something is to be said of single cells there is a
column more (`n_flag`): that a side of a bar is open, or that bounds took much. All of it may be published: a
receipt holds public parameters only. Whatever is computed from a release is free; `postprocess`, `clamp` and
`round` list it.

It prints as a line or a table, shows in notebooks, and is kept as JSON: `kind` and `version` never change in
meaning, and what is not known is refused.
"""

from dalenius.release.cells import Cell
from dalenius.release.receipt import AGGREGATE, EXACT, TAINTED, Entry, Receipt
from dalenius.release.release import CONFIDENCE, Release

__all__ = ["AGGREGATE", "CONFIDENCE", "EXACT", "TAINTED", "Cell", "Entry", "Receipt", "Release"]
