"""The deployed protocols keep their promises: laws, losses, audits, and a client that never clears a bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from contract import check_audit, check_json, check_law, check_mechanism
from deployed import DEPLOYED
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.local import BitFlips, Client, CountMeanSketch, HadamardSketch, Randomizer, Rappor, decode
from dalenius.local.regression import regressed
from dalenius.local.sketch import Sketch
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.privacy.unit import Unit

REPORT = "one report has none; the estimator has those of many"
CHROME = Rappor(width=128, hashes=2, cohorts=64, replaced=0.5, low=0.5, high=0.75)


def named(one: object) -> str:
    return type(one).__name__


@pytest.mark.parametrize("randomizer", DEPLOYED, ids=named)
def test_contract(randomizer: Randomizer) -> None:
    check_mechanism(randomizer, barless=REPORT, trials=400_000)


@dataclass(frozen=True)
class NeverCleared(Rappor, kind="test_never_cleared"):
    """The permanent response only ever sets bits, as in the RAPPOR client of pure-ldp 1.2.0."""

    def permanent(self, filters: np.ndarray) -> np.ndarray:
        return filters | super().permanent(filters)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.5, 0.75)])
def test_a_client_that_never_clears_a_bit_is_caught(low: float, high: float) -> None:
    broken = NeverCleared(width=4, hashes=2, cohorts=2, replaced=0.5, low=low, high=high)
    check_json(broken)
    with pytest.raises(AssertionError):
        check_law(broken)
    with pytest.raises(AssertionError):
        check_audit(broken, trials=200_000)


def test_epsilons_of_rappor_are_the_papers() -> None:
    """Erlingsson, Pihur and Korolova 2014, equations 2 and 4, with natural logarithms."""
    q, p = 0.25 * 1.25 + 0.5 * 0.75, 0.25 * 1.25 + 0.5 * 0.5
    assert CHROME.loss.epsilon(0).upper == pytest.approx(2 * math.log(q * (1 - p) / (p * (1 - q))), rel=1e-12)
    assert CHROME.permanent_loss.epsilon(0).upper == pytest.approx(4 * math.log(3), rel=1e-12)
    rising = [CHROME.epsilon_of(k) for k in (1, 2, 5, 20, 100, 10**6)]
    assert rising == sorted(rising) and rising[-1] <= 4 * math.log(3) * (1 + 1e-12)
    assert rising[0] == pytest.approx(CHROME.loss.epsilon(0).upper, rel=1e-12)
    assert CHROME.loss_of(1000).epsilon(0).upper == pytest.approx(CHROME.epsilon_of(1000), rel=1e-12)


@pytest.mark.parametrize("reports", [2, 3])
def test_several_reports_cost_what_their_law_says(reports: int) -> None:
    """By all rows of bits of all reports: two bits differ between the strings."""
    rappor = Rappor(width=2, hashes=1, cohorts=1, replaced=0.3, low=0.2, high=0.6)
    half = Fraction(3, 20)

    def mass(is_set: bool, seen: tuple[int, ...]) -> Fraction:
        chance = {
            bit: math.prod(p if one else 1 - p for one in seen)
            for bit, p in ((0, rappor.low), (1, rappor.high))
        }
        return (1 - half) * chance[is_set] + half * chance[not is_set]

    rows = list(product(product((0, 1), repeat=reports), repeat=2))
    first = [mass(True, a) * mass(False, b) for a, b in rows]
    second = [mass(False, a) * mass(True, b) for a, b in rows]
    largest = max(math.log(p / q) for p, q in zip(first, second, strict=True))
    assert rappor.loss_of(reports).epsilon(0).upper == pytest.approx(largest, rel=1e-12)
    assert rappor.epsilon_of(reports) == pytest.approx(largest, rel=1e-12)
    for epsilon in (0.1, 0.7):
        truth = sum(
            max(0.0, float(p) - math.exp(epsilon) * float(q)) for p, q in zip(first, second, strict=True)
        )
        claim = rappor.loss_of(reports).delta(epsilon)
        assert claim.lower - 1e-9 <= truth <= claim.upper + 1e-9 and claim.upper < truth + 1e-6


@dataclass(frozen=True)
class Thrice(Rappor, kind="test_thrice"):
    """Three reports of a device by its memo, as how often each bit was 1."""

    @property
    def loss(self) -> Loss:
        return self.loss_of(3)

    def sample(self, value: str, size: int) -> np.ndarray:
        permanent = self.permanent(
            self.filters(np.zeros(size, int), np.repeat(self.read([value]), size, axis=0))
        )
        return sum(self.instantaneous(permanent).astype(int) for _ in range(3))

    def probabilities(self, value: str) -> Law:
        ones, zeros = (binom.pmf(range(4), 3, float(p)) for p in (self.high, self.low))
        kept = 1 - float(self.replaced) / 2
        bits = self.filters(np.zeros(1, int), self.read([value]))[0]
        laws = [kept * (ones if b else zeros) + (1 - kept) * (zeros if b else ones) for b in bits]
        outcomes = list(product(range(4), repeat=self.width))
        return Law(
            tuple(outcomes),
            np.array([math.prod(law[k] for law, k in zip(laws, o, strict=True)) for o in outcomes]),
        )


@dataclass(frozen=True)
class Forgetful(Thrice, kind="test_forgetful"):
    """It draws its permanent response anew for every report."""

    def sample(self, value: str, size: int) -> np.ndarray:
        words = np.repeat(self.read([value]), size, axis=0)
        bits = self.filters(np.zeros(size, int), words)
        return sum(self.instantaneous(self.permanent(bits)).astype(int) for _ in range(3))


def test_three_reports_of_a_memo_pass_the_audit_and_without_one_they_do_not() -> None:
    given = {"width": 2, "hashes": 1, "cohorts": 1, "replaced": 0.5, "low": 0.1, "high": 0.9}
    check_law(Thrice(**given))
    check_audit(Thrice(**given), trials=400_000)
    with pytest.raises(AssertionError):
        check_law(Forgetful(**given))
    with pytest.raises(AssertionError):
        check_audit(Forgetful(**given), trials=400_000)


def people(size: int, shares: dict[str, float]) -> list[str]:
    rng = np.random.default_rng(5)
    rest = 1 - sum(shares.values())
    found = rng.choice([*shares, ""], size, p=[*shares.values(), rest])
    return [name or f"rare {i}" for i, name in enumerate(found.tolist())]


SHARES = {f"site {k}": 0.3 / 2**k for k in range(6)}
ABSENT = [f"absent {k}" for k in range(60)]


@pytest.fixture(scope="module")
def values() -> Iterator[list[str]]:
    yield people(60_000, SHARES)


@pytest.mark.parametrize(
    "randomizer",
    [
        Rappor(width=64, hashes=2, cohorts=16, replaced=0.25, low=0.25, high=0.75),
        CountMeanSketch.calibrate(rows=2048, columns=64, epsilon=3),
        HadamardSketch.calibrate(rows=4096, columns=256, epsilon=3),
    ],
    ids=named,
)
def test_candidates_are_found(randomizer: Randomizer, values: list[str]) -> None:
    """Heavy ones are, absent ones with 1e-6 at most; estimates are within 6 standard deviations."""
    estimator = randomizer.estimator().add(randomizer.encode(values))
    found = decode(estimator, [*SHARES, *ABSENT], alpha=1e-6)
    true = np.array([values.count(name) for name in [*SHARES, *ABSENT]]) / len(values)
    assert np.all(np.abs(found["share"] - true) < 6 * np.sqrt(found["variance"]))
    assert found["found"][:2].all() and not found["found"][len(SHARES) :].any()
    assert (found["share_low"] <= found["share_high"]).all()
    assert found.columns["item"][0] == "site 0" and "66 candidates" in found.receipt.postprocessing[0]


def test_more_candidates_than_bits_are_chosen_by_other_cohorts(values: list[str]) -> None:
    rappor = Rappor(width=32, hashes=2, cohorts=8, replaced=0.2, low=0.1, high=0.9)
    found = decode(
        rappor.estimator().add(rappor.encode(values)), [*SHARES, *(f"no {k}" for k in range(300))], alpha=1e-6
    )
    assert found["found"][:2].all() and not found["found"][len(SHARES) :].any()
    assert "tested by the other" in found.receipt.postprocessing[0]


def test_what_filters_do_not_tell_apart_is_not_found() -> None:
    """s2 and s67 set the same bits, s8 and s12 too; everybody has s2. With 1e-6 nothing else is found."""
    rappor = Rappor(width=16, hashes=1, cohorts=2, replaced=0.25, low=0.25, high=0.75)
    same = rappor.filters(np.arange(2).repeat(2), np.tile(rappor.read(["s2", "s67"]), (2, 1)))
    assert (same[0] == same[1]).all() and (same[2] == same[3]).all()
    estimator = rappor.estimator().add(rappor.encode(["s2"] * 20_000))
    for others in ([], [f"s{k}" for k in range(13)], [f"s{k}" for k in range(200)]):
        names = list(dict.fromkeys(["s2", "s67", *others]))
        release = decode(estimator, names, alpha=1e-6)
        assert not release["found"].any()
        for name in ("s2", "s67"):
            row = names.index(name)
            assert release["alike"][row] == release["alike"][names.index("s2")] > 0
            assert (release["share_low"][row], release["share_high"][row]) == (0, 1)
            assert release["p_value"][row] == release["variance"][row] == 1
    assert "not told apart: 's2', 's67'" in decode(estimator, ["s2", "s67", "s8"]).receipt.postprocessing[0]
    alone = decode(estimator, ["s2", "s8"], alpha=1e-6)
    assert alone["found"].tolist() == [True, False] and not alone["alike"].any()
    assert "told apart" not in alone.receipt.postprocessing[0]


def test_bits_that_are_sums_of_others_are_not_told_apart() -> None:
    """One bit of each of four sets all bits, as an intercept does: their shares are not determined."""
    counts, ones = np.full(2, 10_000), np.full((2, 4), 4_000)
    filters = np.stack([np.eye(4, dtype=np.uint8)] * 2)
    columns, _ = regressed(counts, ones, filters[:, :3], 0.25, 0.75, 0.05)
    assert columns["alike"] == [0, 0, 0]
    more = np.tile(counts, 8), np.tile(ones, (8, 1)), np.tile(filters, (8, 1, 1))
    columns, _ = regressed(*more, 0.25, 0.75, 0.05)
    assert columns["alike"] == [1] * 4 and columns["share_high"] == [1.0] * 4 and not any(columns["found"])


def test_buckets_that_nobody_drew_are_unknown() -> None:
    flips = BitFlips.calibrate(domain=1000, epsilon=1, chosen=2)
    release = flips.estimator().add(flips.encode([5] * 20)).estimate()
    unseen = release["variance"] == 1
    assert unseen.sum() >= 960 and (release["share_low"][unseen] == 0).all()
    assert (release["share_high"][unseen] == 1).all() and (release["share"][unseen] == 0).all()
    assert f"nobody drew {unseen.sum()} of the buckets" in " ".join(release.receipt.bounds)
    full = BitFlips.calibrate(domain=4, epsilon=1, chosen=4)
    assert "nobody" not in " ".join(full.estimator().add(full.encode([1])).estimate().receipt.bounds)


def test_rappor_is_calibrated_for_all_reports() -> None:
    for epsilon in (0.1, 1, 4):
        rappor = Rappor.calibrate(epsilon=epsilon, hashes=3, cohorts=4)
        assert epsilon * (1 - 1e-9) < rappor.permanent_loss.epsilon(0).upper <= epsilon * (1 + 1e-12)
        assert rappor.loss.epsilon(0).upper < epsilon
    with pytest.raises(InvalidArgument, match="hashes"):
        Rappor.calibrate(epsilon=1, hashes=0)


@pytest.mark.parametrize("kind", [CountMeanSketch, HadamardSketch], ids=lambda kind: kind.__name__)
def test_sketches_are_unbiased_where_much_collides(kind: type[Sketch]) -> None:
    """Everybody has one string, and the other falls where it does in a row of four; at six deviations."""
    sketch = kind.calibrate(rows=4096, columns=4, epsilon=1)
    found = decode(sketch.estimator().add(sketch.encode(["a"] * 50_000)), ["a", "b"])
    sd = sketch.variance(1, users=50_000) ** 0.5
    assert abs(found["share"][0] - 1) < 6 * sd
    assert abs(found["share"][1]) < 6 * sketch.variance(0, users=50_000) ** 0.5


def test_reports_survive_the_wire_and_estimators_merge() -> None:
    for randomizer in DEPLOYED:
        texts = ["a", "b", None, 3, b"\xff"] * 3
        sent = randomizer.encode(texts)
        one = randomizer.estimator().add(sent.to_bytes())
        both = one + randomizer.estimator().add(randomizer.encode(texts))
        assert both.count == 30 and (both.tally.sum() >= one.tally.sum() or isinstance(randomizer, Sketch))
        assert Mechanism.from_json(randomizer.to_json()) == randomizer


def test_bits_of_filters_are_estimated() -> None:
    """All hold one string: its bits are set in all filters, at six standard errors."""
    rappor = Rappor(width=16, hashes=2, cohorts=2, replaced=0.25, low=0.25, high=0.75)
    found = rappor.estimator().add(rappor.encode(["x"] * 20_000)).estimate()
    true = rappor.filters(np.arange(2), np.repeat(rappor.read(["x"]), 2, axis=0)).ravel()
    q, p = map(float, rappor.support)
    assert np.all(np.abs(found["share"] - true) < 6 * 0.5 / math.sqrt(9000) / (q - p))
    share, high = (np.array(found[name]) for name in ("share", "share_high"))
    assert (high <= 1).all() and (high[share >= 1] == 1).all()


def test_what_is_wrong_is_refused() -> None:
    for bad in ({"width": 100}, {"cohorts": 3}, {"replaced": 0}, {"low": 0.8}, {"hashes": 3, "width": 4}):
        with pytest.raises(InvalidArgument):
            Rappor(**{"width": 8, "hashes": 2, "cohorts": 2, "replaced": 0.5, "low": 0.5, "high": 0.75} | bad)
    sketch = HadamardSketch.calibrate(rows=4, columns=8, epsilon=1)
    with pytest.raises(InvalidArgument, match="decode"):
        sketch.estimator().add(sketch.encode(["a"])).estimate()
    with pytest.raises(InvalidArgument, match="strings"):
        decode(BitFlips.calibrate(domain=5, epsilon=2, chosen=3).estimator(), ["a"])
    with pytest.raises(InvalidArgument, match="no reports"):
        decode(sketch.estimator(), ["a"])
    for text in ("hello", b"hello"):
        with pytest.raises(InvalidArgument, match="several"):
            decode(sketch.estimator().add(sketch.encode(["a"])), text)
    with pytest.raises(InvalidArgument, match="2\\^27"):
        HadamardSketch.calibrate(rows=2**16, columns=2**15, epsilon=1)


def test_one_bit_has_all_of_epsilon() -> None:
    assert BitFlips.calibrate(domain=9, epsilon=1, chosen=1).loss.epsilon(0).upper == pytest.approx(
        1, rel=1e-9
    )
    assert BitFlips.calibrate(domain=9, epsilon=1, chosen=2).loss.epsilon(0).upper == pytest.approx(
        1, rel=1e-9
    )


def test_decoding_is_charged_once(tmp_path) -> None:
    from dalenius.ledger import Budget, Ledger

    ledger = Ledger(tmp_path / "l.db")
    account = ledger.open("phones", unit=Unit("person", relation="replace"), budget=Budget(epsilon=5))
    sketch = HadamardSketch.calibrate(rows=4, columns=8, epsilon=2)
    estimator = sketch.estimator(account, by="ana").add(sketch.encode(["a"] * 10))
    assert decode(estimator, ["a"]).receipt.entry == decode(estimator, ["b"]).receipt.entry is not None
    assert float(account.spent.epsilon) == pytest.approx(2, rel=1e-9)


def test_a_client_reports_what_the_randomizer_reads() -> None:
    """The reports of many clients have the law of fresh reports: the mean of bits, at six standard errors."""
    rappor = Rappor(width=4, hashes=1, cohorts=1, replaced=0.5, low=0.25, high=0.75)
    sent = np.concatenate([Client(rappor).report("v").rows for _ in range(2000)])
    chances = np.where(rappor.filters(np.zeros(1, int), rappor.read(["v"]))[0], *map(float, rappor.support))
    assert np.all(np.abs(sent.mean(axis=0) - chances) < 6 * 0.5 / math.sqrt(2000))
