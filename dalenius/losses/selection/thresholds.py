"""Choices by noise on each candidate, as losses, for whoever adds continuous noise elsewhere.

The mechanisms of this library add discrete noise and price themselves; these functions state the same
theorems for Laplace noise on numbers, where sensitivity is how far a unit moves any one of them.

    noisy_max       the candidate of the greatest utility after Laplace noise (Dwork and Roth 2014, Section
                    3.3) costs no more than one number with that noise that moves by twice the sensitivity,
                    or by once where utilities are monotone: all rise or all fall as a unit comes. The proof
                    is that of docs/mechanisms/noisy_max.md, in steps that vanish. Its ε is approached as
                    candidates tie.
    sparse_vector   which of any number of queries reach a threshold, up to `count` of them (Dwork and Roth
                    2014, Section 3.6; Lyu, Su and Li 2017): s/b₁ + 2·count·s/b₂ for noise of b₁ on the
                    threshold and of b₂ on each query, s/b₁ + count·s/b₂ where monotone. Values of yeses are
                    not included.
    thresholdout    means over a holdout of n records of queries with values in [0, 1], up to `overfits`
                    answers that differ from the training set's (Dwork, Feldman, Hardt, Pitassi, Reingold
                    and Roth 2015), with noise of scale σ on an answer, 2σ on the threshold, 4σ on a
                    comparison: per overfit 1/(σn) for the test and Laplace noise of σn for the answer.
                    The threshold's noise is drawn anew after each overfit, and the session stops at the
                    last one. For one holdout record that is replaced.
"""

from __future__ import annotations

from fractions import Fraction

from dalenius.errors import InvalidArgument, NotSound
from dalenius.losses.laplace import Laplace
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Relation, read_relation


def noisy_max(
    scale: Number, *, sensitivity: Number = 1, monotone: bool = False, relation: Relation = "add_remove"
) -> Loss:
    """The candidate with the greatest utility after Laplace noise of `scale` on each."""
    span = numbers.positive(sensitivity, "sensitivity") * _sides(monotone, relation)
    return Laplace(numbers.positive(scale, "scale") / span, relation=relation)


def sparse_vector(
    scale: Number,
    *,
    threshold_scale: Number,
    sensitivity: Number = 1,
    count: int = 1,
    monotone: bool = False,
    relation: Relation = "add_remove",
) -> Loss:
    """Up to `count` queries above a threshold, by Laplace noise of `scale` on each and on the threshold."""
    moved = numbers.positive(sensitivity, "sensitivity")
    yes = _sides(monotone, relation) * numbers.count(count, "count") / numbers.positive(scale, "scale")
    once = 1 / numbers.positive(threshold_scale, "threshold_scale")
    return Pure(moved * (once + yes), relation=relation)


def thresholdout(scale: Number, *, records: int, overfits: int = 1) -> Loss:
    """A session that stops at its last of `overfits` overfits on a holdout of `records`, values in [0, 1].

    The noise on the threshold is drawn anew after each overfit.
    """
    ratio = numbers.positive(scale, "scale") * numbers.count(records, "records")
    one_round = Pure(1 / ratio, relation="replace") + Laplace(ratio, relation="replace")
    return one_round * numbers.count(overfits, "overfits")


def _sides(monotone: bool, relation: Relation) -> Fraction:
    """How many sensitivities apart two candidates may move."""
    if not isinstance(monotone, bool):
        raise InvalidArgument("monotone must be True or False.", remedy="Pass monotone=True or leave it out.")
    if monotone and read_relation(relation) == "replace":
        raise NotSound(
            "Where records are replaced, some utilities may rise as others fall: they are not monotone.",
            remedy="Use monotone=False, or state the sensitivity for add_remove.",
        )
    return Fraction(1 if monotone else 2)
