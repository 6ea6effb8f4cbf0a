"""Every row's answer, as a function of that row alone.

What floating point makes of a row may depend on how many rows are beside it and on its place among them. So
passes have one shape, `size` rows, and a row has a place in them of its own, by a coin. Where a unit comes or
goes, all other rows keep their places; they get other neighbours, which change nothing: a kernel of fixed
shape computes each place from its own row. That is checked bit by bit on made-up rows, before anything is
charged: a model that mixes rows (batch statistics, contrastive heads), or answers the same rows in another
way the next time, is refused. This finds mistakes and proves nothing: a model that mixes rows only where they
have values that no made-up row has, such as a branch on the greatest of a batch, or that remembers some rows,
is not seen. That rows are answered by themselves is established by `independence` for models of known layers,
and is an assumption on the receipt for all others. Rows of a data set are always read and answered one by
one, as stacking may mix them.

Places that are left over hold copies of a row of the same pass. Where a pass fails, each of its rows has one
of its own, all places filled with it; a row that fails by itself has no answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius import noise
from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.models import Answering, Answers
from dalenius.learn.quiet import kept_generators, quiet
from dalenius.learn.rows import Rows, taken

SIZE = 64
"""Rows of a pass, where nothing else is said."""
PATTERNS = 24
"""Passes of two made-up rows at places by coins: that two places never differ has a probability of 2^−24."""
NEAR = 1e-5
"""How far apart the answers to one row alone may be, of which nothing but repetition is known."""


def answered(answering: Answering, rows: Rows, size: int) -> Answers:
    """The answer to each row."""
    places = np.asarray(noise.uniform(size, len(rows)), dtype=np.int64)
    found = Answers.none(len(rows), len(answering.classes))
    for members in _turns(places):
        numbers = np.full(size, members[0])
        numbers[places[members]] = members
        given = _attempt(answering, rows, numbers)
        if given is not None:
            found.put(members, given, places[members])
            continue
        for one in members[:, None]:
            alone = _attempt(answering, rows, np.full(size, one[0]))
            if alone is not None:
                found.put(one, alone, places[one])
    return found


def _turns(places: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Rows of each pass, of which no two have the same place."""
    order = np.argsort(places, kind="stable")
    turn = np.empty(len(places), np.int64)
    turn[order] = np.arange(len(places)) - np.searchsorted(places[order], places[order])
    by_turn = np.argsort(turn, kind="stable")
    ends = np.searchsorted(turn[by_turn], np.arange(1, turn.max(initial=0) + 1))
    return [part for part in np.split(by_turn, ends) if len(part)]


def _attempt(answering: Answering, rows: Rows, numbers: NDArray[np.int64]) -> Answers | None:
    """None where the pass fails: whether it does is as private as what it gives."""
    with quiet(), np.errstate(all="ignore"), kept_generators(), rows.seeded(int(numbers[0])):
        try:
            found = answering(rows.inputs(numbers))
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None
    return found if len(found.chosen) == len(numbers) else None


# The rehearsal.


def rehearse(answering: Answering, made: Any, size: int) -> None:
    """Refuse a model that mixes rows, or whose answers change, as seen on two made-up rows."""
    first, second, again = ([0] * size, [1] * size, [0] * size)
    alone = [_shown(answering, made, rows) for rows in (first, second)]
    if size == 1:
        if not all(map(_near, alone[0].parts, _shown(answering, made, again).parts)):
            raise _refused("gives another answer to the same row the next time")
        return
    # By coins: places at any distance hold the same row, and different ones.
    for rows in np.asarray(noise.uniform(2, PATTERNS * size)).reshape(PATTERNS, size).tolist():
        together = _shown(answering, made, rows)
        for place, row in enumerate(rows):
            parts = zip(together.parts, alone[row].parts, strict=True)
            if not all(_equal(one[place], two[place]) for one, two in parts):
                raise _refused("answers a row by the rows beside it")
    if not all(map(_equal, alone[0].parts, _shown(answering, made, again).parts)):
        raise _refused("gives another answer to the same rows the next time")


def made_up(form: Any) -> Any:
    """Two rows of a form, with none of its values; None where it holds texts or other objects."""
    if isinstance(form, Mapping):
        found = {name: made_up(one) for name, one in form.items()}
        return None if any(one is None for one in found.values()) else found
    if isinstance(form, np.ndarray):
        return _array(form.shape[1:], form.dtype)
    if not hasattr(form, "device"):
        return None
    import torch

    kind = np.dtype(np.float64 if form.is_floating_point() else np.int64)
    return torch.as_tensor(_array(tuple(form.shape[1:]), kind)).to(form.dtype)


def _array(shape: tuple[int, ...], kind: np.dtype[Any]) -> NDArray[Any] | None:
    """Numbers between −1 and 1, or zeros and ones for whole numbers."""
    if kind.kind not in "biuf":
        return None
    entries = 1.0 + np.arange(2 * int(np.prod(shape)))
    found = np.cos(entries * entries) if kind.kind == "f" else np.cos(entries * entries) > 0
    return np.asarray(found.reshape(2, *shape)).astype(kind)


def _shown(answering: Answering, made: Any, rows: Sequence[int]) -> Answers:
    """The answers to made-up rows, which may be seen."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = answering(taken(made, rows))
    except InvalidArgument:
        raise
    except Exception as failed:
        raise InvalidArgument(
            f"The model fails on made-up rows ({type(failed).__name__}).",
            remedy="Pass synthetic=…, two or more made-up rows of inputs that it can answer.",
        ) from failed
    if len(found.chosen) != len(rows):
        raise InvalidArgument(
            "The model does not give one answer for each row.", remedy="Say by outputs=… what it gives."
        )
    return found


def _equal(one: Any, two: Any) -> bool:
    return bool(np.array_equal(one, two, equal_nan=True))


def _near(one: Any, two: Any) -> bool:
    return bool(np.allclose(one, two, rtol=NEAR, atol=NEAR, equal_nan=True))


def _refused(how: str) -> NotSound:
    return NotSound(
        f"In a rehearsal on made-up rows the model {how}.",
        remedy="Use batch_size=1, for rows one by one; replace batch statistics by dp.learn.replaced(model); "
        "leave out what is random.",
    )
