"""Expressions: what can be written, and errors that point at the place."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius import losses
from dalenius.cli.expression import KINDS, family, parse
from dalenius.cli.grammar import DEEPEST
from dalenius.errors import BadExpression, DaleniusError
from dalenius.losses import Gaussian, Laplace, Loss, Pure


def test_an_expression_is_what_python_would_build() -> None:
    text = "gaussian(4).poisson(0.01) * 10000 + 3 * laplace(scale=2) + pure(1/10).group(3)"
    loss = Gaussian(4).poisson(0.01) * 10_000 + Laplace(2) * 3 + Pure(Fraction(1, 10)).group(3)
    assert parse(text) == loss


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("0.01", Fraction(1, 100)),
        ("256/60000", Fraction(256, 60000)),
        ("1e-2", Fraction(1, 100)),
        (".5", Fraction(1, 2)),
    ],
)
def test_numbers_are_exact(text: str, rate: Fraction) -> None:
    assert parse(f"laplace({text})") == Laplace(rate)


@pytest.mark.parametrize(
    "text", ["2*3*pure(0.1)", "pure(0.1) * 6", "(pure(0.1) * 2) * 3", "6 * (pure(1/10))"]
)
def test_counts_multiply_on_either_side(text: str) -> None:
    assert parse(text) == Pure(0.1) * 6


def test_a_relation_is_a_bare_name() -> None:
    assert parse("gaussian(4, relation=replace)") == Gaussian(4, relation="replace")


def test_lists_and_losses_are_arguments() -> None:
    assert isinstance(parse("discrete_pair([0.5, 0.5], [0.25, 0.75])"), losses.DiscretePair)
    assert isinstance(parse("mixture([pure(1), laplace(2)], [1/4, 3/4])"), losses.Mixture)


def test_json_is_read_too() -> None:
    loss = Gaussian(4).poisson(0.01) * 10
    assert parse(f" {loss.to_json()}") == loss


def test_every_exported_kind_can_be_written() -> None:
    exported = {
        name
        for name in losses.__all__
        if isinstance(getattr(losses, name), type) and issubclass(getattr(losses, name), Loss)
    }
    assert set(KINDS.values()) == exported - {"Loss", "Composition"}


def test_an_unknown_is_put_in_each_time() -> None:
    losses_of = family("gaussian(?).poisson(0.01) * 10")
    assert losses_of(Fraction(3)) == Gaussian(3).poisson(0.01) * 10
    assert losses_of(Fraction(5)) == Gaussian(5).poisson(0.01) * 10


def test_a_family_needs_an_unknown() -> None:
    with pytest.raises(BadExpression, match=r"\?"):
        family("gaussian(4)")


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("gausian(4)", 0, "Did you mean gaussian"),
        ("pure(1) + laplce(2)", 10, "Did you mean laplace"),
        ("pure(0.1).poison(0.5)", 10, "Did you mean poisson"),
        ("pure(eps=1)", 5, "Did you mean epsilon"),
        ("pure(1, epsilon=2)", 8, "twice"),
        ("pure(1, 2)", 8, "needs its name"),
        ("laplace()", 0, "scale"),
        ("pure(1", 6, "closing"),
        ("pure(1))", 7, "not expected"),
        ("pure(1) pure(2)", 8, "not expected"),
        ("pure(1) +", 9, "belongs here"),
        ("pure(1) * 0.5", 10, "count"),
        ("pure(1) * pure(2)", 10, "whole number"),
        ("pure(1) + 2", 10, "A loss belongs here"),
        ("pure(-1)", 5, "epsilon must be 0 or more"),
        ("pure(1) + laplace(scale=0)", 24, "scale must be above 0"),
        ("pure(1).poisson(1.5)", 16, "sampling_rate"),
        ("pure(1).poisson(pure(2))", 16, "sampling_rate"),
        ("pure(1).poisson()", 8, "poisson needs sampling_rate"),
        ("pure(1).", 8, "method"),
        ("pure(1/0)", 7, "zero"),
        ("pure(?)", 5, "calibrate"),
        ("pure(1e999999999)", 5, "too large"),
        ("pure(1) @ 2", 8, "no meaning"),
        ("gaussian", 0, "A loss belongs here"),
        ("", 0, "belongs here"),
        ("__import__('os')", 11, "no meaning"),
    ],
)
def test_a_bad_expression_is_pointed_at(text: str, column: int, says: str) -> None:
    with pytest.raises(BadExpression) as refused:
        parse(text)
    lines = str(refused.value).split("\n")
    assert lines[1] == "  " + text
    assert lines[2].index("^") == column + 2
    assert says in str(refused.value)


def test_the_caret_stays_in_sight_on_a_long_line() -> None:
    text = "pure(1) + " * 200 + "laplce(2)"
    with pytest.raises(BadExpression) as refused:
        parse(text)
    _, shown, caret = str(refused.value).split("\n")
    assert len(shown) < 120
    assert shown[caret.index("^") :].startswith("laplce")


@pytest.mark.parametrize("text", ["(" * (DEEPEST + 1), "pure(" * 1000, "[" * 1000, "x" * 100_000])
def test_absurd_text_is_refused_quietly(text: str) -> None:
    with pytest.raises(BadExpression):
        parse(text)


@given(st.text(alphabet="gausianpure(),.+*/=[]?-0123456789e_ \n", max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    with contextlib.suppress(DaleniusError):
        assert isinstance(parse(text), Loss)
