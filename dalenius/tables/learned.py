"""`Learned`: what a private profile of a table has shown, with the law of its noise: released values only.

Histograms are those that a search for bounds would read (`Loaded.shapes`, `Loaded.magnitudes`), so that a
plan uses one in place of a search. A noisy count is kept in steps that are small beside its noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.rows import KeyPart

Floats = NDArray[np.float64]
FINE = 32
"""A step of a kept count is at most so small a part of the noise's scale."""


@dataclass(frozen=True)
class Histogram:
    """Noisy counts, one for each cell; `scale` is that of the noise, and both are in units.

    The noise is Gaussian or, where it is `heavy`, Laplace's.
    """

    counts: tuple[int, ...]
    step: Fraction
    scale: Fraction
    heavy: bool

    @staticmethod
    def of(noisy: Sequence[int], scale: Fraction, unit: int, *, heavy: bool) -> Histogram:
        """Return a histogram of noisy counts that are in parts of a unit, as many as `unit`."""
        step = 2 ** max(0, math.floor(math.log2(scale / FINE))) if scale > FINE else 1
        kept = tuple((int(count) + step // 2) // step for count in noisy)
        return Histogram(kept, Fraction(step, unit), scale / unit, heavy)

    @property
    def noisy(self) -> Floats:
        """The counts in units."""
        return np.array(self.counts, np.float64) * float(self.step)

    def plain(self) -> dict[str, Any]:
        """Return the histogram as JSON values."""
        law = "laplace" if self.heavy else "gaussian"
        return {"counts": list(self.counts), "step": str(self.step), "scale": str(self.scale), "noise": law}

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Histogram:
        """Return the histogram that `plain` gave."""
        heavy = plain["noise"] == "laplace"
        return Histogram(tuple(plain["counts"]), Fraction(plain["step"]), Fraction(plain["scale"]), heavy)


@dataclass(frozen=True)
class Steps:
    """Where the values of a column lie, in equal steps of a range that was found before."""

    histogram: Histogram
    """Votes of units in each step; the outermost hold what lies beyond them too."""
    lower: Fraction
    upper: Fraction
    """The ends of the range."""

    def plain(self) -> dict[str, Any]:
        """Return the steps as JSON values."""
        return {**self.histogram.plain(), "lower": str(self.lower), "upper": str(self.upper)}

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Steps:
        """Return the steps that `plain` gave."""
        return Steps(Histogram.read(plain), Fraction(plain["lower"]), Fraction(plain["upper"]))


@dataclass(frozen=True)
class Learned:
    """What was learned of a table, by one charge."""

    cost: str
    """The ε and δ of the charge, in words."""
    entry: int
    """The entry of the account that paid for it."""
    rows: Histogram
    """Units by how many rows they have: the bins of sizes of `Loaded.shapes`."""
    units: tuple[float, float]
    """How many units there are, by a noisy count, and how far that is off with 95 %."""
    missing: tuple[float, float] | None = None
    """The same of the rows without an id; None where every row has or needs none."""
    values: Mapping[str, Histogram] = field(default_factory=dict)
    """Where the values of columns lie: the bins of `Loaded.magnitudes`."""
    steps: Mapping[str, Steps] = field(default_factory=dict)
    """The same more closely, of columns whose values stand out: the steps of `searching.closer_steps`."""
    categories: Mapping[str, tuple[KeyPart, ...]] = field(default_factory=dict)
    """Values of columns that nearly all units are among."""
    shapes: Mapping[str, Histogram] = field(default_factory=dict)
    """Units by what they have in groups by a column: the bins of `Loaded.shapes`."""
    presence: Mapping[str, Histogram] = field(default_factory=dict)
    """Units by how many of these groups they are in."""

    def lines(self, entity: str, columns: Sequence[str] | None = None) -> list[tuple[str, str]]:
        """Return what was learned, in words; only of some columns where they are named."""
        number, off = self.units
        said = [("learned", f"at {self.cost}, by entry {self.entry}")] if columns is None else []
        said.append(
            ("learned", f"about {max(number, 0.0):,.0f} ± {off:,.0f} {entity}s, and how many rows they have")
        )
        if self.missing is not None and columns is None:
            count, wide = self.missing
            said.append(("learned", f"about {max(count, 0.0):,.0f} ± {wide:,.0f} rows without an id"))
        for name in self.values:
            if columns is None or name in columns:
                said.append(("learned", f"where {name} lies"))
        for name in self.shapes:
            if columns is None or name in columns:
                few = len(self.categories.get(name, ()))
                said.append(("learned", f"{few} values of {name}" if few else f"groups of {name}"))
        return said

    def plain(self) -> dict[str, Any]:
        """Return what was learned as JSON values."""
        from dalenius.tables.facts import _written

        named: dict[str, Mapping[str, Histogram | Steps]] = {
            "values": self.values,
            "steps": self.steps,
            "shapes": self.shapes,
            "presence": self.presence,
        }
        histograms = {kind: {n: each.plain() for n, each in found.items()} for kind, found in named.items()}
        return {
            "cost": self.cost,
            "entry": self.entry,
            "rows": self.rows.plain(),
            "units": list(self.units),
            "missing": None if self.missing is None else list(self.missing),
            "categories": {n: [_written(part) for part in parts] for n, parts in self.categories.items()},
            **histograms,
        }

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Learned:
        """Return what `plain` gave."""
        from dalenius.tables.facts import _read

        def of(kind: str) -> dict[str, Histogram]:
            return {name: Histogram.read(each) for name, each in plain[kind].items()}

        missing = plain["missing"]
        return Learned(
            plain["cost"],
            plain["entry"],
            Histogram.read(plain["rows"]),
            (float(plain["units"][0]), float(plain["units"][1])),
            None if missing is None else (float(missing[0]), float(missing[1])),
            of("values"),
            {name: Steps.read(each) for name, each in plain.get("steps", {}).items()},
            {name: tuple(map(_read, parts)) for name, parts in plain["categories"].items()},
            of("shapes"),
            of("presence"),
        )
