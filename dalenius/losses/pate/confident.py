"""Confident voting: an answer is given only where teachers agree, which is itself tested with noise.

Each query first asks whether max_j n_j + N(0, σ₁²) reaches a public threshold; if so, GNMax with σ₂ answers.

Theorem (Papernot et al. 2018, for Rényi divergences). A vote that moves changes the largest count by at most
1, so a test is 1/σ₁-Gaussian differentially private, and an answer √2/σ₂. Which queries are answered follows
from the outcomes, and the asking stops once `answers` were given or `queries` asked: by the filter for
Gaussian differential privacy (Smith and Thakurta 2022; docs/proofs/filter.md) all of it is μ-Gaussian
differentially private with μ² = queries/σ₁² + 2·answers/σ₂². Which queries come next may depend on the
answers. The same holds for the interactive variant, whose test looks at max_j (n_j − public baseline).

The threshold, σ₁, σ₂ and both limits are public, and so is the number of answers once they are given.
"""

from __future__ import annotations

from dalenius.errors import InvalidArgument
from dalenius.losses.fields import MOST_LOSS, ratio
from dalenius.losses.gaussian import GaussianDP
from dalenius.losses.loss import Loss
from dalenius.losses.pate.gnmax import GNMax
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation


def confident_votes(
    *,
    queries: int,
    answers: int,
    test_scale: Number,
    scale: Number,
    relation: Relation = "add_remove",
) -> Loss:
    """The loss of up to `queries` tests of consensus and up to `answers` winners of the votes."""
    asked = numbers.count(queries, "queries")
    given = numbers.count(answers, "answers", most=asked)
    noise = ratio(test_scale, "test_scale")
    if noise > MOST_LOSS:
        raise InvalidArgument("test_scale must be at most 1e6.", remedy="Choose test_scale such as 150.")
    test = GaussianDP(1 / noise, relation=relation)
    return test * asked + GNMax(ratio(scale, "scale"), relation=relation) * given
