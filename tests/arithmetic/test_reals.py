"""The twin's arithmetic: exact numbers stay inside, comparisons are of all points, and limits are flint's."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import flint
import pytest
from flint import arb, fmpq
from hypothesis import given
from hypothesis import strategies as some

import dalenius
from dalenius.arithmetic.reals import Real, made, plain
from dalenius.arithmetic.working import precision, workprec

dyadics = some.builds(lambda m, e: (m, e), some.integers(-(2**90), 2**90), some.integers(-120, 120))
intervals = some.tuples(dyadics, some.integers(0, 2**60))
OPERATIONS: list[Callable[[Any, Any], Any]] = [operator.add, operator.sub, operator.mul, operator.truediv]


def fraction(m: int, e: int) -> Fraction:
    return Fraction(m) * Fraction(2) ** e


def ends(number: Real) -> tuple[Fraction, Fraction]:
    return fraction(number.low, number.unit), fraction(number.high, number.unit)


@given(
    first=intervals,
    second=intervals,
    bits=some.sampled_from([30, 53, 128]),
    operation=some.sampled_from(OPERATIONS),
)
def test_results_of_points_are_in_the_interval(first: Any, second: Any, bits: int, operation: Any) -> None:
    ((m, e), wide), ((n, f), high) = first, second
    with workprec(bits):
        found = operation(plain(m, m + wide, e), plain(n, n + high, f))
    if operation is operator.truediv and n <= 0 <= n + high:
        assert not found.is_finite()
        return
    low, top = ends(found)
    for one in (m, m + wide // 2, m + wide):
        for other in (n, n + high // 2, n + high):
            assert low <= operation(fraction(one, e), fraction(other, f)) <= top


@given(number=intervals, exponent=some.integers(-9, 40), bits=some.sampled_from([30, 128]))
def test_powers_of_points_are_in_the_interval(number: Any, exponent: int, bits: int) -> None:
    (m, e), wide = number
    with workprec(bits):
        found = plain(m, m + wide, e) ** exponent
    if exponent < 0 and m <= 0 <= m + wide:
        assert not found.is_finite()
        return
    if not found.is_finite():
        # Ends that are too far apart for one unit: all that is known is that there is a number.
        assert exponent < 0 and (abs(m + wide) > 2 * abs(m) or abs(m) > 2 * abs(m + wide))
        return
    low, top = ends(found)
    for one in (m, m + wide // 2, m + wide):
        assert low <= fraction(one, e) ** exponent <= top
    if m >= 0 == wide and exponent > 0:
        assert top - low <= 80 * top / 2**bits


@given(first=intervals, second=intervals)
def test_comparisons_are_of_all_points(first: Any, second: Any) -> None:
    ((m, e), wide), ((n, f), high) = first, second
    one, two = plain(m, m + wide, e), plain(n, n + high, f)
    (a, b), (c, d) = ends(one), ends(two)
    assert (one < two, one <= two, one > two, one >= two) == (b < c, b <= c, a > d, a >= d)
    assert (one == two) == (a == b == c == d) and (one != two) == (b < c or a > d)


def test_undecided_order_is_false_both_ways() -> None:
    one, two = Real(1, 0.5), Real(1.25, 0.5)
    assert not (one < two or one > two or one <= two or one >= two or one == two or one != two)
    assert not (one < 1 or one > 1 or one == one)
    with workprec(60):
        root = Real(2).sqrt() ** 2
        assert not (root == 2 or root != 2 or root < 2 or root > 2)


@given(
    exponents=some.tuples(some.integers(-(10**9), 10**9), some.integers(-(10**9), 10**9)),
    signs=some.tuples(*[some.sampled_from([-1, 1])] * 2),
)
def test_units_far_apart_cost_no_memory(exponents: tuple[int, int], signs: tuple[int, int]) -> None:
    with workprec(100):
        one, two = (plain(3 * sign, 3 * sign, e) for sign, e in zip(signs, exponents, strict=True))
        total = one + two
        larger = one if exponents[0] > exponents[1] else two
        if abs(exponents[0] - exponents[1]) > 200:
            assert total.low.bit_length() <= 101
            assert total >= larger - abs(larger) / 2**90 and total <= larger + abs(larger) / 2**90
            assert (one < two) == (one.low < 0 if larger is one else two.low > 0)
            assert one.union(two).low.bit_length() <= 120


def test_exact_numbers_stay_exact() -> None:
    with workprec(53):
        assert Real(1) / 4 == 0.25 and Real(3) * 5 == 15 and Real(0.5) + 0.25 == 0.75
        assert Real(9).sqrt() == 3 and Real(2) ** 100000 == plain(1, 1, 100000) and Real(0) ** 0 == 1
        assert Real(2) ** Real(10) == 1024 and 2 ** Real(3) == 8 and Real(4) ** -2 == 1 / 16
        assert Real(12).man_exp() == (3, 2) and Real(0).man_exp() == (0, 0)
        assert (Real(7) / 4).fmpq() == Fraction(7, 4)
        assert Real(Fraction(3, 8)) == 0.375 and Real("0.25") == 0.25
    assert precision() == 53


def test_whole_numbers_and_parts() -> None:
    assert Real(2.5).floor() == 2 and Real(-2.5).floor() == -3 and Real(2.5).ceil() == 3
    assert Real(2.5, 0.25).floor().unique_fmpz() == 2 and Real(3, 0.25).floor().unique_fmpz() is None
    assert Real(3, 0.25).unique_fmpz() == 3 and Real(2.5, 0.25).unique_fmpz() is None
    wide = Real(1, 0.5)
    assert wide.mid() == 1 and wide.rad() == 0.5 and wide.lower() == 0.5 and wide.upper() == 1.5
    assert wide.union(3).lower() == 0.5 and wide.union(3).upper() == 3
    assert abs(Real(-1, 2)).lower() == 0 and abs(Real(-1, 2)).upper() == 3
    assert max(Real(1), Real(2)) == 2 and bool(Real(0)) is False
    with pytest.raises(ValueError, match="one point"):
        wide.man_exp()
    with pytest.raises(TypeError):
        Real(object())


LIMITS = [
    *(
        "1/inf",
        "inf/inf",
        "inf-inf",
        "inf+1",
        "1-inf",
        "inf*0",
        "inf*wide",
        "inf*2",
        "inf*-1",
        "inf/2",
        "1/zero",
    ),
    *("zero/zero", "zero.log()", "wide.log()", "(-one).log()", "inf.log()", "inf.exp()", "(-inf).exp()"),
    *("inf.expm1()", "(-inf).expm1()", "inf.log1p()", "(-one).log1p()", "inf.sqrt()", "(-one).sqrt()"),
    *("wide.sqrt()", "zero.sqrt()", "(1/zero).upper()", "zero**-1", "inf**2", "inf.tanh()", "inf.cosh()"),
    *(
        "inf.erfc()",
        "(-inf).erf()",
        "one.erfcinv()",
        "zero.erfcinv()",
        "(2*one).erfcinv()",
        "one.erfinv()",
        "inf.upper()",
    ),
    *("abs(-inf)", "-inf", "inf.union(zero)", "zero.gamma()", "(3*one).erfcinv()"),
]
SAID = ["inf>5", "5<inf", "inf>=inf", "inf==inf", "inf<one", "inf==one", "inf!=one", "-inf<one", "wide<inf"]
SAID += ["nan<1", "nan>1", "nan==nan", "nan!=nan", "wide<1", "wide==wide", "wide!=5", "zero==0", "nan<=inf"]


@pytest.mark.parametrize("text", LIMITS + SAID)
def test_limits_are_those_of_flint(text: str) -> None:
    def of(kind: Any) -> Any:
        names = {
            "inf": kind("inf"),
            "zero": kind(0),
            "one": kind(1),
            "wide": kind(0, 1),
            "nan": kind(math.nan),
        }
        return eval(text, names)

    mine, true = of(Real), of(arb)
    if isinstance(true, bool):
        assert mine is true
    elif true.is_finite():
        assert float(mine.mid()) == pytest.approx(float(true.mid()), abs=1e-12)
    else:
        # Of an unbounded interval flint knows no more than of NaN here: neither end is finite.
        both = float(mine), float(true)
        assert not mine.is_finite() and (both[0] == both[1] or math.isnan(both[0]))


def test_fractions_and_floats_are_read_as_flint_reads_them() -> None:
    random = Random(1)
    for _ in range(500):
        p, q = random.getrandbits(200) - 2**199, random.getrandbits(100) + 1
        with workprec(80):
            low, high = ends(Real(Fraction(p, q)))
        assert low <= Fraction(p, q) <= high and high - low <= abs(Fraction(p, q)) / 2**78
        assert float(Real(p)) == float(arb(p))
    with workprec(128), flint.ctx.workprec(128):
        assert float(arb(fmpq(1, 3))) == float(Real(Fraction(1, 3))) == 1 / 3


def test_precision_is_of_the_block_and_of_the_thread() -> None:
    from threading import Thread

    seen: list[int] = []
    with workprec(200):
        thread = Thread(target=lambda: seen.append(precision()))
        thread.start()
        thread.join()
        assert precision() == 200
        with pytest.raises(ZeroDivisionError), workprec(300):
            1 / 0  # noqa: B018
        assert precision() == 200
    assert seen == [53] and made(2**60 + 1, 2**60 + 1, 0).low.bit_length() == 53


def test_nothing_but_the_arithmetic_imports_flint() -> None:
    root = Path(dalenius.__file__).parent
    found = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            if any(name.partition(".")[0] == "flint" for name in names):
                found.add(path.relative_to(root).as_posix())
    assert found == {"arithmetic/__init__.py"}
