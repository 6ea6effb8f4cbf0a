"""What a kept profile has in place of searches: `kept_for` gives noisy histograms, each with its noise.

A histogram of the profile is one of all rows of the table, and a question may put them in several groups.
It stands in for the question's own, as one whose sizes are at least as large: a unit's norm over groups is
at most its number of rows, for any groups, and at most its norm over coarser groups. So bounds that are
chosen by it are never too small for that reason, and what a bound takes away in all is not underestimated
by it; noise may be more than the question's own histogram would ask for.

Where rows are left out, the same holds, but a bound for all rows may be many times larger than one for
those that are left, and a search for it costs a few percent: so it is made. (Of rows in one of twelve
months, answers by the rows of all were 3 to 10 times as far off.) Ranges of values are those of the table
all the same. Whatever is chosen is a bound that is enforced: privacy does not rest on any of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dalenius.tables.language.basis import Basis
from dalenius.tables.learned import Histogram, Learned, Steps
from dalenius.tables.planning.deviations import Floats
from dalenius.tables.planning.seeing import Blur
from dalenius.tables.planning.spanning import Values, seen_octaves, seen_steps
from dalenius.tables.question import Interval, Question

CLEAR = 100.0
"""A histogram of norms over groups is used where there are so many times more units than its noise."""
SEVERAL = 4
"""Over fewer groups a norm is at least half the number of rows."""


@dataclass(frozen=True, eq=False)
class Noisy:
    """A noisy histogram, in units, with its noise: from a search of the question, or from a profile.

    `widest` is the largest number of groups that its sizes are norms over; None for those of the question.
    """

    counts: Floats
    blur: Blur
    widest: float | None = None


@dataclass(frozen=True)
class Kept:
    """A histogram of a profile that stands in for a search, and what it is of, in words."""

    histogram: Histogram
    what: str
    widest: float | None = None
    steps: Steps | None = None
    """Of values: where they lie more closely."""

    def noisy(self) -> Noisy:
        """Return the counts as a search would have them."""
        return Noisy(self.histogram.noisy, _blur(self.histogram), self.widest)

    def values(self) -> Values:
        """Return where values lie, as searches would show it."""
        found = seen_octaves(self.histogram.noisy, blur=_blur(self.histogram))
        if self.steps is None or not found.some:
            return found
        within, steps = Interval(self.steps.lower, self.steps.upper), self.steps.histogram
        return found.closer(seen_steps(steps.noisy, within, blur=_blur(steps)))


def _blur(seen: Histogram) -> Blur:
    scale = float(seen.scale) * (2**0.5 if seen.heavy else 1.0)
    return Blur(scale, seen.heavy, float(seen.step))


Place = tuple[str, int | None]
"""Of a search: its kind, and the column of its values."""


def kept_for(question: Question, learned: Learned | None) -> Mapping[Place, Kept]:
    """Return what a profile has in place of the searches of a question, by kind and column.

    Of the columns that a question groups by, the norm over groups by one of them is taken that has a
    histogram, where that is much less than the number of rows may be and its noise is no matter; else the
    number of rows.
    """
    basis = question.basis
    if learned is None or basis is None:
        return {}
    kept = {} if basis.filtered else _of_units(basis, learned)
    for place, name in enumerate(basis.values):
        if name is not None and name in learned.values:
            closer = learned.steps.get(name)
            kept["values", place] = Kept(learned.values[name], f"values of {name}", steps=closer)
    return kept


def _of_units(basis: Basis, learned: Learned) -> dict[Place, Kept]:
    """Histograms of units by what they have of all rows of the table."""
    kept: dict[Place, Kept] = {("rows", None): Kept(learned.rows, "rows of the table", 1.0)}
    groups: dict[str, int] = {
        key: len(learned.categories[key]) for key in basis.keys if key and key in learned.shapes
    }
    if groups:
        # The one with most groups: its norms are the nearest to those over all the groups together.
        widest = max(groups, key=lambda key: groups[key])
        clear = learned.units[0] >= CLEAR * float(learned.shapes[widest].scale)
        if clear and groups[widest] >= SEVERAL:
            what = f"rows in groups by {widest}"
            kept["rows", None] = Kept(learned.shapes[widest], what, float(groups[widest]))
    for key in basis.keys if len(basis.keys) == 1 else ():
        if key is not None and key in learned.presence:
            kept["groups", None] = Kept(learned.presence[key], f"groups by {key}")
    return kept
