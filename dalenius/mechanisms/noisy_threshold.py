"""Keys of a group-by with noisy counts: those whose noisy count reaches a threshold.

Each key held by n ≥ 1 units gets n plus whole-number noise and is shown, with that number, if the sum is at
least `threshold`. Keys that no unit holds are never shown.

What it costs is in `new_keys`: one unit may raise the counts of keys that others hold too, and bring keys
that nobody else holds, `keys` of them in all. `loss` bounds every such case at once, as the noise on `keys`
entries and as many new keys (Korolova, Kenthapadi, Mishra and Ntoulas 2009, for Laplace noise, where it is
exact at ε = keys/scale); it composes as what it is, and for k units it is bounded along a path. With
`epsilon` the loss is stated at that ε alone, at the worst number of new keys: less for a single release under
Gaussian noise, but it composes as (ε, δ).
The relation is add_remove; that no unit holds more than `keys` is the caller's to see to, before counting.

The error bar is that of the noise. Before the threshold it holds with its confidence; among the keys that are
shown small counts come out too large, so what it promises is that a key is shown with a wrong bar no more
often than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.losses import gaussian as gaussian_losses
from dalenius.losses.dominated import Dominated
from dalenius.losses.fields import Parameter
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Approximate
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.additive import Additive
from dalenius.mechanisms.gaussian import Gaussian
from dalenius.mechanisms.keys import HAIR, Counts, in_order
from dalenius.mechanisms.laplace import Laplace
from dalenius.mechanisms.laplace_ratio import check_epsilon
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.mechanisms.new_keys import Noise, brought, chance, delta, held
from dalenius.privacy import numbers
from dalenius.privacy.numbers import MOST_STEPS, Number
from dalenius.privacy.quantized import MOST, Grid
from dalenius.privacy.sensitivity import Sensitivity, sqrt_up
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE, Release

MOST_CASES = 64
"""Up to so many keys a unit the maximum over j is evaluated."""


@dataclass(frozen=True)
class NoisyThreshold(Mechanism, kind="noisy_threshold"):
    """Counts under noise of `scale`, shown from `threshold` on; a unit holds at most `keys` keys."""

    _: KW_ONLY
    scale: Parameter[Fraction] = Parameter(numbers.positive)
    threshold: Parameter[int] = Parameter(numbers.count)
    keys: Parameter[int] = Parameter(numbers.count, 1)
    noise: Noise = "laplace"
    epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        if self.noise not in ("laplace", "gaussian"):
            raise InvalidArgument("noise must be laplace or gaussian.", remedy="Pass one of these names.")
        _ = self.additive
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", numbers.positive(self.epsilon, "epsilon"))
            if self.keys > MOST_CASES:
                raise InvalidArgument(
                    f"A loss at one epsilon is evaluated for up to {MOST_CASES} keys a unit.",
                    remedy="Leave epsilon out, or calibrate with alone=False.",
                )

    @cached_property
    def additive(self) -> Additive:
        """The noise."""
        law: Callable[..., Additive] = Laplace if self.noise == "laplace" else Gaussian
        bound = Sensitivity(l0=self.keys, linf=1)
        return law(scale=self.scale, sensitivity=bound, grid=Grid(0), exact=True)

    @cached_property
    def loss(self) -> Loss:
        """The noise on all keys and all keys new; or the worst number of new keys at `epsilon`."""
        law = self.scale, self.threshold, self.noise
        if self.epsilon is None:
            return Dominated(held(self.scale, self.noise, self.keys) + brought(*law, self.keys))
        worst = max(delta(*law, self.keys - new, new, self.epsilon) for new in range(self.keys + 1))
        return Approximate(self.epsilon, delta=worst) if worst < 1 else DiscretePair([1, 0], [0, 1])

    def release(
        self, value: Counts, *, name: str = "key", unit: Unit | None = None, confidence: Number = CONFIDENCE
    ) -> Release:
        """The keys that are shown, in their own order, and their noisy counts."""
        reach = self.additive.reach(1 - numbers.confidence(confidence))
        names, counts = in_order(value)
        noisy = counts + np.clip(self.additive.draw(counts.size), -MOST, MOST - 1)
        shown = np.flatnonzero((counts > 0) & (noisy >= self.threshold))
        columns = {name: [names[i] for i in shown]}
        for column, away in (("n", 0), ("n_low", -reach), ("n_high", reach)):
            columns[column] = (noisy[shown] + away).tolist()
        return replace(
            self._released(columns, ("n",), unit), confidence=numbers.exact(confidence, "confidence")
        )

    def sample(self, value: Counts, size: int) -> NDArray[Any]:
        """Noisy counts, `threshold` − 1 for a key not shown: a number for one key, else a row."""
        counts = in_order(value)[1]
        noisy = counts + self.additive.draw(size * counts.size).reshape(size, counts.size)
        found = np.where((counts > 0) & (noisy >= self.threshold), noisy, self.threshold - 1)
        return found[:, 0] if counts.size == 1 else found

    def worst_case(self) -> tuple[Counts, Counts]:
        """Keys so often held that the threshold hides nothing."""
        many = self.threshold + self.additive.reach(Fraction(1, 10**18))
        names = [f"key {i}" for i in range(self.keys)]
        return dict.fromkeys(names, many), dict.fromkeys(names, many + 1)

    def probabilities(self, value: Counts) -> Law | None:
        """The law for a single key."""
        counts = in_order(value)[1].tolist()
        law = self.additive.probabilities(counts[0]) if len(counts) == 1 else None
        if law is None:
            return None
        hidden = self.threshold - 1
        masses: dict[int, float] = {}
        for outcome, mass in zip(law.outcomes, law.masses.tolist(), strict=True):
            key = int(outcome) if counts[0] > 0 and outcome > hidden else hidden
            masses[key] = masses.get(key, 0.0) + mass
        return Law(tuple(masses), np.array(list(masses.values())), law.rest)

    def error(self, alpha: Number = 1 - CONFIDENCE) -> float:
        """That of the noise: a key is shown with a count farther off with probability at most alpha."""
        return self.additive.error(alpha)

    @staticmethod
    def calibrate(
        *,
        epsilon: Number,
        delta: Number,
        keys: int = 1,
        noise: Noise = "laplace",
        alone: bool = False,
    ) -> NoisyThreshold:
        """The least threshold with which one release is (epsilon, delta)-differentially private.

        Laplace noise takes all of ε, Gaussian noise half of δ; all, where the loss is at this ε `alone`.
        """
        limit, failure = numbers.epsilon(epsilon), numbers.rate(numbers.delta(delta), "delta")
        count = numbers.count(keys, "keys")
        check_epsilon(limit, count)
        scale = count / limit
        if noise == "gaussian":
            part = failure * HAIR**2 if alone else failure / 2
            found = gaussian_losses.Gaussian.calibrate(epsilon=limit, delta=part)
            scale = found.noise_multiplier * sqrt_up(Fraction(count))
        stated = limit if alone else None
        draft = NoisyThreshold(scale=scale, threshold=1, keys=count, noise=noise, epsilon=stated)
        return _raised(draft, limit, failure * HAIR)


def _raised(draft: NoisyThreshold, epsilon: Fraction, delta: Fraction) -> NoisyThreshold:
    """The same with the least threshold that keeps the promise."""

    def kept(threshold: int) -> bool:
        if draft.noise == "laplace":
            return chance(draft.scale, threshold, draft.noise, draft.keys) <= delta
        return replace(draft, threshold=threshold).loss.delta(epsilon).upper <= delta

    low, high = 0, 1
    while not kept(high):
        low, high = high, 2 * high
        if high > MOST_STEPS:
            raise InvalidArgument(
                "The threshold for this epsilon and delta is beyond 1e12.",
                remedy="Choose a larger epsilon or delta, or fewer keys.",
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return replace(draft, threshold=high)
