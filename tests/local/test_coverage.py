"""Intervals of the deployed protocols cover: 2,000 surveys of 10,000 people, one-sided at 1e-6.

By default surveys are drawn as counts, by laws that are shown to be those of reports; the slow suite makes
all twenty million reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from deployed import DEPLOYED
from oracles import by_count
from scipy.stats import binom, norm
from sizes import slow

from dalenius.local import (
    BitFlips,
    CountMeanSketch,
    FragmentPuzzle,
    HadamardSketch,
    PrefixExtending,
    Randomizer,
    Rappor,
    decode,
)
from dalenius.local.bit_rows import BitRows
from dalenius.local.collisions import collided, meeting
from dalenius.local.crowds import binomials, dyadic
from dalenius.local.grouped import GroupedSketch
from dalenius.local.sketch import Sketch
from dalenius.local.strings import words_of

ALARM = 1e-6
REPEATS, PEOPLE, DRAWN = 2000, 10_000, 1000
NAMES, COUNTS = ["a", "b", "c", "d"], np.array([6000, 3000, 1000, 0])
Columns = dict[str, np.ndarray]


def named(one: object) -> str:
    return type(one).__name__


def covered(columns: Columns, truth: np.ndarray) -> None:
    """A row for each survey, a column for each interval."""
    held = ((columns["share_low"] <= truth + 1e-12) & (truth - 1e-12 <= columns["share_high"])).sum(axis=0)
    assert (binom.cdf(held, REPEATS, 0.95) > ALARM / held.size).all(), held


def unbiased(share: np.ndarray, truth: np.ndarray) -> None:
    spread = share.std(axis=0) / math.sqrt(REPEATS)
    assert (np.abs(share.mean(axis=0) - truth) < norm.isf(ALARM / 2 / truth.size) * spread).all()


def stacked(found: list[Mapping[str, Any]]) -> Columns:
    """Of many surveys."""
    names = ("share", "share_low", "share_high")
    return {name: np.array([one[name] for one in found]) for name in names}


# Sketches: hashes are drawn anew for each survey, by strings of its own.

SKETCHES = [
    CountMeanSketch.calibrate(rows=256, columns=16, epsilon=2),
    CountMeanSketch.calibrate(rows=4096, columns=256, epsilon=4),
    HadamardSketch.calibrate(rows=256, columns=16, epsilon=2),
    HadamardSketch.calibrate(rows=4096, columns=256, epsilon=4),
]


def met(sketch: Sketch) -> np.ndarray:
    """For each survey, in how many rows each two of its strings meet."""
    found = []
    for part in np.array_split(np.arange(REPEATS), 20):
        words = words_of(f"{survey} {name}".encode() for survey in part for name in NAMES)
        rows, spots = np.arange(sketch.rows), np.empty((len(words), sketch.rows), np.int64)
        for place, word in enumerate(words):
            spots[place] = sketch.spots(rows, np.repeat(word[None], sketch.rows, axis=0))[:, 0]
        each = spots.reshape(len(part), len(NAMES), sketch.rows)
        found.append((each[:, :, None] == each[:, None]).sum(axis=3))
    return np.concatenate(found)


def supporting(sketch: Sketch, people: np.ndarray) -> np.ndarray:
    """How many of these people's reports support each string, a row for each survey."""
    rows = np.broadcast_to(people[:, None], (REPEATS, len(NAMES), len(NAMES)))
    there = dyadic(rows, met(sketch), (sketch.rows - 1).bit_length()).sum(axis=2)
    p, q = sketch.support
    return binomials(there, p) + binomials(people.sum(axis=1, keepdims=True) - there, q)


def sketched(sketch: Sketch) -> Columns:
    found = sketch.shares(supporting(sketch, np.tile(COUNTS, (REPEATS, 1))), PEOPLE, 0.05)
    return {name: np.array(column) for name, column in found.items()}


@pytest.mark.parametrize("sketch", SKETCHES, ids=named)
def test_intervals_of_sketches_cover(sketch: Sketch) -> None:
    """For each of four strings; shares are without bias, the variance is at most what is stated."""
    columns = sketched(sketch)
    covered(columns, COUNTS / PEOPLE)
    unbiased(columns["share"], COUNTS / PEOPLE)
    spread, stated = columns["share"].var(axis=0), columns["variance"].mean(axis=0)
    assert (spread < stated * (1 + 6 * math.sqrt(2 / REPEATS))).all()


@pytest.mark.parametrize("groups", [PrefixExtending, FragmentPuzzle], ids=lambda kind: kind.__name__)
def test_intervals_of_heavy_hitters_cover(groups: type) -> None:
    """The last group is asked about whole strings; these are shares of all people, by those who drew it."""
    covered(grouped(groups), COUNTS / PEOPLE)


def grouped(groups: type[GroupedSketch]) -> Columns:
    hitters = groups.calibrate(length=3, epsilon=2, rows=256, columns=64)
    people = binomials(np.tile(COUNTS, (REPEATS, 1)), Fraction(1, hitters.groups))
    counts = supporting(hitters.sketch, people)
    found = hitters.sketch.shares(counts, people.sum(axis=1, keepdims=True), 0.05)
    return {name: np.array(column) for name, column in found.items()}


@pytest.mark.parametrize("sketch", [one for one in DEPLOYED if isinstance(one, Sketch)], ids=named)
def test_a_report_supports_a_string_as_often_as_rows_say(sketch: Sketch) -> None:
    """Exactly, by the listed law of a report: q + (p − q)·k/rows."""
    words = words_of(name.encode() for name in NAMES)
    p, q = map(float, sketch.support)
    law = [sketch.probabilities(name) for name in NAMES]
    rows = np.array(law[0].outcomes).reshape(len(law[0].outcomes), -1)
    supports = np.array([sketch.supporters(sketch.tally(row[None]), 1, words) for row in rows])
    found = np.array([one.masses @ supports for one in law])
    met_in = meeting(words, sketch.rows, sketch.columns)
    assert (np.diag(met_in) == sketch.rows).all()
    assert found == pytest.approx(q + (p - q) * met_in / sketch.rows, abs=1e-12)


def test_those_who_fall_where_a_string_does_are_counted() -> None:
    """By mean and variance of 1,000 draws, at six standard errors."""
    words, people = words_of(name.encode() for name in NAMES), np.array([50, 7, 300, 0])
    chances = meeting(words, 8, 4) / 8
    drawn = np.array([collided(words, people, 8, 4) for _ in range(DRAWN)])
    mean, variance = people @ chances, people @ (chances * (1 - chances))
    assert (np.abs(drawn.mean(axis=0) - mean) <= 6 * np.sqrt(variance / DRAWN)).all()
    assert drawn.var(axis=0) == pytest.approx(variance, rel=6 * math.sqrt(3 / DRAWN))


# RAPPOR: bits of a cohort, and candidates by regression.

RAPPORS = [
    (Rappor(width=16, hashes=2, cohorts=8, replaced=0.25, low=0.2, high=0.8), 4),
    (Rappor(width=8, hashes=1, cohorts=16, replaced=0.25, low=0.1, high=0.9), 80),
]


def asked(many: int) -> tuple[list[str], np.ndarray]:
    names = [*NAMES, *(f"absent {k}" for k in range(many - len(NAMES)))]
    return names, np.concatenate([COUNTS, np.zeros(many - len(NAMES), np.int64)])


@pytest.mark.parametrize(("rappor", "many"), RAPPORS, ids=["few", "chosen by half"])
def test_intervals_of_regressed_candidates_cover(rappor: Rappor, many: int) -> None:
    """Each candidate, those that nobody has too; where one half chose, what it left out is anywhere."""
    covered(regressed(rappor, many), asked(many)[1] / PEOPLE)


def regressed(rappor: Rappor, many: int) -> Columns:
    names, people = asked(many)
    words = rappor.read(names)
    tallies = rappor.crowd(words, np.tile(people, (REPEATS, 1)))
    return stacked([rappor.decoded(tally, PEOPLE, words, 0.05)[0] for tally in tallies])


def test_intervals_of_bits_cover() -> None:
    """One cohort, of which all are: the share of filters that have a bit."""
    covered(*bits_of_one())


def bits_of_one() -> tuple[Columns, np.ndarray]:
    rappor = Rappor(width=16, hashes=2, cohorts=1, replaced=0.5, low=0.5, high=0.75)
    words = rappor.read(NAMES)
    tallies = rappor.crowd(words, np.tile(COUNTS, (REPEATS, 1)))
    truth = COUNTS @ rappor.filters(np.zeros(len(NAMES), int), words).astype(int) / PEOPLE
    return stacked([rappor.estimates(tally, PEOPLE).columns for tally in tallies]), truth


@pytest.mark.parametrize("rows", [one for one in DEPLOYED if isinstance(one, BitRows)], ids=named)
def test_crowds_have_the_law_of_reports(rows: BitRows) -> None:
    """The listed law: rows as likely as each other, bits by themselves with the chances that are drawn with.

    Then the tallies of 2,000 crowds, by means and variances, at six standard errors.
    """
    law, (high, low) = rows.probabilities("a"), map(float, rows.support)
    row, bits = rows.parted(np.array(law.outcomes))
    chances = np.where(
        rows.filters(np.arange(rows.layout[0]), np.repeat(rows.read(["a"]), rows.layout[0], axis=0)),
        high,
        low,
    )
    each = np.where(bits, chances[row], 1 - chances[row]).prod(axis=1) / rows.layout[0]
    assert law.masses == pytest.approx(each, abs=1e-12)
    drawn = rows.crowd(rows.read(["a"]), np.full((REPEATS, 1), 500)).reshape(REPEATS, rows.layout[0], -1)
    ones = np.concatenate([np.full((len(chances), 1), 1.0), chances], axis=1) / rows.layout[0]
    spread = 500 * ones * (1 - ones)
    assert (np.abs(drawn.mean(axis=0) - 500 * ones) <= 6 * np.sqrt(spread / REPEATS) + 1e-9).all()
    assert drawn.var(axis=0) == pytest.approx(spread, rel=6 * math.sqrt(2 / REPEATS), abs=1e-9)
    assert (drawn[:, :, 0].sum(axis=1) == 500).all()


# dBitFlip.

BUCKETS = np.array([5000, 2500, 1250, 1250, 0, 0, 0, 0])


@pytest.mark.parametrize("chosen", [1, 3, *slow([8])])
def test_intervals_of_bit_flips_cover(chosen: int) -> None:
    """For each of eight buckets; shares are without bias, and variances as stated."""
    columns = flipped(chosen)
    covered(columns, BUCKETS / PEOPLE)
    unbiased(columns["share"], BUCKETS / PEOPLE)
    stated = BitFlips.calibrate(domain=8, epsilon=2, chosen=chosen).variance(0, users=PEOPLE)
    assert columns["share"].var(axis=0)[7] == pytest.approx(stated, rel=6 * math.sqrt(2 / REPEATS))


def flipped(chosen: int) -> Columns:
    flips = BitFlips.calibrate(domain=8, epsilon=2, chosen=chosen)
    people = np.tile(BUCKETS, (REPEATS, 1))
    inside, outside = binomials(people, flips.drawn), binomials(PEOPLE - people, flips.drawn)
    ones = binomials(inside, flips.own) + binomials(outside, 1 - flips.own)
    if chosen == 8:
        return by_count(lambda counts: flips.estimates(both(counts, PEOPLE - counts), PEOPLE), ones)
    found = flips.estimates(both(ones, inside + outside - ones), PEOPLE).columns
    return {name: np.array(column).reshape(people.shape) for name, column in found.items()}


def both(ones: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    return np.stack([zeros, ones], axis=-1).ravel()


@pytest.mark.parametrize("flips", [one for one in DEPLOYED if isinstance(one, BitFlips)], ids=named)
def test_buckets_are_drawn_and_flipped_as_counts_are(flips: BitFlips) -> None:
    """Exactly, by the listed law of a report, for each bucket."""
    for item in range(flips.domain):
        law = flips.probabilities(item)
        tallies = np.array([flips.tally(np.array(one).reshape(1, -1)) for one in law.outcomes])
        zero, one = (law.masses @ tallies).reshape(-1, 2).T
        assert zero + one == pytest.approx(np.full(flips.domain, float(flips.drawn)))
        own = np.where(np.arange(flips.domain) == item, float(flips.own), 1 - float(flips.own))
        assert one == pytest.approx(own * float(flips.drawn))


# By all reports.


@pytest.mark.slow
@pytest.mark.parametrize(
    "randomizer", [RAPPORS[0][0], SKETCHES[0], SKETCHES[2]], ids=["Rappor", "CountMean", "Hadamard"]
)
def test_intervals_of_strings_cover_by_all_reports(randomizer: Randomizer) -> None:
    """The hashes are fixed, the coins are not."""
    sent = np.repeat(NAMES, COUNTS)
    surveys = (decode(randomizer.estimator().add(randomizer.encode(sent)), NAMES) for _ in range(REPEATS))
    covered(stacked([one.columns for one in surveys]), COUNTS / PEOPLE)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [1, 3, 8])
def test_intervals_of_buckets_cover_by_all_reports(chosen: int) -> None:
    flips = BitFlips.calibrate(domain=8, epsilon=2, chosen=chosen)
    sent = np.repeat(np.arange(8), BUCKETS)
    surveys = (flips.estimator().add(flips.encode(sent)).estimate() for _ in range(REPEATS))
    covered(stacked([one.columns for one in surveys]), BUCKETS / PEOPLE)


# The tests above can fail.


@pytest.mark.parametrize(
    ("surveys", "truth", "by"),
    [
        (lambda: regressed(*RAPPORS[0]), COUNTS, 0.8),
        *slow([(lambda: regressed(*RAPPORS[1]), asked(80)[1], 0.8)]),
        (lambda: bits_of_one()[0], bits_of_one()[1] * PEOPLE, 0.8),
        (lambda: flipped(3), BUCKETS, 0.4),
        *slow([(lambda: flipped(8), BUCKETS, 0.8), (lambda: flipped(1), BUCKETS, 0.4)]),
        (lambda: sketched(SKETCHES[1]), COUNTS, 0.4),
        *slow([(lambda: sketched(SKETCHES[3]), COUNTS, 0.4)]),
        (lambda: grouped(PrefixExtending), COUNTS, 0.4),
    ],
)
def test_intervals_that_are_too_short_are_caught(
    surveys: Callable[[], Columns], truth: np.ndarray, by: float
) -> None:
    """By a fifth where bars are those of coins alone; by more where they allow for who drew what, and for
    hashes, which is more than is needed. Only where the truth is no end of what is possible.
    """
    columns, inner = surveys(), (truth > 0) & (truth < PEOPLE)
    share = columns["share"]
    low, high = (share + by * (columns[name] - share) for name in ("share_low", "share_high"))
    with pytest.raises(AssertionError):
        covered({"share_low": low[:, inner], "share_high": high[:, inner]}, truth[inner] / PEOPLE)
