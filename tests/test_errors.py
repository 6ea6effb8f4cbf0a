"""Every error is in one tree, carries its remedy, and survives pickling."""

from __future__ import annotations

import pickle

import pytest

from dalenius import errors

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.DaleniusError)
]


def test_the_docstring_draws_the_whole_tree() -> None:
    drawn = errors.__doc__ or ""
    assert [kind.__name__ for kind in KINDS if kind.__name__ not in drawn] == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_and_what_to_do(kind: type[errors.DaleniusError]) -> None:
    error = kind("This cannot be.", remedy="Do that.")
    assert str(error) == "This cannot be. Do that." and error.remedy == "Do that."
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and (str(copy), copy.remedy) == (str(error), error.remedy)


def test_callers_may_catch_the_kinds_python_knows() -> None:
    assert issubclass(errors.InvalidArgument, ValueError)
    assert issubclass(errors.MissingExtra, ImportError)
