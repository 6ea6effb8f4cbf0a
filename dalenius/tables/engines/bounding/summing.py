"""What measures add up, in SQL: steps of values, their squares, and the leaves of trees."""

from __future__ import annotations

from fractions import Fraction

from dalenius.errors import InvalidArgument
from dalenius.tables.engines.bounding.words import Words
from dalenius.tables.engines.engine import WEIGHT, Measure
from dalenius.tables.engines.kernel_sums import Steps
from dalenius.tables.rows import Range

_EXACT = 2**52
"""Up to here real numbers hold every whole number, and halves of them."""
_ROOM = 2**62
_MOST = 2**80
"""A row adds less than this, so that no sum of 2^40 rows leaves the digits that engines have."""
_SHIFT, _FAR = 60, 2**1000


def sum_of(words: Words, measure: Measure, weight: str) -> str:
    """The sum of a measure other than a tree, over rows with their weight; values are r.v0…"""
    if measure.kind == "rows":
        return words.total(weight)
    value = f"r.v{measure.column}"
    if measure.kind == "present":
        return words.total(f"CASE WHEN {value} IS NOT NULL THEN {weight} END")
    steps, bound = Steps(_range(measure)), _bound(measure)
    amount = _steps(words, value, steps)
    if measure.kind == "squares":
        amount = amount if bound**2 < _ROOM else words.wide(amount)
        amount, bound = f"({amount} * {_steps(words, value, steps)})", bound**2
        if measure.shift:
            step = str(1 << measure.shift) if bound < _ROOM else words.wide(f"'{1 << measure.shift}'")
            amount, narrow = words.quotient(amount, step), bound < _ROOM
            bound >>= measure.shift
            amount = words.whole(amount) if bound * WEIGHT < _ROOM and not narrow else amount
    if bound * WEIGHT >= _MOST or measure.shift > _SHIFT:
        raise _too_fine()
    return words.total(f"{weight if bound * WEIGHT < _ROOM else words.wide(weight)} * {amount}")


def check(words: Words, measure: Measure) -> None:
    """Refuse what could not be summed, whoever sums it up."""
    if measure.kind == "tree":
        leaf(words, measure)
    elif measure.kind not in ("units", "distinct"):
        sum_of(words, measure, "1")


def leaf(words: Words, measure: Measure) -> str:
    """The leaf of a tree where the value r.v… falls."""
    steps, levels = Steps(_range(measure)), measure.levels
    _bound(measure)
    least, most = steps.ends
    count = most - least + 1
    if count << levels >= _ROOM:
        raise _too_fine()
    above = (
        f"(({_steps(words, f'r.v{measure.column}', steps)} - ({least - steps.range.offset})) * {1 << levels})"
    )
    return words.quotient(above, str(count))


def _range(measure: Measure) -> Range:
    assert measure.range is not None
    return measure.range


def _bound(measure: Measure) -> int:
    """The most that steps are from zero; refused where real numbers do not hold them exactly."""
    steps = Steps(_range(measure))
    ends = [*steps.ends, steps.range.offset]
    far = max(abs(end) for end in ends)
    if far > _EXACT or max(far, 1) * steps.range.grid.step >= _FAR:
        raise _too_fine()
    return steps.bound


def _too_fine() -> InvalidArgument:
    return InvalidArgument(
        "A range has more steps than this engine can count in.", remedy="Choose a coarser grid."
    )


def _steps(words: Words, value: str, steps: Steps) -> str:
    """The steps of a value that is there: cut towards zero, held between the ends, less the offset.

    It is held before it is multiplied, and what is within a step of zero is not multiplied by less than one:
    so no product leaves the range of real numbers, where an engine might refuse it. The value is said as
    rarely as can be, since engines compute it anew each time.
    """
    grid, number = steps.range.grid, words.dialect.number
    least, most = steps.ends
    low, high, step = (number(float(count * grid.step)) for count in (least, most, 1))
    held = f"LEAST(GREATEST({value}, {low}), {high})"
    scaled = words.cut(f"{held} * {number(float(1 / Fraction(grid.step)))}")
    near = f"WHEN ABS({held}) < {step} THEN 0 " if grid.step > 1 else ""
    return f"(CASE WHEN {value} IS NULL THEN NULL {near}ELSE {scaled} END - ({steps.range.offset}))"
