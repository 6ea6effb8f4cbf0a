from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.gaussian import Gaussian, GaussianDP
from dalenius.losses.iteration import LastIterate
from dalenius.losses.iteration.contraction import Course, geometric
from dalenius.losses.loss import Loss


def descent(c: float, steps: int, shift: float, /, **more) -> LastIterate:
    """Steps that contract by c and that a unit moves by `shift` standard deviations of their noise."""
    given = {
        "lipschitz": shift,
        "smoothness": 1,
        "strong_convexity": round(1 - c, 9),
        "learning_rate": 1,
        "noise": 1,
        "steps": steps,
        "population": 1,
        "relation": "zero_out",
    }
    return LastIterate(**{**given, **more})


@pytest.mark.parametrize(
    ("c", "published"),
    [
        (0.92, (0.308, 0.490, 0.490)),
        (0.96, (0.314, 0.688, 0.700)),
        (0.98, (0.316, 0.871, 0.995)),
        (0.99, (0.316, 0.961, 1.411)),
        (0.995, (0.316, 0.990, 1.984)),
    ],
)
def test_full_batches_cost_what_bok_su_and_altschuler_say(c, published):
    # Bok, Su and Altschuler 2024, Table 7, as their code prints it: L/(nσ) = 0.1, t = 10, 100, 1000.
    found = [float(descent(c, steps, 0.1).mu) for steps in (10, 100, 1000)]
    assert found == pytest.approx(published, abs=6e-4)


@pytest.mark.parametrize(
    ("epochs", "composed", "regularized"), [(50, 30.51, 4.34), (100, 49.88, 5.60), (200, 83.83, 7.58)]
)
def test_cyclic_batches_cost_what_bok_su_and_altschuler_say(epochs, composed, regularized):
    # Bok, Su and Altschuler 2024, Table 1, as their code prints it: logistic regression on MNIST with 40
    # batches, L/(bσ) = 2/3, λ = 0.002 (c = 0.9999), δ = 1e-5.
    loss = descent(0.9999, 40 * epochs, Fraction(2, 3), population=40, batch=1)
    assert loss.epsilon(1e-5).upper == pytest.approx(regularized, abs=0.006)
    assert loss.composed.epsilon(1e-5).upper == pytest.approx(composed, abs=0.006)


@pytest.mark.parametrize(("slope", "rate"), [(0.25, 0.2), (0.5, 0.1), (1, 0.05)])
def test_a_bounded_set_costs_what_bok_su_and_altschuler_say(slope, rate):
    # Table 8, as their code prints it: σ = 8, D = 1; μ = √(3L/(nη) + (L/n)²⌈n/(ηL)⌉)/σ from some step on.
    loss = LastIterate(
        lipschitz=slope,
        smoothness=1,
        learning_rate=rate,
        noise=8,
        steps=10**6,
        population=1,
        diameter=1,
        relation="zero_out",
    )
    theirs = math.sqrt(3 * slope / rate + slope**2 * math.ceil(1 / (slope * rate))) / 8
    assert float(loss.mu) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("after", [0, 5, 19])
def test_one_pass_costs_what_feldman_mironov_talwar_and_thakurta_say(after):
    # Feldman et al. 2018: a unit used E times, the last time `after` steps before the end, costs
    # 2α/(σb)²·((E − 1)/l + 1/(after + 1)) at order α, as in their code for TensorFlow Privacy.
    for epochs in (1, 5):
        loss = LastIterate(
            lipschitz=1,
            smoothness=1,
            learning_rate=1,
            noise=3,
            steps=20 * epochs,
            population=100,
            batch=5,
            after=after,
        )
        theirs = 2 * 8 / 15**2 * ((epochs - 1) / 20 + 1 / (after + 1))
        assert loss.renyi(8).upper == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("relation", ["replace", "zero_out"])
@pytest.mark.parametrize(("steps", "cycle", "after"), [(1, 1, 0), (7, 1, 0), (12, 3, 0), (13, 4, 2)])
def test_the_exact_law_of_linear_losses_is_dominated_and_attained_by_one_batch(steps, cycle, after, relation):
    """With fᵢ = ±L·x and r = mx²/2 the last iterate is Gaussian: its mean and variance, step by step."""
    rate, curvature, noise, lipschitz, batch = 0.5, 0.25, 0.8, 1.3, 2
    loss = LastIterate(
        lipschitz=lipschitz,
        smoothness=1,
        strong_convexity=curvature,
        learning_rate=rate,
        noise=noise,
        steps=steps,
        population=batch * cycle,
        batch=batch,
        after=after,
        relation=relation,
    )
    ends = (1, -1) if relation == "replace" else (1, 0)
    means, variance = [0.0, 0.0], 0.0
    for k in range(1, steps + 1):
        used = k <= steps - after and (steps - after - k) % cycle == 0
        for i, side in enumerate(ends):
            slope = side * lipschitz / batch if used else 0.0
            means[i] = means[i] - rate * (curvature * means[i] + slope)
        variance = (1 - rate * curvature) ** 2 * variance + (rate * noise) ** 2
    truth = abs(means[0] - means[1]) / math.sqrt(variance)
    assert truth <= float(loss.mu) * (1 + 1e-12)
    assert loss.tight == (cycle == 1)
    if loss.tight:
        assert truth == pytest.approx(float(loss.mu), rel=1e-12)
    assert truth == pytest.approx(float(loss.attained().mu), rel=1e-12)
    bound = GaussianDP(Fraction(truth), relation=relation).epsilon(1e-5)
    assert loss.epsilon(1e-5).lower <= bound.upper * (1 + 1e-9)
    assert bound.lower <= loss.epsilon(1e-5).upper * (1 + 1e-9)


@pytest.mark.parametrize("diameter", [None, 0.6])
def test_no_logistic_regression_is_easier_to_attack_than_stated(diameter):
    """The law of the last iterate on a grid, with one logistic loss turned round, against the bound."""
    rate, noise, steps, ridge, n = 1.5, 0.4, 6, 0.4, 2
    loss = LastIterate(
        lipschitz=1,
        smoothness=Fraction(1, 4) + Fraction(4, 10),
        strong_convexity=ridge,
        learning_rate=rate,
        noise=noise,
        steps=steps,
        population=n,
        diameter=diameter,
    )
    grid = np.linspace(-6, 6, 1201)
    width, laws = grid[1] - grid[0], []
    for signs in ((1, 1), (1, -1)):
        slope = ridge * grid - sum(s / (1 + np.exp(s * grid)) for s in signs) / n
        centre = grid - rate * slope
        edges = np.append(grid - width / 2, np.inf)
        kernel = np.diff(norm.cdf((edges[None, :] - centre[:, None]) / (rate * noise)), axis=1)
        law = np.where(grid == grid[np.argmin(np.abs(grid))], 1.0, 0.0)
        for _ in range(steps):
            law = law @ kernel
            if diameter is not None:
                inside = np.abs(grid) <= diameter / 2 + width / 4
                low, high = law[grid < -diameter / 2].sum(), law[grid > diameter / 2].sum()
                law = np.where(inside, law, 0.0)
                law[np.flatnonzero(inside)[[0, -1]]] += (low, high)
        laws.append(law)
    for epsilon in (0.0, 0.5, 1.0, 2.0, 4.0):
        truth = np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0).sum()
        assert truth <= loss.delta(epsilon).upper + 1e-4
    assert np.maximum(laws[0] - laws[1], 0).sum() > 0.25 * loss.delta(0).upper


@given(
    c=st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)]),
    cycle=st.integers(1, 4),
    after=st.integers(0, 3),
    before=st.integers(0, 4),
    start=st.sampled_from([Fraction(0), Fraction(1, 5), Fraction(3)]),
    width=st.integers(1, 4),
)
def test_no_cheaper_way_leads_two_runs_together(c, cycle, after, before, start, width):
    """The greatest convex function below the points, by its definition: an independent solution."""
    after, width = min(after, cycle - 1), min(width, cycle)
    found = float(Course(c, cycle, after, width).squared(before, start, Fraction(1)))
    last = before * cycle + width
    steps = last + after
    moved = [1.0 if k % cycle < width and k < last else 0.0 for k in range(steps)]
    if c == 0:
        assert found == (0.0 if after else 1.0), "only the last step is left"
        return
    x = [0.0, *accumulate(float(c) ** (-2 * (k + 1)) for k in range(steps))]
    y = [0.0, *(float(start) + t for t in accumulate(s * float(c) ** -(k + 1) for k, s in enumerate(moved)))]
    at, total = 0, 0.0
    while at < steps:
        slopes = [((y[j] - y[at]) / (x[j] - x[at]), -j) for j in range(at + 1, steps + 1)]
        slope, nxt = min(slopes)
        total, at = total + slope**2 * (x[-nxt] - x[at]), -nxt
    assert found == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("units", [1, 2, 3, 5, 6, 20])
@pytest.mark.parametrize(
    ("curvature", "steps", "after"), [(0, 7, 0), (0.25, 12, 0), (0.5, 3, 0), (0.25, 8, 1)]
)
def test_no_placing_of_a_group_is_easier_to_attack_than_stated(units, curvature, steps, after):
    """Linear losses and every way to deal the units into three batches of two: all Gaussian."""
    batch, cycle, noise = 2, 3, 1.5
    one = LastIterate(
        lipschitz=1,
        smoothness=1,
        strong_convexity=curvature,
        learning_rate=1,
        noise=noise,
        steps=steps,
        population=batch * cycle,
        batch=batch,
        after=after,
    )
    loss, c, truth = one.group(units), 1 - curvature, 0.0
    deviation = noise * math.sqrt(sum(c ** (2 * k) for k in range(steps)))
    for dealt in product(range(batch + 1), repeat=cycle):
        if sum(dealt) <= units and not any(dealt[:after]):
            moved = sum(c**k * dealt[k % cycle] * 2 / batch for k in range(steps))
            truth = max(truth, moved / deviation)
    assert float(loss.attained().mu) <= truth * (1 + 1e-9)
    assert truth <= float(loss.mu) * (1 + 1e-9)
    assert loss.delta(0).lower <= 2 * norm.cdf(truth / 2) - 1 + 1e-9
    assert loss.mu <= one.mu * units * (1 + Fraction(1, 10**40))


def test_a_group_fills_the_batches_used_last_and_is_no_larger_than_all():
    common = {"lipschitz": 1, "smoothness": 1, "learning_rate": 1}
    one = LastIterate(**common, strong_convexity=0.5, noise=10, steps=50, population=50, batch=1)
    five, true = one.group(5), 0.2 * math.sqrt(3 * (1 - 0.5**5) / (1 + 0.5**5))
    assert float(five.mu) == pytest.approx(true, rel=1e-12)
    assert five.attained() == one.attained()
    assert five.composed == Gaussian(10, relation="replace") * 5
    assert one.group(2).group(3) == one.group(6) != one
    pair = LastIterate(**common, noise=1, steps=1, population=2)
    both = pair.group(10)
    assert both == pair.group(2) and both.tight
    assert 0.6826 < both.delta(0).lower <= both.delta(0).upper < 0.6827
    assert Loss.from_json(both.to_json()) == both
    # Units that come are not limited by those that are there.
    more = LastIterate(**common, noise=1, steps=1, population=2, relation="add_remove").group(10)
    assert more.mu == 5 and more.tight


def test_a_least_loss_that_is_stated_is_not_called_tight():
    assert not descent(1, 1, Fraction(1, 10**15)).tight and descent(1, 1, Fraction(1, 10**9)).tight


def test_a_geometric_sum_is_what_it_says():
    assert float(geometric(Fraction(1, 2), 2, 3)) == pytest.approx(1 + 1 / 4 + 1 / 16)
    assert float(geometric(Fraction(1), 5, 7)) == 7 and float(geometric(Fraction(0), 2, 0)) == 0


@settings(max_examples=25)
@given(
    steps=st.integers(1, 200),
    more=st.integers(0, 50),
    rate=st.sampled_from([Fraction(1, 10), Fraction(1), Fraction(19, 10)]),
    convexity=st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1)]),
    diameter=st.sampled_from([None, Fraction(1, 2), Fraction(20)]),
    batch=st.sampled_from([2, 3, 12]),
)
def test_more_steps_never_cost_less_and_nothing_costs_more_than_composition(
    steps, more, rate, convexity, diameter, batch
):
    def after(count: int) -> LastIterate:
        return LastIterate(
            lipschitz=1,
            smoothness=1,
            strong_convexity=convexity,
            diameter=diameter,
            learning_rate=rate,
            noise=2,
            steps=count,
            population=12,
            batch=batch,
        )

    loss = after(steps)
    tiny = Fraction(1, 10**40)
    assert loss.mu <= after(steps + more).mu * (1 + tiny)
    assert loss.mu**2 <= loss.uses * loss.composed.directions()[0][0][0].distance ** 2 * (1 + tiny)
    assert Loss.from_json(loss.to_json()) == loss
    assert loss.group(3).mu >= loss.mu and (diameter or loss.group(3).mu <= 3 * loss.mu * (1 + tiny))
    assert loss + Gaussian(3, relation="replace") == Gaussian(3, relation="replace") + loss


def test_a_set_is_used_only_where_it_helps():
    wide, narrow, none = (descent(1, 400, 0.1, diameter=d).mu for d in (10**6, 1, None))
    assert narrow < wide and abs(wide - none) < Fraction(1, 10**30)
    assert float(narrow) == pytest.approx(math.sqrt(4 * 0.1 * 1))


def test_checkpoints_are_refused_and_the_remedy_works():
    loss = descent(0.9, 40, 0.1, population=20, batch=2)
    with pytest.raises(NotSound, match="does not cover 3 checkpoints") as refused:
        descent(0.9, 40, 0.1, population=20, batch=2, checkpoints=3)
    code = refused.value.remedy.split(": ")[1].rstrip(".")
    assert eval(code, {"Gaussian": Gaussian}) == loss.composed
    assert "checkpoints=0" in repr(loss)


def test_what_no_theorem_covers_is_refused_by_name():
    with pytest.raises(NotSound, match=r"at most 2/smoothness = 2\."):
        descent(1, 5, 1, learning_rate=2.5)
    with pytest.raises(InvalidArgument, match="strong_convexity must be at most"):
        descent(1, 5, 1, strong_convexity=2)
    with pytest.raises(NotSound, match="zero_out or replace"):
        descent(1, 5, 1, population=10, batch=5, relation="add_remove")
    with pytest.raises(InvalidArgument, match="batch must divide"):
        descent(1, 5, 1, population=10, batch=4)
    for batch in (0, False):
        with pytest.raises(InvalidArgument, match=r"^batch must be"):
            descent(1, 5, 1, population=10, batch=batch)
    with pytest.raises(InvalidArgument, match=r"^units must be"):
        descent(1, 5, 1, units=0)
    tiny = {"learning_rate": Fraction(1, 10**300), "strong_convexity": Fraction(1, 10**200)}
    with pytest.raises(InvalidArgument, match=r"^learning_rate must leave"):
        descent(1, 5, 1, **tiny)
    with pytest.raises(InvalidArgument, match="after must be less"):
        descent(1, 5, 1, population=10, batch=5, after=2)
    for name in ("lipschitz", "smoothness", "learning_rate", "noise", "steps", "population", "diameter"):
        with pytest.raises(InvalidArgument, match=f"^{name} must be"):
            descent(1, 5, 1, **{name: 0})
