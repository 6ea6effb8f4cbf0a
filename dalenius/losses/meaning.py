"""What a loss means for one person, in numbers and in words that a lawyer can read.

Odds (Kasiviswanathan and Smith 2014). For pure ε the odds of any
claim about one person, after the result, are within a factor e^ε of the odds before it, so a belief
π becomes at most πe^ε/(1 − π + πe^ε) and at least π/(π + (1 − π)e^ε).
The role of δ (Kairouz, Oh and Viswanath 2015, proof of Theorem 3.3). Between two neighbours, an
(ε, δ)-private mechanism is a function of one that reveals everything with probability δ and otherwise
keeps to e^ε.
Attacks (Wasserman and Zhou 2010). No test gains more than δ(0) in true over false positives, and at a
false-positive rate f none finds more than 1 − T(f) of the members, T the trade-off curve.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius import display
from dalenius.arithmetic import workprec
from dalenius.figures import Figure, Series
from dalenius.losses import words
from dalenius.losses.bound import Bound
from dalenius.losses.deployments import deployments, nearest, share_below
from dalenius.losses.guarantee import bound_fields
from dalenius.privacy import numbers
from dalenius.privacy.unit import Relation
from dalenius.profiles.balls import BITS, ball, lower, upper
from dalenius.profiles.rounding import down, up

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dalenius.losses.loss import Loss

FALSE_POSITIVE_RATE = Fraction(1, 1000)
"""Where the power of an attack is stated."""
FAR_BELOW = 100
"""δ should be this many times smaller than one over the number of units, or more."""


class DeltaWarning(UserWarning):
    """A δ is not far below one over the size of the population."""


@dataclass(frozen=True, repr=False)
class Meaning:
    """What a loss means for one person. The numbers are fields, `str` gives the words."""

    relation: Relation
    prior: Fraction
    delta: Fraction
    epsilon: Bound
    odds_factor: float
    posterior_low: float
    posterior_high: float
    advantage: Bound
    true_positive_rate: Bound
    deployments_share: float

    def sentences(self) -> tuple[str, ...]:
        """The meaning in plain sentences, each rounded to the side that promises less."""
        return (
            words.belief(self.relation, self.prior, (self.posterior_low, self.posterior_high), self.delta),
            words.exception(self.delta, self.odds_factor, self.epsilon.upper),
            words.guessing(self.relation, self.advantage.upper),
            words.attack(self.true_positive_rate.upper, FALSE_POSITIVE_RATE),
            words.company(self.deployments_share, len(deployments()), nearest(self.epsilon.upper)),
            words.LIMITS,
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        return f"<Meaning of {self._title}, from a belief of {float(self.prior):g}>"

    def __rich__(self) -> RenderableType:
        from rich.panel import Panel

        return Panel("\n\n".join(self.sentences()), title=self._title, padding=(1, 2), width=92)

    def _repr_html_(self) -> str:
        return display.sentences(f"What {self._title} means", self.sentences())

    @property
    def _title(self) -> str:
        return f"ε = {words.at_most(self.epsilon.upper)} at δ = {float(self.delta):.3g}"

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON; the keys are stable."""
        close = nearest(self.epsilon.upper)
        return {
            "relation": self.relation,
            "prior": float(self.prior),
            "delta": float(self.delta),
            "epsilon": bound_fields(self.epsilon),
            "odds_factor": self.odds_factor,
            "posterior": {"low": self.posterior_low, "high": self.posterior_high},
            "advantage": bound_fields(self.advantage),
            "true_positive_rate": {
                **bound_fields(self.true_positive_rate),
                "false_positive_rate": float(FALSE_POSITIVE_RATE),
            },
            "deployments": {
                "listed": len(deployments()),
                "share_at_or_below": self.deployments_share,
                "nearest": f"{close.name} ({close.publisher}, {close.year})",
            },
            "sentences": list(self.sentences()),
        }

    def figure(self) -> Figure:
        """Belief after the result against belief before it: both bounds, and no change."""
        priors = [Fraction(i, 100) for i in range(101)]
        bands = [posterior(prior, self.epsilon.upper) for prior in priors]
        x = tuple(float(prior) for prior in priors)
        return Figure(
            title="How far one result can move a belief about one person",
            x_label="belief before the result",
            y_label="belief after the result",
            series=(
                Series("at most", x, tuple(high for _, high in bands)),
                Series("at least", x, tuple(low for low, _ in bands)),
                Series("no change", x, x, style="dotted"),
            ),
            notes=(words.exception(self.delta, self.odds_factor, self.epsilon.upper),),
        )


def explain(loss: Loss, *, prior: Fraction, delta: Fraction) -> Meaning:
    """What `loss` means to someone who holds a claim about one person likely by `prior`."""
    epsilon = loss.epsilon(delta)
    low, high = posterior(prior, epsilon.upper)
    missed = loss.tradeoff(FALSE_POSITIVE_RATE)
    found = Bound(max(0.0, down(1 - missed.upper)), min(1.0, up(1 - missed.lower)), missed.tight)
    with workprec(BITS):
        factor = upper(ball(epsilon.upper).exp())
    return Meaning(
        relation=loss.relation,
        prior=prior,
        delta=delta,
        epsilon=epsilon,
        odds_factor=factor,
        posterior_low=low,
        posterior_high=high,
        advantage=loss.advantage(),
        true_positive_rate=found,
        deployments_share=share_below(epsilon.upper),
    )


def posterior(prior: Fraction, epsilon: float) -> tuple[float, float]:
    """Bounds on a belief of `prior` after an ε-private result, rounded outward."""
    if prior in (0, 1):
        return (float(prior), float(prior))
    with workprec(BITS):
        shrink = (-ball(epsilon)).exp()
        here, rest = ball(prior), ball(1 - prior)
        low = lower(here * shrink / (here * shrink + rest))
        high = upper(here / (here + rest * shrink))
    return (max(0.0, low), min(1.0, high))


def check_delta(delta: Fraction, population: int) -> None:
    """Warn when `delta` is not far below 1/population.

    A mechanism that publishes each of n records with probability δ is (0, δ)-private and exposes nδ
    people on average: only nδ far below one excludes it.
    """
    people = numbers.count(population, "population")
    if delta * people * FAR_BELOW > 1:
        warnings.warn(
            f"delta = {float(delta):.3g} is not far below one over the population of {people:,}: a "
            f"mechanism that publishes about {float(delta * people):.3g} complete records would still "
            f"meet it. Choose delta 1e-{len(str(people * FAR_BELOW - 1))} or less.",
            DeltaWarning,
            stacklevel=4,
        )
