"""The twin's functions hold python-flint's, at twice the precision, and are hardly wider than need be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

import flint
import pytest
from flint import acb, arb

from dalenius.arithmetic.complexes import Complex
from dalenius.arithmetic.fixed import log_two, pi
from dalenius.arithmetic.reals import Real, plain
from dalenius.arithmetic.working import workprec

PRECISIONS = (53, 64, 113, 128, 200, 333, 400)
TRIALS = 60
"""For each function, range and precision."""
Point = tuple[int, int]
Point_of = Callable[[Random, int], Point]


def sized(least: int, most: int, signs: tuple[int, ...] = (1, -1)) -> Point_of:
    """Numbers between two powers of two, of few digits or many."""

    def draw(random: Random, bits: int) -> Point:
        m = random.getrandbits(random.choice((1, 5, 53, bits))) | 1
        return random.choice(signs) * m, random.randint(least, most) - m.bit_length()

    return draw


def near(middle: int) -> Point_of:
    """Numbers next to a whole one, ever nearer."""

    def draw(random: Random, bits: int) -> Point:
        away = random.choice((1, -1)) * (random.getrandbits(random.randint(1, bits - 3)) | 1)
        return (middle << (bits - 2)) + away, 2 - bits

    return draw


TINY, USUAL, LARGE, HUGE = sized(-1200, -20), sized(-20, 4), sized(3, 12), sized(60, 1100)
POSITIVE = {"tiny": sized(-1200, -20, (1,)), "usual": sized(-20, 9, (1,)), "huge": sized(60, 1100, (1,))}
RANGES: dict[str, dict[str, Point_of]] = {
    "exp": {"tiny": TINY, "usual": USUAL, "large": LARGE},
    "expm1": {"tiny": TINY, "usual": USUAL, "large": LARGE},
    "log": POSITIVE | {"near 1": near(1)},
    "log1p": POSITIVE | {"tiny, any sign": TINY, "below 0": sized(-30, 0, (-1,)), "near 1": near(1)},
    "sqrt": POSITIVE | {"near 1": near(1)},
    "erf": {"tiny": TINY, "usual": USUAL, "large": LARGE, "huge": HUGE},
    "erfc": {"tiny": TINY, "usual": USUAL, "middle": sized(0, 5, (1,)), "large": sized(3, 10)},
    "sinh": {"tiny": TINY, "usual": USUAL, "large": LARGE},
    "cosh": {"tiny": TINY, "usual": USUAL, "large": LARGE},
    "tanh": {"tiny": TINY, "usual": USUAL, "large": LARGE},
}
SLOW: dict[str, dict[str, Point_of]] = {
    "erfinv": {"tiny": TINY, "usual": sized(-20, -1), "near 0": sized(-3, 0)},
    "erfcinv": {"tiny": POSITIVE["tiny"], "near 0": sized(-20, 0, (1,)), "near 1": near(1)},
    "lgamma": {"usual": sized(2, 40, (1,)), "small": sized(-20, -1, (1,))},
    "gamma": {"usual": sized(-10, 10, (1,))},
    "rgamma": {"usual": sized(-10, 10, (1,))},
}
CASES = [(name, kind, TRIALS) for name in RANGES for kind in RANGES[name]]
CASES += [(name, kind, TRIALS // 10) for name in SLOW for kind in SLOW[name]]
WIDTH = 16
"""Units of the last place that an interval of one point may be wide."""


def at(m: int, e: int) -> arb:
    return arb(m) * arb(2) ** e


def points(draw: Point_of, trials: int) -> Iterator[tuple[Point, int]]:
    random = Random(7)
    for bits in PRECISIONS:
        for _ in range(trials):
            yield draw(random, bits), bits


@pytest.mark.parametrize(("name", "kind", "trials"), CASES)
def test_a_point_has_a_narrow_interval_around_the_value(name: str, kind: str, trials: int) -> None:
    for (m, e), bits in points((RANGES | SLOW)[name][kind], trials):
        with workprec(bits):
            found = getattr(plain(m, m, e), name)()
        with flint.ctx.workprec(2 * bits + 64):
            true = getattr(at(m, e), name)()
            if not true.is_finite():
                continue
            low, high = at(found.low, found.unit), at(found.high, found.unit)
            assert not true < low and not true > high, (m, e, bits)
            assert not (high - low) * arb(2) ** bits > WIDTH * abs(true), (m, e, bits)


@pytest.mark.parametrize("name", sorted(RANGES.keys() | {"erfinv", "erfcinv"}))
def test_an_interval_holds_the_values_of_its_points(name: str) -> None:
    """Of both ends and of points between, where intervals are as wide as their numbers or narrow."""
    draw = {"erfinv": sized(-9, -2), "erfcinv": sized(-9, 0, (1,)), "log1p": sized(-9, 0)}
    random = Random(9)
    for trial in range(60 if name in RANGES else 8):
        m, e = (draw.get(name) or next(iter(RANGES[name].values())))(random, 100)
        m, e = m << 40, e - 40
        width = abs(m) >> random.choice((1, 20, 39))
        if name in ("log", "sqrt") and trial % 3:
            m = abs(m)
        with workprec(128):
            found = getattr(plain(m, m + width, e), name)()
            inside = [getattr(plain(one, one, e), name)() for one in (m, m + width // 3, m + width)]
        if not found.is_finite():
            assert not all(one.is_finite() for one in inside) or name in ("log", "sqrt", "log1p")
            continue
        for one in inside:
            assert not one < found and not one > found
            assert found.lower() <= one.upper() and one.lower() <= found.upper()


@pytest.mark.parametrize("bits", [60, 128, 777, 3000])
def test_constants_are_off_by_less_than_three_units(bits: int) -> None:
    with flint.ctx.workprec(bits + 64):
        for value, true in ((pi(bits), arb.pi()), (log_two(bits), arb(2).log())):
            assert abs(value - true * arb(2) ** bits) < 3


def test_the_exponential_of_what_is_beyond_all_numbers() -> None:
    with workprec(64):
        assert 0 <= plain(-1, -1, 5000).exp().upper() < plain(1, 1, -(2**4000))
        assert not plain(1, 1, 5000).exp().is_finite()
        assert plain(-1, -1, 5000).expm1() < -1 + 2.0**-50
        assert plain(3, 3, 2000).erfc().upper() < plain(1, 1, -(2**4000))
        assert plain(-3, -3, 2000).erf() <= plain(-1, -1, 0) + 2.0**-50


def test_complex_numbers_are_those_of_flint() -> None:
    random = Random(3)
    for _ in range(200):
        numbers = [random.uniform(-9, 9) * 10.0 ** random.randint(-6, 3) for _ in range(4)]
        with workprec(128):
            a, b = Complex(*numbers[:2]), Complex(*numbers[2:])
            mine = [a + b, a - b, a * b, a / b, a**5, Complex(numbers[0] / 1e4, numbers[1]).exp(), 1 / a]
        with flint.ctx.workprec(400):
            c, d = acb(*numbers[:2]), acb(*numbers[2:])
            true = [c + d, c - d, c * d, c / d, c**5, acb(numbers[0] / 1e4, numbers[1]).exp(), 1 / c]
            for one, other in zip(mine, true, strict=True):
                for part, exact in ((one.real, other.real), (one.imag, other.imag)):
                    low, high = at(part.low, part.unit), at(part.high, part.unit)
                    assert not exact < low and not exact > high
                    assert high - low < abs(other) * 2.0**-110


def test_what_only_flint_computes_says_so() -> None:
    from dalenius.arithmetic import rationals
    from dalenius.errors import MissingExtra

    functions = (lambda: Real(2).bessel_i(Real(1), scaled=True), lambda: Real(1).beta_lower(1, 1))
    for refused in (rationals.absent, *functions):
        with pytest.raises(MissingExtra, match="pip install python-flint"):
            refused()


def test_floats_come_back() -> None:
    random = Random(5)
    for _ in range(2000):
        one = math.ldexp(random.uniform(-1, 1), random.randint(-1000, 1000))
        assert float(Real(one)) == one
        third = Real(one) / 3
        with workprec(300):
            assert abs(float(Real(one) / 3) - one / 3) <= abs(one) * 2**-52
        assert third.lower() <= float(third) <= third.upper()


@pytest.mark.parametrize("start", [0.1, 0.8, 0.81341, 2.0])
def test_an_inverse_is_proven_wherever_it_was_looked_for(start: float) -> None:
    """A start that is off makes the interval wider, never wrong."""
    from dalenius.arithmetic import inverses

    with flint.ctx.workprec(300):
        true = {Real.erfc: arb(0.25).erfcinv(), Real.erf: arb(0.25).erfinv()}
    with workprec(100):
        for function, sign in ((Real.erfc, -1), (Real.erf, 1)):
            found = inverses._proven(Real(0.25), Real(start), function, sign)
            with flint.ctx.workprec(300):
                exact = true[function]
                assert at(found.low, found.unit) <= exact <= at(found.high, found.unit)


@pytest.mark.parametrize("bits", range(1, 9))
def test_logarithms_at_hardly_any_precision(bits: int) -> None:
    for m in range(1, 70):
        for e in (0, 1, 2, 5):
            with workprec(bits):
                found = plain(m, m, e).log1p()
            with flint.ctx.workprec(200):
                exact = arb(m * 2**e).log1p()
            low, high = (arb(end) * arb(2) ** found.unit for end in (found.low, found.high))
            assert low <= exact <= high, (m, e)


def test_the_greater_of_two() -> None:
    one, two = Real(2).union(5), Real(3).union(4)
    found = one.max(two)
    assert (float(found.lower()), float(found.upper())) == (3, 5)
    assert float(one.max(9).lower()) == 9
