"""Cases that the ordinary run leaves to the slow suite, which `make test-slow` runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

SLOW = pytest.mark.slow


def slow(cases: Iterable[Any]) -> list[Any]:
    """Mark all cases of a parametrized test as slow.

    Args:
        cases: Values of one parameter, tuples of several, or `pytest.param`.
    """
    return [_marked(case) for case in cases]


def one_in(step: int, cases: Iterable[Any], *, first: int = 0) -> list[Any]:
    """Leave every `step`-th case to the ordinary run and mark the others as slow.

    Args:
        step: How many cases there are for one of the ordinary run.
        cases: Values of one parameter, tuples of several, or `pytest.param`.
        first: The index of the first case of the ordinary run.
    """
    return [case if i % step == first else _marked(case) for i, case in enumerate(cases)]


def _marked(case: Any) -> Any:
    """Return the case as a `pytest.param` with the mark `slow`, beside marks that it has."""
    if hasattr(case, "marks"):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, SLOW])
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=SLOW)
