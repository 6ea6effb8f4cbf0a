"""`Loss`: a description of what was done to the data, sufficient to evaluate its privacy cost.

    >>> from dalenius.losses import Gaussian
    >>> loss = Gaussian(noise_multiplier=4).poisson(0.01) * 10_000
    >>> print(loss.epsilon(delta=1e-5))
    0.9468668008
    >>> Loss.from_json(loss.to_json()) == loss
    True

One type serves every notion of privacy. A kind is a frozen dataclass that names its worst-case
pairs; the algebra (`+`, `*`, `poisson`, `group`) builds new descriptions; the questions
(`epsilon`, `delta`, `tradeoff`, …) are answered by the best route for the whole description.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from dalenius.errors import InvalidArgument, RelationMismatch
from dalenius.losses.bound import Bound
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, read_relation
from dalenius.profiles.pair import Worst

if TYPE_CHECKING:
    from dalenius.losses.curve import Curve
    from dalenius.losses.generalization.gap import Gap
    from dalenius.losses.meaning import Meaning


class Loss(ABC):
    """What was done to the data, as a frozen value. See the module for the algebra and questions."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    kinds: ClassVar[dict[tuple[str, int], type[Loss]]] = {}
    relation: Relation

    def __init_subclass__(cls, *, kind: str | None = None, version: int = 1) -> None:
        super().__init_subclass__()
        if kind is not None:
            cls.kind, cls.version = kind, version
            Loss.kinds[kind, version] = cls

    # What a kind says of itself.

    @abstractmethod
    def directions(self) -> tuple[Worst, ...] | None:
        """The worst case in each direction of the relation; None where only moments are known."""

    def either_way(self) -> Worst | None:
        """Return one worst case for both directions at once; None where only moments are known.

        Under replace two neighbours have no order, so that each of several releases may have the pair (P, Q)
        or its reverse, whatever the others have.
        """
        from dalenius.profiles.worse import merged

        directions = self.directions()
        return None if directions is None else merged(directions)

    def moment(self, order: float) -> float:
        """An upper bound on log E_P[e^{order·L}] in the worse direction, for order > 0."""
        directions = self.directions()
        assert directions is not None, "a kind without pairs defines its own moments"
        return max(sum(n * pair.log_moment(order)[1] for pair, n in worst) for worst in directions)

    @property
    def tight(self) -> bool:
        """Whether some mechanism that meets this description attains its evaluation."""
        return True

    # The algebra.

    def __add__(self, other: Loss) -> Loss:
        from dalenius.losses.composition import compose

        return compose((self, other)) if isinstance(other, Loss) else NotImplemented

    def __mul__(self, times: int) -> Loss:
        from dalenius.losses.composition import compose

        return compose((self,), times=numbers.count(times, "count"))

    __rmul__ = __mul__

    def poisson(self, sampling_rate: Number) -> Loss:
        """The same on a Poisson sample: each unit takes part independently with `sampling_rate`."""
        from dalenius.losses.poisson import subsample

        return subsample(self, numbers.rate(sampling_rate, "sampling_rate"))

    def truncated_poisson(self, sampling_rate: Number, *, population: int, cap: int) -> Loss:
        """The same on a Poisson sample of at most `population` units, cut to a random `cap` where larger."""
        from dalenius.losses.sampling.truncated_poisson import truncate

        return truncate(self, sampling_rate, population=population, cap=cap)

    def without_replacement(self, batch: int, population: int) -> Loss:
        """The same on a random `batch` of `population` units, under replace."""
        from dalenius.losses.sampling.without_replacement import draw

        return draw(self, batch, population)

    def random_allocation(self, steps: int) -> Loss:
        """So many steps, in exactly one of which, chosen at random, each unit takes part."""
        from dalenius.losses.allocation import allocate

        return allocate(self, numbers.count(steps, "steps"))

    def sampled(self, scheme: str, **parameters: Any) -> Loss:
        """The same on a sample drawn by the scheme of that name: see `losses.sampling.schemes`."""
        from dalenius.losses.sampling.schemes import sampled

        return sampled(self, scheme, **parameters)

    def shuffled(self, reporters: int) -> Loss:
        """The unordered collection of `reporters` honest local reports, each of this loss and sent once."""
        from dalenius.losses.shuffling import shuffle

        return shuffle(self, reporters)

    def selected(self, *, stop: Number | None = None, shape: Number = 1, mean: Number | None = None) -> Loss:
        """The best of a random number of runs: `stop` with a `shape`, or a Poisson `mean`, says how many."""
        from dalenius.losses.selection.random_runs import selected

        return selected(self, stop=stop, shape=shape, mean=mean)

    def group(self, size: int) -> Loss:
        """The loss for `size` units that are present or absent together."""
        from dalenius.losses.group import enlarge

        return enlarge(self, numbers.count(size, "size"))

    def under(self, relation: Relation) -> Loss:
        """The same for neighbours under another relation, where a theorem carries it over."""
        from dalenius.losses.carried import carry

        return carry(self, read_relation(relation))

    # The questions.

    def epsilon(self, delta: Number, *, proof: bool = False, population: int | None = None) -> Bound:
        """The least ε with (ε, delta)-differential privacy. `proof` repeats it in ball arithmetic.

        A declared `population` draws a warning when delta is not far below 1/population.
        """
        from dalenius.losses.evaluate import least_epsilon

        return least_epsilon(self, numbers.delta(delta), proof=proof, population=population)

    def delta(self, epsilon: Number, *, proof: bool = False) -> Bound:
        """The least δ with (epsilon, δ)-differential privacy."""
        from dalenius.losses.evaluate import least_delta

        return least_delta(self, numbers.non_negative(epsilon, "epsilon"), proof=proof)

    def tradeoff(self, fpr: Number) -> Bound:
        """The least false-negative rate of any test between neighbours at false-positive rate `fpr`."""
        from dalenius.losses.tradeoff import least_error

        return least_error(self, numbers.probability(fpr, "fpr"))

    def advantage(self) -> Bound:
        """The most a membership attack can gain over guessing: TPR − FPR, which is δ(0)."""
        return self.delta(0)

    def renyi(self, alpha: Number) -> Bound:
        """The Rényi divergence of order `alpha` in the worse direction."""
        from dalenius.losses import renyi

        return renyi.divergence(self, numbers.exact(alpha, "alpha"))

    def zcdp(self) -> Bound:
        """The least ρ with ρ-zero-concentrated differential privacy: sup over α > 1 of D_α / α."""
        from dalenius.losses import renyi

        return renyi.zcdp(self)

    def curve(self) -> Curve:
        """The whole profile δ(ε), bounded from above at every ε."""
        from dalenius.losses.curve import upper_curve

        return upper_curve(self)

    def generalization(self, *, size: int, confidence: Number = 0.95, queries: int = 1) -> Gap:
        """How far a sample may be from its population, for queries chosen by what was released."""
        from dalenius.losses.generalization import generalization

        return generalization(self, size=size, confidence=confidence, queries=queries)

    def meaning(self, prior: Number = 0.5, *, delta: Number = 1e-6) -> Meaning:
        """What the loss means for one person, in words and numbers."""
        from dalenius.losses.meaning import explain

        return explain(self, prior=numbers.probability(prior, "prior"), delta=numbers.delta(delta))

    # The disk format.

    def to_json(self) -> str:
        """The description as JSON: the ledger's disk format, never changed in meaning."""
        from dalenius.losses.disk import to_dict

        return json.dumps(to_dict(self), separators=(",", ":"), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Loss:
        """Read a description back. An unknown kind or version is refused."""
        from dalenius.losses.disk import from_text

        return from_text(text)


def same_relation(losses: tuple[Loss, ...]) -> Relation:
    """The relation shared by all; refused where they differ, or where there is no loss at all."""
    relations = sorted({loss.relation for loss in losses})
    if not relations:
        raise InvalidArgument("A composition needs at least one loss.", remedy="Pass a loss.")
    if len(relations) > 1:
        raise RelationMismatch(
            f"Losses for the relations {' and '.join(relations)} do not add up.",
            remedy="State every loss for one relation.",
        )
    return relations[0]
