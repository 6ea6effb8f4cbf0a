"""A campaign of random compositions: every answer is finite, and monotone, where that is known.

    python -m tests.losses.mixed 0 10000

Cases are drawn by number: kinds of loss, times how they are sampled, times a relation, a group and counts,
all from tiny to extreme. Each case is asked for ε at two δ and a further question (`CHECKS`). What fails is
printed with the number of its case, which repeats it.

sums        ε(δ) is no more than the ε of all releases at equal shares of δ
no sample   sampling never costs more than none
moments     ε(δ) is no more than what a Rényi divergence proves
inversion   δ(ε(δ)) is no more than δ, and ε(δ(ε)) no more than ε
monotone    a larger δ or ε, a smaller sample, fewer releases and smaller groups never cost more
largest     a Rényi divergence is no more than the largest loss
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses import (
    Approximate,
    Bound,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscretePair,
    Gaussian,
    GaussianDP,
    Laplace,
    Loss,
    Mixture,
    PrivacyLossDistribution,
    Pure,
    RandomizedResponse,
    Renyi,
    Skellam,
    TradeoffCurve,
    ZeroConcentrated,
    compose,
)
from dalenius.privacy.unit import Relation

HAIR = 1e-6
"""How far, as a share, an answer may be above one that bounds it."""
NARROW = 0.01
"""How far apart the two sides of a tight answer may be, as a share."""
LEAST_EPSILON, LEAST_DELTA = 1e-9, 1e-15
"""Answers are compared down to these."""
INVERSE = 0.01
"""How far, as a share, the delta of an epsilon may be above the delta that was asked for."""
LIMIT, MEMORY = 4, 4 << 30
"""Seconds and bytes that a case of the campaign may take."""


def number(source: random.Random, low: float, high: float) -> Fraction:
    """Draw a decimal between two powers of ten."""
    return Fraction(f"{10 ** source.uniform(low, high):.4g}")


def shares(source: random.Random, many: int) -> list[Fraction]:
    """Draw a law on `many` outcomes, some of which may be impossible."""
    weights = [source.choice([0, 1, 2, 3, 5, 9, 30, 1000]) for _ in range(many)]
    weights[source.randrange(many)] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


def pair(source: random.Random, relation: Relation) -> Loss:
    many = source.randint(2, 4)
    p, q = shares(source, many), shares(source, many)
    rows = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    return DiscretePair([a for a, _ in rows], [b for _, b in rows], relation=relation)


def loss_law(source: random.Random, relation: Relation) -> Loss:
    top = number(source, -2, 1)
    p = Fraction(source.randint(1, 9), 20)
    infinite = source.choice([Fraction(0), Fraction(0), number(source, -12, -2)])
    below = -top * source.randint(1, 9) / 10
    if float(p) * math.exp(-top) + float(1 - p - infinite) * math.exp(-below) > 1 - 1e-9:
        p, below = 1 - infinite, top
    losses, masses = ([top, below], [p, 1 - p - infinite]) if below != top else ([top], [p])
    return PrivacyLossDistribution(losses, masses, infinite=infinite, relation=relation)


def curve(source: random.Random, relation: Relation) -> Loss:
    x = Fraction(source.randint(1, 30), 100)
    y = (1 - x) * Fraction(source.randint(1, 99), 100)
    return TradeoffCurve([0, x, 1], [1, y, 0], relation=relation)


KINDS: dict[str, Callable[[random.Random, Relation], Loss]] = {
    "pure": lambda s, r: Pure(number(s, *s.choice([(-4, 1), (-12, -4), (1, 3)])), relation=r),
    "laplace": lambda s, r: Laplace(number(s, *s.choice([(-1, 2), (2, 9), (-4, -1)])), relation=r),
    "gaussian": lambda s, r: Gaussian(number(s, *s.choice([(-1, 2), (2, 7), (-4, -1)])), relation=r),
    "gaussian_dp": lambda s, r: GaussianDP(number(s, *s.choice([(-3, 1), (-7, -3), (1, 3)])), relation=r),
    "discrete_gaussian": lambda s, r: DiscreteGaussian(number(s, -1, 2), relation=r),
    "discrete_laplace": lambda s, r: DiscreteLaplace(number(s, -1, 2), relation=r),
    "randomized_response": lambda s, r: RandomizedResponse(
        Fraction(s.randint(1, 999), 1000), categories=s.randint(2, 9), relation=r
    ),
    "approximate": lambda s, r: Approximate(number(s, -3, 0.5), delta=number(s, -12, -1), relation=r),
    "zcdp": lambda s, r: ZeroConcentrated(
        number(s, -6, 2), delta=s.choice([0, number(s, -12, -5)]), relation=r
    ),
    "renyi": lambda s, r: Renyi(number(s, 0.1, 3), epsilon=number(s, -4, 1), relation=r),
    "bounded_range": lambda s, r: BoundedRange(number(s, -3, 1), relation=r),
    "skellam": lambda s, r: Skellam(number(s, 0.5, 3), relation=r),
    "pair": pair,
    "loss_law": loss_law,
    "curve": curve,
}
RATES = ((-4, -0.05), (-3, -0.05), (-2, -0.05), (-2, -0.05), (-12, -4))
"""Powers of ten between which sampling rates are drawn."""


def poisson(source: random.Random, loss: Loss) -> Loss:
    return loss.poisson(number(source, *source.choice(RATES)))


def truncated(source: random.Random, loss: Loss) -> Loss:
    population = source.randint(2, 500)
    cap = source.randint(1, population)
    return loss.truncated_poisson(number(source, -2, -0.05), population=population, cap=cap)


def without_replacement(source: random.Random, loss: Loss) -> Loss:
    population = source.randint(2, 10**6)
    return loss.without_replacement(source.randint(1, population - 1), population)


def allocated(source: random.Random, loss: Loss) -> Loss:
    return loss.random_allocation(int(number(source, 0.5, 3)))


def selected(source: random.Random, loss: Loss) -> Loss:
    if source.random() < 0.5:
        return loss.selected(stop=Fraction(source.randint(1, 9), 10))
    return loss.selected(mean=number(source, 0, 1))


def mixed(source: random.Random, loss: Loss) -> Loss:
    other = KINDS[source.choice(sorted(KINDS))](source, loss.relation)
    return Mixture([loss, other], [Fraction(1, 4), Fraction(3, 4)])


SAMPLED: dict[str, Callable[[random.Random, Loss], Loss]] = {
    "poisson": poisson,
    "truncated": truncated,
    "without replacement": without_replacement,
    "allocated": allocated,
    "selected": selected,
    "mixed": mixed,
}
OFTEN = {
    "add_remove": ["poisson"] * 40 + ["truncated", "allocated", "selected", "mixed"],
    "zero_out": ["poisson"] * 5 + ["mixed"],
    "replace": ["without replacement"] * 3 + ["selected", "mixed"],
}
COUNTS = (0.01, 0.01, 1, 1, 3, 6, 9)
"""The powers of ten up to which counts are drawn."""


def term(source: random.Random, relation: Relation) -> Loss:
    """Draw one release."""
    kind = source.choice(sorted(KINDS))
    loss = KINDS[kind](source, relation)
    if source.random() < 0.45:
        loss = SAMPLED[source.choice(OFTEN[relation])](source, loss)
    if source.random() < 0.1:
        loss = loss.group(source.choice([2, 3, 10, 100, 10**4]))
    return loss


@dataclass(frozen=True)
class Case:
    """Releases and how often each is made, and what is asked of them."""

    terms: tuple[tuple[Loss, int], ...]
    deltas: tuple[Fraction, Fraction]
    checks: tuple[str, ...]

    @property
    def loss(self) -> Loss:
        """All releases together."""
        return compose(loss * n for loss, n in self.terms)


def case(seed: int, *, checks: int = 1) -> Case | None:
    """Draw a case by its number; None where it is a scheme that no theorem covers, which is refused."""
    source = random.Random(seed)
    relation: Relation = source.choice(["add_remove", "add_remove", "add_remove", "zero_out", "replace"])
    carried = relation == "replace" and source.random() < 0.5
    terms = []
    for _ in range(source.choice([1, 1, 2, 2, 3])):
        try:
            loss = term(source, "add_remove" if carried else relation)
            loss = loss.under("replace") if carried else loss
        except (InvalidArgument, NotSound):
            continue
        terms.append((loss, int(10 ** source.uniform(0, source.choice(COUNTS)))))
    deltas = sorted({number(source, -12, -0.3), number(source, *source.choice([(-12, -0.3), (-60, -12)]))})
    asked = tuple(source.sample(sorted(CHECKS), checks))
    return Case(tuple(terms), (deltas[0], deltas[-1]), asked) if terms else None


def check(one: Case) -> None:
    """Raise an AssertionError where an answer contradicts another."""
    loss = one.loss
    bounds = [checked(loss.epsilon(delta)) for delta in one.deltas]
    larger = one.deltas[1]
    no_more(bounds[1].upper, bounds[0].upper, "a larger delta costs more")
    added = sum_of_epsilons(one, larger)
    no_more(bounds[1].upper, added * (1 + NARROW), "epsilon is above the sum of all releases")
    back = None
    if 0 < bounds[1].upper < math.inf:
        back = checked(loss.delta(Fraction(bounds[1].upper)), LEAST_DELTA)
        no_more(back.upper, float(larger) * (1 + INVERSE), "delta of epsilon is above delta", LEAST_DELTA)
    for name in one.checks:
        CHECKS[name](one, loss, bounds[1])


def checked(bound: Bound, least: float = LEAST_EPSILON) -> Bound:
    """Return a bound whose sides are in order, and close where it is called tight."""
    if not 0 <= bound.lower <= bound.upper:
        raise AssertionError(f"{bound.lower} is not below {bound.upper}")
    if bound.tight and bound.upper > least and not bound.upper <= bound.lower * (1 + NARROW) + least:
        raise AssertionError(f"[{bound.lower}, {bound.upper}] is called tight")
    return bound


def no_more(less: float, more: float, problem: str, least: float = LEAST_EPSILON) -> None:
    """Raise where the first number is above the second by more than a hair."""
    if not less <= more * (1 + HAIR) + least:
        raise AssertionError(f"{problem}: {less} and {more}")


def sum_of_epsilons(one: Case, delta: Fraction) -> float:
    """Return the sum of the ε of all releases, at equal shares of δ, and at none."""
    share = delta / sum(n for _, n in one.terms)
    return min(math.fsum(n * loss.epsilon(part).upper for loss, n in one.terms) for part in (share, 0))


def unsampled(one: Case, loss: Loss, bound: Bound) -> None:
    """Releases on Poisson samples cost no more than on everybody."""
    whole = [(part.loss if type(part).__name__ == "Poisson" else part, n) for part, n in one.terms]
    if whole != list(one.terms):
        most = compose(part * n for part, n in whole).epsilon(one.deltas[1]).upper
        no_more(bound.upper, most, "sampling costs more than none")


def moments(one: Case, loss: Loss, bound: Bound) -> None:
    """What divergences prove (Canonne, Kamath and Steinke 2020) is not exceeded, nor the largest loss."""
    largest, before = loss.epsilon(0).upper, 0.0
    for alpha in (Fraction(3, 2), Fraction(8), Fraction(200)):
        found = checked(loss.renyi(alpha))
        no_more(found.upper, largest, "a divergence is above the largest loss")
        no_more(before, found.upper, "divergences fall with their order")
        before = found.lower
        a = float(alpha)
        proved = found.upper + (
            math.log(1 / float(one.deltas[1])) + (a - 1) * math.log1p(-1 / a) - math.log(a)
        ) / (a - 1)
        no_more(bound.upper, max(proved, 0.0), f"epsilon is above what order {alpha} proves")


def fewer(one: Case, loss: Loss, bound: Bound) -> None:
    """Leaving out one release never costs more."""
    (first, n), *rest = one.terms
    less = [*rest, (first, n - 1)] if n > 1 else rest
    if less:
        found = checked(compose(part * m for part, m in less).epsilon(one.deltas[1]))
        no_more(found.lower, bound.upper, "one release less costs more")
        no_more(found.upper, bound.upper * (1 + NARROW), "one release less costs more, from above")


def more(one: Case, loss: Loss, bound: Bound) -> None:
    """Ten times as many releases never cost less, and at most ten times as much at a tenth of δ."""
    if sum(n for _, n in one.terms) < 10**9:
        found = checked((loss * 10).epsilon(one.deltas[1]))
        no_more(bound.lower, found.upper, "ten times the releases cost less")
        no_more(bound.upper, found.upper * (1 + NARROW), "ten times the releases cost less, from above")
        most = 10 * loss.epsilon(one.deltas[1] / 10).upper
        no_more(found.upper, most, "ten times the releases cost more than ten times one tenth")


def smaller_sample(one: Case, loss: Loss, bound: Bound) -> None:
    """Half the sampling rate never costs more."""
    halved = [
        (part.loss.poisson(part.sampling_rate / 2) if type(part).__name__ == "Poisson" else part, n)
        for part, n in one.terms
    ]
    if halved != list(one.terms):
        found = checked(compose(part * n for part, n in halved).epsilon(one.deltas[1]))
        no_more(found.lower, bound.upper, "half the sample costs more")
        no_more(found.upper, bound.upper * (1 + NARROW), "half the sample costs more, from above")


def groups(one: Case, loss: Loss, bound: Bound) -> None:
    """A group of two costs no less than one."""
    try:
        whole = loss.group(2)
    except (InvalidArgument, NotSound):
        return
    found = checked(whole.epsilon(one.deltas[1]))
    no_more(bound.lower, found.upper, "a group of two costs less than one")
    no_more(bound.upper, found.upper * (1 + NARROW), "a group of two costs less than one, from above")


def deltas(one: Case, loss: Loss, bound: Bound) -> None:
    """δ falls with ε, is no more than what is known otherwise, and its ε is the ε that was asked for."""
    top = bound.upper if 0 < bound.upper < 700 else 1.0
    asked = [Fraction(top * share) for share in (0, 0.3, 0.9)]
    found = [checked(loss.delta(epsilon), LEAST_DELTA) for epsilon in asked]
    for first, second in pairwise(found):
        no_more(second.upper, first.upper, "a larger epsilon has a larger delta", LEAST_DELTA)
    if top == bound.upper:
        for each in found:
            no_more(min(each.lower, float(one.deltas[1])), each.upper, "delta falls short", LEAST_DELTA)
    if LEAST_DELTA < found[1].upper < 1:
        # Beside a chance of infinite loss, δ is known to fewer digits than ε needs: a hair is added.
        back = checked(loss.epsilon(Fraction(min(found[1].upper * (1 + HAIR), 1.0))))
        no_more(back.upper, float(asked[1]) * (1 + NARROW), "epsilon of delta is above epsilon")


def tradeoffs(one: Case, loss: Loss, bound: Bound) -> None:
    """A trade-off curve falls, and is no lower than what ε and δ prove."""
    rates = (Fraction(0), Fraction(1, 1000), Fraction(1, 3))
    found = [loss.tradeoff(rate) for rate in rates]
    for rate, each in zip(rates, found, strict=True):
        if not 0 <= each.lower <= each.upper <= 1:
            raise AssertionError(f"[{each.lower}, {each.upper}] is no false-negative rate")
        if each.tight and not each.upper - each.lower <= NARROW:
            raise AssertionError(f"[{each.lower}, {each.upper}] is called tight at {rate}")
        if bound.upper < 700:
            proved = 1 - float(one.deltas[1]) - math.exp(bound.upper) * float(rate)
            no_more(proved, each.lower, f"the false-negative rate at {rate} is below what is proved", 1e-3)
    for first, second in pairwise(found):
        no_more(second.lower, first.upper, "the false-negative rate rises")


CHECKS: dict[str, Callable[[Case, Loss, Bound], None]] = {
    "unsampled": unsampled,
    "moments": moments,
    "fewer": fewer,
    "more": more,
    "smaller sample": smaller_sample,
    "groups": groups,
    "deltas": deltas,
    "tradeoffs": tradeoffs,
}


class TooLong(Exception):
    """A case took longer than the campaign allows."""


def _late(*_: object) -> None:
    raise TooLong


def run(seeds: Iterator[int]) -> Counter[str]:
    """Check cases by their numbers, and print what fails."""
    seen: Counter[str] = Counter()
    signal.signal(signal.SIGVTALRM, _late)
    for seed in seeds:
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
        try:
            drawn = case(seed)
            if drawn is None:
                seen["refused"] += 1
                continue
            check(drawn)
            seen["right"] += 1
        except TooLong:
            seen["not finished"] += 1
            print(f"{seed}: not finished in {LIMIT} s\n    {drawn}", flush=True)
        except (Exception, MemoryError) as problem:
            kind = type(problem).__name__
            seen[kind] += 1
            where = traceback.extract_tb(problem.__traceback__)
            last = [f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in where[-3:]]
            print(f"{seed}: {kind}: {problem} | {' '.join(last)}\n    {drawn}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return seen


def main() -> None:
    """Run part of the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    start = time.process_time()
    seen = run(iter(range(options.first, options.last)))
    print(dict(seen), f"{time.process_time() - start:.0f} CPU-s")
    sys.exit(0 if not set(seen) - {"right", "refused", "not finished"} else 1)


if __name__ == "__main__":
    main()
