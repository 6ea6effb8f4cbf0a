"""`Lesson`: learning the profile of a table privately, once, for the questions that come later.

Theorem. Whatever the data, `run` is dominated by `loss`. Each histogram is one that a search reads
(`searching`): a unit is in one bin of `shapes`, adds at most MASS to `magnitudes` and at most WEIGHT to the
steps of a range that magnitudes showed, so noise on it of k times that is a part of multiplier k, as a
search's is. The number of units, and that of rows without an id,
change by 1 at most with a unit, or with such a row. Categories are selected over all columns at once: of each
of C columns a unit counts with one value, so it changes at most C counts by 1, and the selection is that of
`selecting` with C keys a unit. `budgeting` composes all parts, as it does for a question.

Three tenths of the cost are for the rows of units, as every answer rests on them; categories take half as
much where they are looked for, and a count of units or of rows without an id a fiftieth. Columns share the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.losses.loss import Loss
from dalenius.mechanisms.laplace import Laplace
from dalenius.noise import source
from dalenius.privacy.unit import Relation
from dalenius.release import CONFIDENCE
from dalenius.tables.engines.engine import MASS, WEIGHT, Bounding, Loaded, Measure
from dalenius.tables.learned import Histogram, Learned, Steps
from dalenius.tables.planning.budgeting import Additive, Noise, Norm, Split, split
from dalenius.tables.planning.searching import closer_steps
from dalenius.tables.planning.selecting import in_order
from dalenius.tables.planning.standing import Kept
from dalenius.tables.question import Interval
from dalenius.tables.rows import Key, KeyPart, Rows

ROWS, SELECTING, COUNTING = Fraction(3, 10), Fraction(3, 20), Fraction(1, 50)
"""The parts of the cost for the rows of units, for selecting values, and for a count."""
OCTAVES, STEPS, SHAPES, PRESENCE = 2, 2, 2, 1
"""Weights of the histograms of a column, which share what is left."""
COVERED = 0.9
"""The share of units whose values must be among those shown, for a column to be one of categories."""
MOST_VALUES = 200
"""Columns with more values than this that are shown are not taken for categories."""
Load = Callable[[Rows], AbstractContextManager[Loaded]]


@dataclass(frozen=True)
class Lesson:
    """What is to be learned of a table, with its cost, fixed before data is read.

    `rows` reads all rows with the columns of `values`; `grouped` those grouped by each column; `listed` holds
    the groups that are declared, and columns without are looked for; `missing` reads the rows without an id.
    """

    rows: Rows
    values: tuple[str, ...]
    grouped: Mapping[str, Rows]
    listed: Mapping[str, tuple[Key, ...]]
    missing: Rows | None
    parts: Split
    norm: Norm

    @staticmethod
    def make(
        rows: Rows,
        *,
        values: Sequence[str],
        grouped: Mapping[str, Rows],
        listed: Mapping[str, Sequence[Key]],
        missing: Rows | None,
        epsilon: Fraction,
        delta: Fraction,
        relation: Relation,
    ) -> Lesson:
        """Divide (epsilon, delta) among all that is to be learned; no data is read."""
        if not delta:
            # Without a delta no values can be selected.
            grouped = {name: each for name, each in grouped.items() if name in listed}
        sought = [name for name in grouped if name not in listed]
        counts = 1 + (missing is not None)
        parts = [*[OCTAVES, STEPS] * len(values), *[SHAPES, PRESENCE] * len(grouped)]
        left = 1 - ROWS - counts * COUNTING - (SELECTING if sought else 0)
        weights = (ROWS, *[COUNTING] * counts, *[left * Fraction(part, sum(parts)) for part in parts])
        shares = split(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            weights=weights,
            keys=len(sought) or None,
            selecting=SELECTING,
        )
        told = {name: tuple(keys) for name, keys in listed.items() if name in grouped}
        return Lesson(rows, tuple(values), dict(grouped), told, missing, shares, "l2" if delta else "l1")

    @property
    def loss(self) -> Loss:
        """What a run costs, whatever the data are."""
        return self.parts.loss

    def run(self, load: Load, *, cost: str, entry: int) -> Learned:
        """Read the table, and learn; to be called once an account is charged with the loss."""
        noises = list(self.parts.noises)
        with load(self.rows) as loaded:
            rows = _histogram(loaded.shapes([()], norm=self.norm, presence=False)[:, 0], noises.pop(0), 1)
            units = _count(loaded, noises.pop(0), "units")
            missing = self._missing(load, noises)
            values: dict[str, Histogram] = {}
            steps: dict[str, Steps] = {}
            for place, name in enumerate(self.values):
                first, second = noises.pop(0), noises.pop(0)
                values[name] = _histogram(loaded.magnitudes(place), first, MASS)
                seen = Kept(values[name], name).values()
                if seen.some:
                    steps[name] = _steps(loaded, place, second, seen.whole)
        shown = self._shown(load, units[0])
        shapes: dict[str, Histogram] = {}
        presence: dict[str, Histogram] = {}
        for name, asked in self.grouped.items():
            first, second = noises.pop(0), noises.pop(0)
            keys = shown.get(name, ())
            if keys:
                with load(asked) as loaded:
                    within = loaded.shapes(keys, norm=self.norm, presence=False)
                    among = loaded.shapes(keys, norm=self.norm, presence=True)
                shapes[name] = _histogram(within.sum(axis=1), first, 1)
                presence[name] = _histogram(among.sum(axis=1), second, 1)
        categories: dict[str, tuple[KeyPart, ...]] = {
            name: tuple(key[0] for key in keys) for name, keys in shown.items()
        }
        return Learned(cost, entry, rows, units, missing, values, steps, categories, shapes, presence)

    def _missing(self, load: Load, noises: list[Noise]) -> tuple[float, float] | None:
        if self.missing is None:
            return None
        with load(self.missing) as loaded:
            return _count(loaded, noises.pop(0), "rows")

    def _shown(self, load: Load, units: float) -> dict[str, tuple[Key, ...]]:
        """The values of columns of categories: those declared, and those that nearly cover a column."""
        shown = dict(self.listed)
        selection = self.parts.selection
        if selection is None:
            return shown
        salt = source.drawn(lambda bits: bits.words(16, np.uint16).tobytes())
        sought = [name for name in self.grouped if name not in self.listed]
        held: dict[Key, int] = {}
        for place, name in enumerate(sought):
            with load(self.grouped[name]) as loaded:
                holders = loaded.holders(most=1, salt=salt)
            held |= {(place, *key): count for key, count in holders.items()}
        found = in_order(selection, held)
        for place, name in enumerate(sought):
            own = [(key[1:], count) for key, count in found if key[0] == place]
            if 0 < len(own) <= MOST_VALUES and sum(count for _, count in own) >= COVERED * units:
                shown[name] = tuple(key for key, _ in own)
        return shown


def _histogram(counts: NDArray[np.int64], noise: Noise, unit: int) -> Histogram:
    return _noisy(counts, noise.on(Fraction(unit), nonnegative=True), unit)


def _noisy(counts: NDArray[np.int64], law: Additive, unit: int) -> Histogram:
    noisy = (counts.astype(object) + law.draw(counts.size)).tolist()
    return Histogram.of(noisy, Fraction(law.scale), unit, heavy=isinstance(law, Laplace))


def _steps(loaded: Loaded, place: int, noise: Noise, whole: Interval) -> Steps:
    counts, law = closer_steps(loaded, [()], place, noise, whole, Bounding("l1", Fraction(1)))
    return Steps(_noisy(counts, law, WEIGHT), whole.lower, whole.upper)


def _count(loaded: Loaded, noise: Noise, kind: str) -> tuple[float, float]:
    """A noisy number of units, or of rows that are units of their own, and how far off it is."""
    measure = Measure("units" if kind == "units" else "rows")
    (total,) = loaded.totals([()], [measure], Bounding(noise.norm))[0].tolist()
    law = noise.on(Fraction(1), nonnegative=True)
    noisy = int(total) // WEIGHT + int(law.draw(1)[0])
    return float(noisy), float(law.error(1 - CONFIDENCE))
