"""Who is protected, and what it means for two data sets to be neighbours.

    add_remove   one unit with all its records is present in one data set and absent from the other
    replace      one unit's records are changed arbitrarily; the number of units stays the same
    zero_out     one unit's records are replaced by a null record ⊥; the number stays the same
                 (Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021)

A guarantee moves from one relation to another where every pair of neighbours under the target is
joined by a path of k neighbours under the source: it then holds k steps apart, by group privacy along
the path, and sensitivities grow k-fold by the triangle inequality (Dwork and Roth 2014).
A group that comes or goes together is not such a path: on a Poisson sample it may cost less.

    add_remove → replace, k = 2   remove the old unit, add the new one
    zero_out → replace,   k = 2   old records to ⊥, then ⊥ to the new ones

Nothing else holds in general:

    replace or zero_out → add_remove   publishing the exact number of units costs nothing under the
                                       former and is not private at all under the latter
    add_remove → zero_out              ⊥ is a record of its own: only where a mechanism treats it
                                       exactly as an absent unit are the two the same
    replace → zero_out                 a replace guarantee speaks of real records, and ⊥ need not be one
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar, get_args

from dalenius.errors import InvalidArgument, RelationMismatch

Relation = Literal["add_remove", "replace", "zero_out"]
"""What neighbouring means. See the module for each and for the conversions."""
Window = Literal["hour", "day", "week", "month", "quarter", "year"]
"""A calendar window: the unit is then one entity in one such window."""
Missing = Literal["left out", "each row"]
"""What becomes of a row of a table without an id: nobody's and left out, or a unit of its own."""

Name = TypeVar("Name", bound=str)
RELATIONS: tuple[Relation, ...] = get_args(Relation)
WINDOWS: tuple[Window, ...] = get_args(Window)
MISSING: tuple[Missing, ...] = get_args(Missing)

_STEPS: dict[tuple[Relation, Relation], int] = {("add_remove", "replace"): 2, ("zero_out", "replace"): 2}
_COUNT_IS_FREE = "the number of units is free under the former and private under the latter"
_REASONS: dict[tuple[Relation, Relation], str] = {
    ("replace", "add_remove"): _COUNT_IS_FREE,
    ("zero_out", "add_remove"): _COUNT_IS_FREE,
    ("add_remove", "zero_out"): "a mechanism may tell a null record from an absent unit",
    ("replace", "zero_out"): "a null record need not be among those a replacement ranges over",
}


def read_relation(value: object) -> Relation:
    """The relation of that name; anything else is refused."""
    return _one_of(value, RELATIONS, "relation")


def steps_between(source: Relation, target: Relation) -> int:
    """How many steps of `source` make one step of `target`; refused where no path always exists."""
    route = read_relation(source), read_relation(target)
    if source == target:
        return 1
    if route not in _STEPS:
        raise RelationMismatch(
            f"A guarantee for {source} neighbours does not carry over to {target}: {_REASONS[route]}.",
            remedy=f"State the guarantee for relation={target!r} from the start.",
        )
    return _STEPS[route]


@dataclass(frozen=True)
class Unit:
    """Who is protected: all records of one entity, within one calendar window if one is given.

    `column` holds the entity's identity in a table; without it every row is a unit of its own. A row of a
    table whose id is missing belongs to nobody and is left out; with `missing="each row"` each such row is a
    unit of its own, which protects people only as far as none of them has several rows without an id.
    """

    entity: str
    column: str | None = None
    window: Window | None = None
    relation: Relation = "add_remove"
    missing: Missing = "left out"

    def __post_init__(self) -> None:
        _name(self.entity, "entity")
        if self.column is not None:
            _name(self.column, "column")
        if self.window is not None:
            _one_of(self.window, WINDOWS, "window")
        read_relation(self.relation)
        _one_of(self.missing, MISSING, "missing")
        if self.missing == "each row" and (self.column is None or self.window is not None):
            raise InvalidArgument(
                'missing="each row" is for units by a column of ids, without a window.',
                remedy="Leave missing out.",
            )

    def plain(self) -> dict[str, Any]:
        """Return the fields for JSON; `missing` only where it is not the default, as earlier versions did."""
        return {
            name: value for name, value in asdict(self).items() if (name, value) != ("missing", "left out")
        }

    def steps_to(self, relation: Relation) -> int:
        """How many neighbours under this unit's relation lead to any neighbour under `relation`."""
        return steps_between(self.relation, relation)

    def under(self, relation: Relation) -> Unit:
        """The same unit under another relation, where a theorem carries its losses over."""
        self.steps_to(relation)
        return replace(self, relation=relation)

    def __str__(self) -> str:
        who = f"{self.entity} ({self.column})" if self.column is not None else f"{self.entity} (each row)"
        alone = ", rows without one each alone" if self.missing == "each row" else ""
        return f"{who}{alone}{f' per {self.window}' if self.window else ''}, {self.relation}"


def _one_of(value: object, allowed: tuple[Name, ...], argument: str) -> Name:
    for name in allowed:
        if value == name:
            return name
    raise InvalidArgument(
        f"{argument} must be one of {', '.join(allowed)}.", remedy=f"Pass {argument} as one of these names."
    )


def _name(value: object, argument: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(f"{argument} must be a name.", remedy=f"Pass {argument} as a non-empty string.")
