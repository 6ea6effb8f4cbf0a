"""Ranges: every one unbiased by enumeration, variances, intervals that cover, and shares that add up."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from measures import RANGES, named, surveys
from scipy.stats import binom, norm
from sizes import slow

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import HaarRanges, HadamardResponse, KaryResponse, TreeRanges, consistent, range_shares
from dalenius.local.consistency import nearest
from dalenius.local.ranges import RangeRandomizer
from dalenius.local.tree import decomposed, level_sizes
from dalenius.local.walsh import transformed

ALARM = 1e-6
REPEATS, PEOPLE = 2000, 10_000
FEW = [RANGES[0], *slow([RANGES[1]]), *RANGES[2:4], *slow([RANGES[4]]), RANGES[5]]
"""Surveys of many are slow where there are many items."""


def laws(one: RangeRandomizer) -> np.ndarray:
    return np.array([one.masses(item) for item in range(one.domain)])


@pytest.mark.parametrize("one", RANGES, ids=named)
def test_every_range_is_unbiased(one: RangeRandomizer) -> None:
    """Exactly, for every range and every item; masses add up, and none is below the least."""
    masses = laws(one)
    assert masses.sum(axis=1) == pytest.approx(np.ones(one.domain))
    assert (masses.min(axis=0) >= one.least() * (1 - 1e-12)).all()
    for first, stop in combinations(range(one.domain + 1), 2):
        inside = (np.arange(one.domain) >= first) & (np.arange(one.domain) < stop)
        assert masses @ one.terms(first, stop) == pytest.approx(inside.astype(float), abs=1e-9)


@pytest.mark.parametrize("one", RANGES, ids=named)
def test_no_two_items_tell_more_than_the_ends(one: RangeRandomizer) -> None:
    """By total variation and by the largest ratio, over all pairs."""
    masses = laws(one)
    a, b = map(float, one.apart)
    apart = [np.maximum(p - q, 0).sum() for p, q in combinations(masses, 2)]
    assert max(apart) == pytest.approx(a - b) == pytest.approx(np.maximum(masses[0] - masses[-1], 0).sum())
    assert max((p / q).max() for p, q in combinations(masses, 2)) == pytest.approx(a / b)


@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
def test_published_variance_of_haar(epsilon: float) -> None:
    """Cormode, Kulkarni and Srivastava 2019: at most h²/2 of the oracle's, and that by enumeration."""
    one = HaarRanges.calibrate(domain=16, epsilon=epsilon)
    masses, worst = laws(one), 0.0
    for first, stop in combinations(range(17), 2):
        terms = one.terms(first, stop)
        worst = max(worst, float((masses @ terms**2 - (masses @ terms) ** 2).max()))
    factor = ((math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)) ** 2
    assert worst <= one.variance() == pytest.approx(8 * factor, rel=1e-9)
    assert worst >= one.variance() / 4


@pytest.mark.parametrize(("domain", "branching"), [(9, 3), (10, 3), (64, 4), (37, 2), (5, 8), (100, 7)])
def test_ranges_are_cut_into_whole_intervals(domain: int, branching: int) -> None:
    """Each item of the range once, and at most 2(B − 1) intervals of a level."""
    sizes = level_sizes(domain, branching)
    for first, stop in combinations(range(domain + 1), 2):
        found = decomposed(first, stop, domain, branching, len(sizes))
        if found is None:
            assert (first, stop) == (0, domain)
            continue
        items: list[int] = []
        for level, nodes in enumerate(found):
            long = branching ** (len(sizes) - 1 - level)
            assert len(nodes) <= 2 * (branching - 1)
            for node in nodes:
                items.extend(range(node * long, min((node + 1) * long, domain)))
        assert sorted(items) == list(range(first, stop))


def crowd(one: RangeRandomizer) -> dict[float, int]:
    return {0: 6000, one.domain // 3: 3000, one.domain - 1: 1000} if one.domain > 2 else {0: 9000, 1: 1000}


def asked(one: RangeRandomizer) -> list[tuple[int, int]]:
    return [(0, 1), (0, one.domain // 2), (one.domain // 3, one.domain), (1, max(one.domain - 1, 2))]


def covered(one: RangeRandomizer) -> None:
    tallies = surveys(one, crowd(one), REPEATS)
    for first, stop in asked(one):
        truth = sum(many for item, many in crowd(one).items() if first <= item < stop) / PEOPLE
        terms = one.terms(first, stop)
        mean, square = tallies @ terms / PEOPLE, tallies @ terms**2 / PEOPLE
        low, high, variance = one.of_terms(terms, mean, square, PEOPLE)
        held = np.count_nonzero((low <= truth) & (truth <= high))
        assert binom.cdf(held, REPEATS, 0.95) > ALARM / 4
        assert abs(mean.mean() - truth) <= norm.isf(ALARM / 2) * math.sqrt(variance.mean() / REPEATS) * 1.05
        assert mean.var() == pytest.approx(variance.mean(), rel=6 * math.sqrt(2 / REPEATS), abs=1e-15)


@pytest.mark.parametrize("one", FEW, ids=named)
def test_intervals_of_ranges_cover(one: RangeRandomizer) -> None:
    """One-sided at 1e-6: 2,000 surveys of 10,000 people, and the stated variance is the real one."""
    covered(one)


def test_intervals_that_are_too_short_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.local.frequency.ALPHA", 0.4)
    with pytest.raises(AssertionError):
        covered(RANGES[0])


@pytest.mark.parametrize("one", FEW, ids=named)
def test_intervals_of_levels_cover(one: RangeRandomizer) -> None:
    """The theorem on levels: by those who drew the level, for all people; one-sided at 1e-6 for each."""
    measure = "difference" if isinstance(one, HaarRanges) else "share"
    people = crowd(one)
    found = [one.estimates(tally, PEOPLE).columns for tally in surveys(one, people, REPEATS)]
    first, last = (np.array(found[0][name]) for name in ("first", "last"))
    middle = (first + last) / 2
    truth = np.zeros(len(first))
    for item, many in people.items():
        sign = np.where(item < middle, 1, -1) if measure == "difference" else 1
        truth += sign * ((first <= item) & (item <= last)) * many / PEOPLE
    value, low, high = (np.array([one[f"{measure}{end}"] for one in found]) for end in ("", "_low", "_high"))
    held = ((low <= truth + 1e-12) & (truth - 1e-12 <= high)).sum(axis=0)
    assert (binom.cdf(held, REPEATS, 0.95) > ALARM / len(first)).all()
    spread = np.sqrt(value.var(axis=0) / REPEATS)
    assert (
        np.abs(value.mean(axis=0) - truth) <= norm.isf(ALARM / 2 / len(first)) * spread * 1.05 + 1e-12
    ).all()


def test_a_choice_of_coins_is_a_sum_of_coins() -> None:
    """The theorem on levels: the generating function of every choice of m of n coins has real zeros only."""
    chances = np.asarray(noise.uniform(10**6, 7)) / 10**6
    for m in range(1, 8):
        total = np.zeros(m + 1)
        for chosen in combinations(chances, m):
            product = np.ones(1)
            for p in chosen:
                product = np.convolve(product, [1 - p, p])
            total += product
        roots = np.roots(total[::-1])
        assert np.abs(roots.imag).max() < 1e-4 * max(1.0, np.abs(roots).max())
        assert (total @ np.arange(m + 1)) / total.sum() / m == pytest.approx(chances.mean())


@pytest.mark.parametrize("make", [HaarRanges.calibrate, TreeRanges.calibrate])
def test_ranges_of_many_people(make: object) -> None:
    """From end to end; false alarm 1e-6, and the receipt is the estimator's."""
    one = make(domain=100, epsilon=1)
    people = np.repeat(np.arange(100), np.arange(100) * 8)
    estimator = one.estimator().add(one.encode(people).to_bytes())
    ranges = [(0, 99), (0, 9), (10, 59), (60, 99), (25, 25)]
    found = range_shares(estimator, ranges)
    truth = np.array([np.mean((people >= a) & (people <= b)) for a, b in ranges])
    wide = norm.isf(ALARM / 10) * np.sqrt(found["variance"]) * 1.1
    assert (np.abs(found["share"] - truth) <= wide + 1e-9).all()
    assert found["share"][0] == pytest.approx(1)
    assert found.measures == ("share",) and "same reports" in found.receipt.postprocessing[0]
    assert found.receipt.mechanism == one.to_json()


def test_parts_of_a_range_add_up() -> None:
    """Haar: with the padding as a last part."""
    one = HaarRanges.calibrate(domain=64, epsilon=1)
    whole = one.terms(5, 41)
    assert one.terms(5, 17) + one.terms(17, 40) + one.terms(40, 41) == pytest.approx(whole)


def test_bad_ranges_are_refused() -> None:
    one, other = RANGES[0], KaryResponse(domain=3, ratio=2)
    estimator = one.estimator().add(one.encode([1, 2]))
    for bad in ((-1, 2), (3, 2), (0, 8), (0.5, 2)):
        with pytest.raises(InvalidArgument, match=r"first|last"):
            range_shares(estimator, [bad])
    with pytest.raises(InvalidArgument, match="about ranges"):
        range_shares(other.estimator().add(other.encode([1])), [(0, 1)])
    with pytest.raises(InvalidArgument, match="no reports"):
        range_shares(one.estimator(), [(0, 1)])


def test_bad_trees_are_refused() -> None:
    small = KaryResponse(domain=2, ratio=3)
    for oracles in (
        (small,),
        (small, KaryResponse(domain=6, ratio=3)),
        (small, KaryResponse(domain=7, ratio=2)),
        (small, HadamardResponse(domain=7, ratio=3, blocks=2)),
    ):
        with pytest.raises(InvalidArgument, match="oracles"):
            TreeRanges(domain=7, branching=4, oracles=oracles)


def test_consistent_shares_add_up_and_are_the_nearest() -> None:
    """By least squares on the whole tree at once, in a basis of the items; 11 items, 3 levels."""
    sizes, branching, variances = level_sizes(11, 3), 3, [2.0, 1.0, 0.5]
    shares = [np.sin(np.arange(size) + 1.0) for size in sizes]
    found = nearest(shares, variances, branching)
    rows, targets, weights = [], [], []
    for level, own in enumerate(shares):
        long = branching ** (len(sizes) - 1 - level)
        for node, share in enumerate(own):
            rows.append((np.arange(11) // long == node).astype(float))
            targets.append(share)
            weights.append(variances[level] ** -0.5)
    # The whole is 1: the last item is what the others leave.
    basis, target, weight = np.array(rows), np.array(targets), np.array(weights)
    free = (basis[:, :-1] - basis[:, -1:]) * weight[:, None]
    items = np.linalg.lstsq(free, (target - basis[:, -1]) * weight, rcond=None)[0]
    items = np.append(items, 1 - items.sum())
    assert np.concatenate(found) == pytest.approx(basis @ items, abs=1e-9)


def test_consistency_is_post_processing_that_helps() -> None:
    """Nearer to the truth in the mean of 10 surveys, receipts say so, bars stay."""
    one = TreeRanges.calibrate(domain=64, epsilon=1)
    people = np.arange(20_000) % 16
    truth = np.where(np.arange(64) < 16, 1 / 16, 0.0)
    before = after = 0.0
    for _ in range(10):
        raw = one.estimator().add(one.encode(people)).estimate()
        moved = consistent(raw)
        items = raw["level"] == one.levels
        before += np.sum((raw["share"][items] - truth) ** 2)
        after += np.sum((moved["share"][items] - truth) ** 2)
        assert moved["share"][items].sum() == pytest.approx(1)
    assert after < before
    assert "add up" in moved.receipt.postprocessing[0] and "variance" not in moved.columns
    assert moved.columns["share_low"] == raw.columns["share_low"]
    with pytest.raises(InvalidArgument, match="intervals"):
        consistent(range_shares(one.estimator().add(one.encode(people)), [(0, 1)]))


def test_the_fast_transform_is_that_of_the_matrix() -> None:
    signs = [[(-1) ** int(i & j).bit_count() for j in range(8)] for i in range(8)]
    table = np.arange(8) ** 2 - 7
    assert transformed(table).tolist() == (np.array(signs) @ table).tolist()
