"""Independent truth for Poisson-subsampled Gaussians: ε to 36 digits, by python-flint alone.

`python -m tests.profiles.truth` writes truth.json. Nothing of the library is used. With a = 1/σ and
w(x) = 1 − q + q·exp(ax − a²/2), the losses are log w under φ·w (a unit is removed) and −log w under φ
(one is added).

    one step    closed form
    two steps   ∫ of the closed form against the law of one loss, by the tanh-sinh rule
    any number  δ(ε) = (1/2πi) ∫ M(z)^T e^{−zε}/(z(z+1)) dz, M(z) = ∫ φ w^{1+z} or ∫ φ w^{−z} (added),
                by the trapezoid rule on Re z = c ("line"), or for few steps of heavy losses on a hyperbola
                that opens to the right (to the left when added), where M is entire and M(z)^T e^{−zε} decays
                ("hyperbola")

Round-off is enclosed by balls. Quadrature is not, so each ε is solved with one rule and must then be
confirmed with another (other steps, ranges and contour): δ(ε(1 − 1e-36)) > δ > δ(ε(1 + 1e-36)).
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import flint
import numpy as np
from flint import acb, acb_mat, arb, fmpq

PATH = Path(__file__).with_name("truth.json")
DIGITS = 36
"""Correct digits of every ε in the table."""
BITS = 320
Value = Callable[[arb], arb]


class Infeasible(Exception):
    """This route would take too long for the case."""


def number(text: str | int) -> arb:
    """The ball of a decimal."""
    value = Fraction(text)
    return arb(fmpq(value.numerator, value.denominator))


def tail(x: arb) -> arb:
    """Φ(−x)."""
    return (x / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True)
class Case:
    """A subsampled Gaussian, composed: decimals as text, so that everybody reads the same numbers."""

    q: str
    sigma: str
    steps: int
    delta: str

    @property
    def rate(self) -> arb:
        return number(self.q)

    @property
    def shift(self) -> arb:
        return 1 / number(self.sigma)

    def ratio(self, x: arb) -> arb:
        """w(x)."""
        return 1 - self.rate + self.rate * (self.shift * x - self.shift**2 / 2).exp()

    def threshold(self, ratio: arb) -> arb | None:
        """x with w(x) = `ratio`; None where there is none, or none that the precision can tell."""
        share = (ratio - 1 + self.rate) / self.rate
        return (share.log() + self.shift**2 / 2) / self.shift if share > 0 else None


# One step, at any real ε.


def removed(case: Case, epsilon: arb) -> arb:
    y = epsilon.exp()
    x = case.threshold(y)
    if x is None:
        return 1 - y
    return (1 - case.rate - y) * tail(x) + case.rate * tail(x - case.shift)


def added(case: Case, epsilon: arb) -> arb:
    y = epsilon.exp()
    x = case.threshold(1 / y)
    if x is None:
        return arb(0)
    return tail(-x) - y * ((1 - case.rate) * tail(-x) + case.rate * tail(case.shift - x))


# Two steps.


def tanh_sinh(f: Value, left: arb, right: arb, step: arb) -> arb:
    """∫ f over [left, right]."""
    half, total = (right - left) / 2, arb(0)
    count = int(math.asinh(0.7 * BITS) / float(step)) + 1
    for k in range(-count, count + 1):
        t = k * step
        u = arb.pi() / 2 * t.sinh()
        small = 1 / ((2 * abs(u)).exp() + 1)  # distance to the nearer end, over 2·half
        x = right - 2 * half * small if k > 0 else left + 2 * half * small
        total += f(x) * arb.pi() / 2 * t.cosh() / u.cosh() ** 2
    return total * half * step


def two_removed(case: Case, variant: int) -> Value:
    def value(epsilon: arb) -> arb:
        y = epsilon.exp()
        edge = case.threshold(y / (1 - case.rate))  # beyond it the second loss does not matter
        assert edge is not None
        beyond = (1 - case.rate - y) * tail(edge) + case.rate * tail(edge - case.shift)

        def mixed(x: arb) -> arb:
            w = case.ratio(x)
            return (-x * x / 2).exp() * w * removed(case, epsilon - w.log())

        step = arb(1) / (88 if variant == 0 else 113)
        body = tanh_sinh(mixed, arb(-24 - variant), edge, step)
        return beyond + body / (2 * arb.pi()).sqrt()

    return value


def two_added(case: Case, variant: int) -> Value:
    def value(epsilon: arb) -> arb:
        edge = case.threshold((-epsilon).exp() / (1 - case.rate))
        if edge is None:
            return arb(0)

        def mixed(x: arb) -> arb:
            return (-x * x / 2).exp() * added(case, epsilon + case.ratio(x).log())

        step = arb(1) / (88 if variant == 0 else 113)
        return tanh_sinh(mixed, arb(-24 - variant), edge, step) / (2 * arb.pi()).sqrt()

    return value


# Any number of steps: first a sketch in plain floats, which decides nothing but where to look.


@dataclass(frozen=True, eq=False)
class Sketch:
    case: Case
    sign: int

    def cumulant(self, c: float) -> tuple[float, float]:
        """K and K″ on the real axis."""
        q, a = float(Fraction(self.case.q)), 1 / float(self.case.sigma)
        s = 1 + c if self.sign > 0 else -c
        x = np.linspace(-14.0, 14.0 + max(0.0, s * a), 3000)
        log = np.logaddexp(np.log1p(-q), np.log(q) + a * x - a * a / 2)
        exponent = s * log - x * x / 2
        top = exponent.max()
        mass = np.exp(exponent - top)
        mean = mass @ log / mass.sum()
        k = top + np.log(mass.sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi))
        return self.case.steps * float(k), self.case.steps * float(mass @ (log - mean) ** 2 / mass.sum())

    def saddle(self, epsilon: float) -> tuple[float, float, float]:
        """c, K″ and log of the integrand where it is least on the real axis."""
        low, high = -12.0, math.log(150 * float(self.case.sigma))

        def size(u: float) -> float:
            c = math.exp(u)
            return self.cumulant(c)[0] - c * epsilon - math.log(c) - math.log1p(c)

        for _ in range(45):
            one, two = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, two) if size(one) < size(two) else (one, high)
        c = math.exp((low + high) / 2)
        return c, self.cumulant(c)[1], size(math.log(c))

    def epsilon(self) -> float:
        """About where log δ is reached, or 0."""

        def excess(at: float) -> float:
            c, k2, size = self.saddle(at)
            curve = k2 + c**-2 + (1 + c) ** -2
            return size - 0.5 * math.log(2 * math.pi * curve) - math.log(float(Fraction(self.case.delta)))

        low, high = 0.0, 1e-3
        if excess(0.0) < 0:
            return 0.0
        while excess(high) > 0:
            low, high = high, 2 * high
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return (low + high) / 2


MOST = 1 << 12
"""Nodes in z at most."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points z with weights G: δ(ε) = Re Σ G e^{−zε}."""

    z: list[acb]
    weights: list[acb]

    def __call__(self, epsilon: arb) -> arb:
        total = acb(0)
        for z, g in zip(self.z, self.weights, strict=True):
            total += g * (-z * epsilon).exp()
        return total.real


def abscissae(case: Case, step: Fraction, left: float, right: float) -> tuple[list[arb], list[arb]]:
    """log w and log(h φ) on a grid."""
    h = arb(fmpq(step.numerator, step.denominator))
    x = [(k + arb("0.25")) * h for k in range(math.floor(left / step), math.ceil(right / step) + 1)]
    base = (h / (2 * arb.pi()).sqrt()).log()
    return [case.ratio(v).log() for v in x], [base - v * v / 2 for v in x]


def line(case: Case, sign: int, epsilon: float, variant: int) -> Nodes:
    """The trapezoid rule on Re z = c: M at all nodes by two small tables of powers and one matrix product."""
    sketch = Sketch(case, sign)
    c, k2, size = sketch.saddle(epsilon)
    c *= (1.0, 0.87)[variant]
    a, log_delta = 1 / float(case.sigma), math.log(float(Fraction(case.delta)))
    reach = math.sqrt(2 * (150 + max(0.0, size - log_delta)) / k2)
    above = min(
        (sketch.cumulant(f * c)[0] - f * c * epsilon - log_delta + 110) / ((f - 1) * c)
        for f in (1.1, 1.2, 1.4, 2.0, 3.0)
    )
    wave = max((110 - log_delta) / c, above) * (1.0, 1.31)[variant]
    y_step = Fraction(2 * math.pi / wave).limit_denominator(10**6)
    t = min(4.0, 0.8 * math.pi / a)
    x_step = 2 * math.pi * t / (190 + t * t / 2 + reach * a * t) * (1.0, 0.77)[variant]
    step = Fraction(1, math.ceil(1 / x_step))
    s = 1 + arb(c) if sign > 0 else -arb(c)
    right = 20 + variant + max(0.0, float(s) * a)
    if (20 + right) / step > 5000 or reach / y_step > MOST:
        raise Infeasible
    log, base = abscissae(case, step, -20.0 - variant, right)
    block = 64
    y = arb(fmpq(y_step.numerator, y_step.denominator))
    weights = [(b + s * v).exp() for v, b in zip(log, base, strict=True)]
    turns = [(acb(0, sign) * y * v).exp() for v in log]
    small = acb_mat(_powers(turns, block))
    giant = [u**block for u in turns]
    current: list[acb] = [acb(w) for w in weights]
    z, found = [], []
    floor = (arb(log_delta) + arb(c) * arb(epsilon) - 105).exp()
    while len(z) < MOST:
        row = (acb_mat([current]) * small.transpose()).entries()
        quiet = True
        for moment in row:
            k = len(z)
            point = acb(arb(c), k * y)
            term = moment**case.steps / (point * (point + 1)) * (y / arb.pi())
            z.append(point)
            found.append(term / 2 if k == 0 else term)
            quiet = quiet and abs(term).upper() < floor
        if quiet:
            return Nodes(z, found)
        current = [one * g for one, g in zip(current, giant, strict=True)]
    raise Infeasible


def _powers(turns: list[acb], count: int) -> list[list[acb]]:
    rows = [[acb(1)] * len(turns)]
    for _ in range(count - 1):
        rows.append([p * u for p, u in zip(rows[-1], turns, strict=True)])
    return rows


SLOPES = ("0", "0.4", "0.85")
"""Of the paths in x; each moment takes the one with the least terms."""


@dataclass(frozen=True, eq=False)
class Climb:
    """∫ φ wˢ, Im s ≥ 0, by the trapezoid rule in t on x = t + i·slope·(v + √(v² + b²))/2, v = t − m.

    The zeros of w are at m ± iπ/a, m ± 3iπ/a, …, and b = 1.5/a. Left of them the path is all but real. Right
    of them it climbs as a straight line, on which e^{−x²/2} still decays and wˢ ~ e^{asx} no longer grows: on
    the real axis that growth would cancel to many digits.
    """

    log: list[acb]
    base: list[acb]
    logs: np.ndarray
    bases: np.ndarray

    @classmethod
    def of(cls, case: Case, slope: arb, step: Fraction, left: float, right: float) -> Climb:
        q, a, h = case.rate, case.shift, arb(fmpq(step.numerator, step.denominator))
        b, middle = 3 / (2 * a), (((1 - q) / q).log() + a**2 / 2) / a
        log, base, unit = [], [], (h / (2 * arb.pi()).sqrt()).log()
        for k in range(math.floor(left / step), math.ceil(right / step) + 1):
            t = (k + arb("0.25")) * h
            v = t - middle
            root = (v * v + b * b).sqrt()
            x, turn = acb(t, slope * (v + root) / 2), acb(1, slope * (1 + v / root) / 2)
            odds = a * (x - middle)  # w = (1 − q)(1 + e^odds), its logarithm continued along the path
            more = odds + (1 + (-odds).exp()).log() if v > 0 else (1 + odds.exp()).log()
            log.append((1 - q).log() + more)
            base.append(unit - x * x / 2 + turn.log())
        return cls(
            log, base, np.array([complex(one) for one in log]), np.array([float(b.real) for b in base])
        )

    def sizes(self, s: complex) -> np.ndarray:
        """Logarithms of the moduli of all terms."""
        return self.bases + (s * self.logs).real

    def __call__(self, s: acb) -> acb:
        """The sum, less what is below e^{−215} of the largest term."""
        sizes = self.sizes(complex(s))
        kept = np.flatnonzero(sizes > sizes.max() - 215)
        if kept[-1] == len(sizes) - 1:
            raise Infeasible
        total = acb(0)
        for j in range(int(kept[0]), int(kept[-1]) + 1):
            total += (s * self.log[j] + self.base[j]).exp()
        return total


def hyperbola(case: Case, sign: int, epsilon: float, variant: int) -> Nodes:
    """The trapezoid rule in u on z = R cosh(u + iθ), or (added) on z = 2c − R cosh(u − iθ), c = R cos θ."""
    c, k2, _ = Sketch(case, sign).saddle(epsilon)
    c *= (1.0, 0.9)[variant]
    angle, a = (1.15, 1.2)[variant], 1 / float(case.sigma)
    radius = c / math.cos(angle)
    decay = sign * epsilon - case.steps * math.log1p(-float(Fraction(case.q)))
    if decay <= 0:
        raise Infeasible
    last = math.acosh(1 + (125, 132)[variant] / decay / c)
    u_step = min(0.008, 0.1 / (math.sqrt(k2) * c * math.tan(angle))) * (1.0, 0.83)[variant]
    top = radius * math.sin(angle) * math.sinh(last)
    width = (1.0, 0.9)[variant] / a
    if last / u_step * (200 + top * a * width) / width > 6e6:
        raise Infeasible
    paths: dict[tuple[int, str], Climb] = {}

    def moment(s: acb) -> acb:
        level = max(0, math.floor(math.log2(top / max(1.0, float(s.imag)))))
        step = 2 * math.pi * width / ((195, 215)[variant] + 2.0**-level * top * a * width)
        for slope in SLOPES:
            if (level, slope) not in paths:
                right = (50 + variant) + 2 * a * (1 + c)
                grid = Fraction(1, math.ceil(1 / step))
                paths[level, slope] = Climb.of(case, number(slope), grid, -21.0 - variant, right)
        return min((paths[level, slope] for slope in SLOPES), key=lambda p: p.sizes(complex(s)).max())(s)

    z, found = [], []
    theta, r, h = arb(angle), arb(radius), arb(u_step)
    for k in range(math.ceil(last / u_step) + 1):
        bent = acb(k * h, theta)
        point, slope = r * bent.cosh(), r * bent.sinh()
        value = moment(1 + point if sign > 0 else point - 2 * arb(c))
        if sign < 0:
            point, slope, value = 2 * arb(c) - point.conjugate(), -slope.conjugate(), value.conjugate()
        term = value**case.steps / (point * (point + 1)) * slope * acb(0, -1) * h / arb.pi()
        z.append(point)
        found.append(term / 2 if k == 0 else term)
    return Nodes(z, found)


# Solving.


def least(value: Value, delta: arb, guess: float) -> arb:
    """The root of value = delta: secant on logarithms, from a guess."""

    def excess(at: arb) -> arb:
        return (value(at) / delta).log().mid()

    one, two = arb(guess), arb(guess) * (1 + arb(2) ** -10) + arb(2) ** -40
    f_one, f_two = excess(one), excess(two)
    for _ in range(60):
        if not f_one.is_finite() or not f_two.is_finite():
            raise Infeasible
        slope = (f_two - f_one) / (two - one)
        move = (-f_two / slope).mid()
        limit = 0.3 * abs(two) + arb(2) ** -20
        move = -limit if move < -limit else limit if move > limit else move
        one, f_one, two = two, f_two, (two + move).mid()
        if abs(move) < abs(two) * arb(10) ** -(DIGITS + 12):
            return two
        f_two = excess(two)
    raise Infeasible


def confirmed(value: Value, delta: arb, epsilon: arb) -> bool:
    """Whether another rule finds the same root."""
    slack = arb(10) ** -DIGITS
    return bool(value(epsilon * (1 - slack)) > delta > value(epsilon * (1 + slack)))


def direction(case: Case, sign: int) -> tuple[arb, str]:
    """ε of one direction, and the route that found it."""
    delta, makers = number(case.delta), _routes(case, sign)
    guess = Sketch(case, sign).epsilon()
    for name, make in makers:
        try:
            if guess < 1e-2 and all(make(0.0, variant)(arb(0)) < delta for variant in (0, 1)):
                return arb(0), name
            found = least(make(guess, 0), delta, max(guess, 1e-4))
            at = float(found)
            if abs(at - guess) > 0.01 * guess and name in ("line", "hyperbola"):
                found = least(make(at, 0), delta, at)
            if found > 0 and confirmed(make(at, 1), delta, found):
                return found, name
        except Infeasible:
            continue
    raise Infeasible


def _routes(case: Case, sign: int) -> Iterator[tuple[str, Callable[[float, int], Value]]]:
    if case.steps == 1:
        closed = removed if sign > 0 else added
        yield "closed", lambda _, __: lambda epsilon: closed(case, epsilon)
    elif case.steps == 2:
        double = two_removed if sign > 0 else two_added
        yield "integral", lambda _, variant: double(case, variant)
    elif case in HEAVY:
        yield "hyperbola", lambda guess, variant: hyperbola(case, sign, guess, variant)
    else:
        yield "line", lambda guess, variant: line(case, sign, guess, variant)


def answer(case: Case) -> tuple[arb, str]:
    """The worse of both directions: the other one is solved only where it is not private enough there."""
    with flint.ctx.workprec(BITS):
        epsilon, route = direction(case, 1)
        most = -case.steps * (1 - case.rate).log()  # no loss of the other direction is larger
        if epsilon > most or _settled(case, epsilon):
            return epsilon, route
        other, other_route = direction(case, -1)
        return (other, other_route) if other > epsilon else (epsilon, route)


def _settled(case: Case, epsilon: arb) -> bool:
    """Whether the other direction needs less."""
    delta = number(case.delta)
    for _, make in _routes(case, -1):
        if all(make(float(epsilon), variant)(epsilon) < delta for variant in (0, 1)):
            return True
    return False


def gaussian(distance: arb, epsilon: arb) -> arb:
    """δ(ε) of N(distance, 1) against N(0, 1)."""
    return tail(epsilon / distance - distance / 2) - epsilon.exp() * tail(epsilon / distance + distance / 2)


# The table.


def short(value: float, digits: int = 4) -> str:
    return f"{value:.{digits - 1}e}"


def draw(source: random.Random, kind: str) -> Case:
    """A random case; half are heavy, with little noise and few samples, the mild never."""
    heavy = source.random() < 0.5
    q = math.exp(source.uniform(math.log(1e-4), math.log(0.05 if heavy else 0.5)))
    sigma = math.exp(source.uniform(math.log(0.5), math.log(1.2 if heavy else 20)))
    steps = {
        "one": 1,
        "two": 2,
        "few": source.randint(3, 30),
        "many": round(math.exp(source.uniform(math.log(30), math.log(1e6)))),
    }[kind if kind != "mild" else "few"]
    if kind == "mild":
        q, sigma = source.uniform(0.02, 0.5), math.exp(source.uniform(math.log(1.5), math.log(12)))
    delta = 10 ** source.uniform(-30, -3)
    return Case(short(q), short(sigma), steps, short(delta, 3))


SHOWN = (
    Case("0.01", "4", 10_000, "1e-5"),
    Case("0.01", "4", 40_000, "1e-5"),
    Case("256/60000", "1.1", 14_062, "1e-5"),
    Case("0.01", "4", 10_000, "1e-15"),
    Case("0.0113686", "1.36246", 37_912, "2.428e-10"),
)
"""Cases that the project names."""


HEAVY = (
    Case("0.0007", "0.5", 3, "1e-6"),
    Case("0.1", "0.7", 3, "1e-8"),
    Case("0.4", "1.0", 3, "1e-18"),
    Case("0.03", "1.4", 3, "1e-19"),
    Case("0.0015", "0.5", 5, "1e-13"),
    Case("0.02", "0.7", 5, "1e-12"),
    Case("0.005", "1.0", 5, "1e-14"),
    Case("0.3", "1.4", 5, "1e-20"),
    Case("0.001", "0.5", 8, "1e-17"),
    Case("0.15", "0.7", 8, "1e-21"),
    Case("0.015", "1.0", 8, "1e-9"),
    Case("0.05", "1.4", 8, "1e-3"),
    Case("0.002", "0.5", 12, "1e-5"),
    Case("0.0001", "0.7", 12, "1e-11"),
    Case("0.003", "1.0", 12, "1e-7"),
    Case("0.007", "1.4", 12, "1e-28"),
    Case("0.0003", "0.5", 20, "1e-24"),
    Case("0.07", "0.7", 20, "1e-16"),
    Case("0.0002", "1.0", 20, "1e-26"),
    Case("0.0025", "1.4", 20, "1e-25"),
    Case("0.2", "0.5", 30, "1e-23"),
    Case("0.01", "0.7", 30, "1e-27"),
    Case("0.025", "1.0", 30, "1e-4"),
    Case("0.5", "1.4", 30, "1e-10"),
)
"""Few steps of heavy losses, out of reach of "line"."""


def cases(seed: int = 20240607) -> Iterator[Case]:
    """As many of each kind as the table tries."""
    yield from SHOWN
    source = random.Random(seed)
    wanted = (("one", 60), ("two", 50), ("many", 110), ("few", 150), ("one", 40), ("two", 20), ("mild", 40))
    for kind, count in wanted:
        yield from (draw(source, kind) for _ in range(count))
    yield from HEAVY


def row(case: Case) -> dict[str, str | int] | None:
    """A line of the table; None where no route is feasible."""
    try:
        epsilon, route = answer(case)
    except (Infeasible, OverflowError, ValueError, ZeroDivisionError):
        return None
    text = epsilon.str(DIGITS + 2, radius=False) if epsilon > 0 else "0"
    return {**asdict(case), "epsilon": text, "route": route}


def main() -> None:
    """Write the table, line by line as it grows."""
    from multiprocessing import Pool

    rows: list[dict[str, str | int]] = []
    with Pool(2) as pool:
        for tried, found in enumerate(pool.imap(row, cases(), chunksize=1), 1):
            rows += [found] if found is not None else []
            print(tried, len(rows), found, file=sys.stderr, flush=True)
            lines = ",\n".join(json.dumps(one) for one in rows)
            PATH.write_text(f'{{"digits": {DIGITS}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
