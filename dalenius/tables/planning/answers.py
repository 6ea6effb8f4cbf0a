"""`Answer`: what a plan gives, as columns with error bars, and what was done to get them.

HAVING, ORDER BY and LIMIT look at noisy values only, so they are post-processing, and listed as such. An
output that is a formula of m aggregates has a bar in which it lies while each of them lies in its own of risk
α/m, so with probability at least 1 − α (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.tables.language.formulas import (
    AggregateValue,
    Estimate,
    Formula,
    KeyColumn,
    aggregates_of,
    estimate,
    value,
)
from dalenius.tables.planning.afterwards import columns_after
from dalenius.tables.planning.bars import Bars
from dalenius.tables.planning.estimates import WHOLE, Totals
from dalenius.tables.planning.margins import Blocks
from dalenius.tables.planning.measures import ORDERED
from dalenius.tables.question import Output, Question
from dalenius.tables.rows import Key, KeyPart

Column = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """Columns by name; `measures` are those with bars, in columns of their own: `n_low`, `n_high`.

    `n_flag` is there where bounds were searched for, and says of a cell "open above", "open below", "open",
    "unknown", or "clipped" where bounds may have taken more than noise hides; else it is empty.
    """

    columns: Mapping[str, Column]
    measures: tuple[str, ...]
    bounds: tuple[str, ...] = ()
    """What was bounded, how that was found, and the share of units that it clips, by estimate."""
    notes: tuple[str, ...] = ()
    """What was done to released values."""
    warnings: tuple[str, ...] = ()
    """Where an answer should be read with care, by released values only."""
    mechanism: str = ""
    """The parts of the plan with their parameters, as JSON."""


class Sheet:
    """The groups of an answer while it is made: estimates of every aggregate at every risk, once.

    The value of an aggregate is the same wherever it stands: in an output, in a formula and in HAVING.
    Where bounds were searched for (`searched`), each measure has a column of flags.
    """

    def __init__(
        self,
        question: Question,
        keys: Sequence[Key],
        totals: Totals | Blocks,
        alpha: Fraction,
        *,
        searched: bool,
    ) -> None:
        self.question, self.keys, self.totals, self.alpha = question, keys, totals, alpha
        self.searched = searched
        self._bars: dict[tuple[int, int], Bars] = {}
        self._columns: dict[tuple[int, int], list[Estimate]] = {}

    def bars(self, index: int, parts: int = 1) -> Bars:
        """One aggregate, as one of so many parts of a formula."""
        if not self.keys:
            return Bars(*np.zeros((3, 0)))
        if (index, parts) not in self._bars:
            found = self.totals.bars(self.question.aggregates[index], self.alpha / parts)
            self._bars[index, parts] = found if parts == 1 else found.around(self.bars(index).value)
        return self._bars[index, parts]

    def estimates(self, index: int, parts: int = 1) -> list[Estimate]:
        """The same for each group."""
        if (index, parts) not in self._columns:
            if self.totals.unknown(self.question.aggregates[index]):
                # A number would look as if it were of the table: it is of a range that was made up.
                return self._columns.setdefault((index, parts), [Estimate(None)] * len(self.keys))
            bars = self.bars(index, parts)
            plain = _whole if self.question.aggregates[index].kind in WHOLE else float
            ends = zip(bars.value.tolist(), bars.low.tolist(), bars.high.tolist(), strict=True)
            self._columns[index, parts] = [Estimate(*map(plain, each)) for each in ends]
        return self._columns[index, parts]

    def column(self, formula: Formula) -> list[Estimate]:
        """A formula in every group."""
        if isinstance(formula, AggregateValue):
            return self.estimates(formula.index)
        if isinstance(formula, KeyColumn):
            return [Estimate(key[formula.index]) for key in self.keys]
        used = aggregates_of(formula)
        found = {index: self.estimates(index, len(used)) for index in used}
        nothing = Estimate(None)
        rows = (
            [found[j][i] if j in found else nothing for j in range(len(self.question.aggregates))]
            for i in range(len(self.keys))
        )
        return [estimate(formula, key, row) for key, row in zip(self.keys, rows, strict=True)]

    def values(self, formula: Formula) -> list[KeyPart]:
        """Its values alone."""
        used = aggregates_of(formula)
        found = {index: self.estimates(index) for index in used}
        rows = (
            [found[j][i].value if j in found else None for j in range(len(self.question.aggregates))]
            for i in range(len(self.keys))
        )
        return [value(formula, key, row) for key, row in zip(self.keys, rows, strict=True)]

    def order(self) -> list[int]:
        """Which groups are shown, in which order."""
        kept = list(range(len(self.keys)))
        if self.question.having is not None:
            chosen = self.values(self.question.having)
            kept = [i for i in kept if chosen[i] not in (None, False, 0)]
        for formula, descending, nulls_first in reversed(self.question.order):
            kept = _sorted(kept, self.values(formula), descending=descending, nulls_first=nulls_first)
        end = None if self.question.limit is None else self.question.offset + self.question.limit
        return kept[self.question.offset : end]

    def columns(self) -> tuple[dict[str, Column], tuple[str, ...]]:
        """The columns of the outputs, and which of them have bars."""
        if self.question.after is not None:
            return columns_after(self, self.question.after)
        shown, columns, measures = self.order(), {}, []
        for output in self.question.outputs:
            found = self.column(output.formula)
            columns[output.name] = tuple(found[i].value for i in shown)
            if self._measured(output):
                measures.append(output.name)
                columns[f"{output.name}_low"] = tuple(found[i].low for i in shown)
                columns[f"{output.name}_high"] = tuple(found[i].high for i in shown)
                if self.searched:
                    flags = self.flags(output.formula, found)
                    columns[f"{output.name}_flag"] = tuple(flags[i] for i in shown)
        return columns, tuple(measures)

    def flags(self, formula: Formula, found: Sequence[Estimate]) -> list[str]:
        """What is to be said of each cell: a side that is open, or that bounds took much, as noise goes."""
        clipped = np.zeros(len(self.keys), bool)
        for index in aggregates_of(formula) if self.keys else ():
            if not self.totals.unknown(self.question.aggregates[index]):
                clipped |= self.totals.clipped(self.question.aggregates[index], self.alpha)
        return [_flag(each, bool(much)) for each, much in zip(found, clipped, strict=True)]

    def _measured(self, output: Output) -> bool:
        return bool(aggregates_of(output.formula))

    def notes(self) -> tuple[str, ...]:
        """What was done to released values."""
        question, kinds = self.question, {each.kind for each in self.question.aggregates}
        said = [
            ("counts rounded to whole numbers, their bars outward", bool(kinds & set(WHOLE))),
            ("averages and the like held within their range", bool(kinds - set(WHOLE) - {"sum"})),
            ("quantiles of one column put in order", self._several()),
            ("HAVING applied to noisy values", question.having is not None),
            ("ORDER BY applied to noisy values", bool(question.order)),
            ("LIMIT applied after noise", question.limit is not None or question.offset > 0),
            ("margins added up from the noisy totals of the groups that are shown", bool(question.sets)),
            ("an outer query computed from noisy values", question.after is not None),
        ]
        return tuple(text for text, so in said if so)

    def _several(self) -> bool:
        """Whether there are several of one column."""
        columns = [each.column for each in self.question.aggregates if each.kind in ORDERED]
        return len(set(columns)) < len(columns)


def _flag(found: Estimate, clipped: bool) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "unknown" if found.value is None else ""
    low, high = found.low, found.high
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        return "clipped" if clipped else ""
    below, above = math.isinf(low), math.isinf(high)
    if below or above:
        return "open" if below and above else "open below" if below else "open above"
    return "clipped" if clipped else ""


def _sorted(kept: list[int], values: list[KeyPart], *, descending: bool, nulls_first: bool) -> list[int]:
    """Stable in both directions; NULL, and what is no number, at the end that was asked for."""
    empty = [i for i in kept if _missing(values[i])]
    rest = [i for i in kept if not _missing(values[i])]
    rest.sort(key=lambda i: _place(values[i]), reverse=descending)
    return empty + rest if nulls_first else rest + empty


def _missing(part: KeyPart) -> bool:
    return part is None or (isinstance(part, float) and math.isnan(part))


def _place(part: KeyPart) -> tuple[int, Any]:
    if isinstance(part, int | float):
        return 0, part
    return (1, part) if isinstance(part, str) else (2, str(part))


def _whole(number: float) -> int | float:
    return int(number) if math.isfinite(number) else number
