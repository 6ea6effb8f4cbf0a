"""Streams of prefix sums released through a factorization A = BC.

A is the lower-triangular matrix of ones of size n, x the contributions at each step. What is released is
B(Cx + z) = Ax + Bz with z ~ N(0, σ²I): post-processing of the Gaussian release Cx + z.

Theorem (Denisov et al. 2022). Let sens(C) be the largest ‖C(x − x′)‖ over neighbours that differ in the
contributions of one unit, each of norm at most 1. The n outputs together are dominated by N(μ, 1) against
N(0, 1) with μ = sens(C)/σ, and some neighbours attain it; also where contributions depend on earlier outputs,
since the rows of C can be read in time order and a row uses no later contribution. (`BinaryTree` with the
full estimator is the exception: its B looks ahead, so its outputs come at the end.)

Vectors. With u_i the contribution at step i of a pattern π and G = CᵀC,
    ‖Σ c_i ⊗ u_i‖² = Σ G_ij⟨u_i, u_j⟩ ≤ Σ_{i,j ∈ π} |G_ij|,
attained by equal contributions where G ≥ 0. So for C ≥ 0 the sensitivity is the largest ‖Σ_{i∈π} c_i‖,
whatever the dimension; sign patterns need not be searched.

Errors. Output i is off by a Gaussian of deviation σ‖B_i‖. At the σ for which the stream costs as much as one
Gaussian release of noise multiplier m, that is m·sens(C)·‖B_i‖: `errors` gives the factors of m.

Amplification (Choquette-Choo et al. 2023, Theorem 4). Let C be lower-triangular with b bands, and let units
be split into b groups without looking at them; step i takes each unit of group i mod b independently with
probability q. The columns of one group's steps have disjoint supports of b rows each. Given all that came
before and whatever others contribute, those rows show c_i ⊗ u with probability q and nothing of the unit
otherwise. So the stream is dominated by Gaussian releases on Poisson samples of rate q, one for each of the
at most ⌈n/b⌉ steps of a group, of noise multipliers σ/‖c_i‖. That is for one unit; several may be in
different groups, whose columns overlap, so for them the path bound on the whole is taken.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.bound import Bound
from dalenius.losses.composition import compose
from dalenius.losses.dominated import Dominated
from dalenius.losses.loss import Loss
from dalenius.losses.streams.correlated import gaussian
from dalenius.losses.streams.participation import Participation, once
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation
from dalenius.profiles.pair import Floats

MOST_LENGTH = 10**7
"""Steps of a stream, at most."""
MOST_DENSE = 4096
"""Steps up to which matrices are written out."""


@dataclass(frozen=True)
class Errors:
    """Deviations of the outputs per unit of the noise multiplier of one Gaussian release of the same cost."""

    largest: float
    root_mean_square: float


class Factorization(ABC):
    """A factorization of the prefix sums of `length` steps; a frozen value."""

    length: int

    @abstractmethod
    def sensitivity(self, participation: Participation | None = None) -> Bound:
        """Enclose the sensitivity of C for contributions of norm 1; `once` unless said otherwise."""

    @abstractmethod
    def row_norms(self) -> Floats:
        """‖B_i‖: the deviation of each output per unit of σ, to about ten digits."""

    @abstractmethod
    def encoder(self) -> Floats:
        """C written out, for short streams."""

    @abstractmethod
    def decoder(self) -> Floats:
        """B written out, for short streams."""

    def blocks(self) -> tuple[tuple[int, Bound], ...] | None:
        """Norms of the columns of one group and how often each comes; None where columns may overlap."""
        return None

    def errors(self, participation: Participation | None = None) -> Errors:
        """The largest and the root-mean-square error factor; computed, not certified."""
        norms, most = self.row_norms(), self.sensitivity(participation).upper
        return Errors(most * float(norms.max()), most * math.sqrt(float(np.mean(norms**2))))

    def loss(
        self,
        noise_multiplier: Number,
        participation: Participation | None = None,
        *,
        relation: Relation = "add_remove",
    ) -> Loss:
        """The loss of all outputs together; σ is `noise_multiplier` times the bound on one contribution."""
        return gaussian(noise_multiplier, self.sensitivity(participation), relation)

    def amplified(
        self, noise_multiplier: Number, sampling_rate: Number, *, relation: Relation = "add_remove"
    ) -> Loss:
        """The loss where step i samples each unit of group i mod bands with `sampling_rate`."""
        blocks = self.blocks()
        if blocks is None:
            raise NotSound(
                "Amplification by sampling is known for lower-triangular encoders with bands only.",
                remedy="Use BandedSquareRoot, BandedToeplitz or Banded.",
            )
        parts = [(gaussian(noise_multiplier, norm, relation), times) for times, norm in blocks]
        # Units of different groups overlap: several units are not enlarged step by step.
        return Dominated(compose(part.poisson(sampling_rate) * times for part, times in parts))


def read_length(value: object) -> int:
    """A number of steps."""
    return numbers.count(value, "length", most=MOST_LENGTH)


def check_dense(length: int) -> None:
    """Matrices of long streams are not written out."""
    if length > MOST_DENSE:
        raise InvalidArgument(
            f"A matrix is written out for at most {MOST_DENSE} steps.", remedy="Choose a shorter length."
        )


def default(participation: Participation | None) -> Participation:
    """One contribution, unless said otherwise."""
    if participation is not None and not isinstance(participation, Participation):
        raise InvalidArgument(
            "participation must say when one unit may contribute.",
            remedy="Pass once(), min_separation(...) or cyclic(...).",
        )
    return participation or once()
