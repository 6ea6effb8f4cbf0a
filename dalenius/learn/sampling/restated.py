"""The loss of a step, stated for the relation of the sampling that the step is part of.

A guarantee for add_remove does not carry over to zero_out in general: a mechanism may tell a null record
from an absent one (`privacy.unit`). A training step does not, as it adds noise to a sum to which a null unit
brings nothing: between the data and the data with one unit null its output has the laws that it has
between the data and the data without that unit. So it costs the same, and is restated where the kind of loss
means the same worst case under both names. To replace, losses are carried by their own theorems.
"""

from __future__ import annotations

from dalenius.errors import NotSound
from dalenius.losses.composition import Composition, compose
from dalenius.losses.fields import a_loss, arguments
from dalenius.losses.loss import Loss
from dalenius.privacy.unit import Relation


def restated(step: Loss, relation: Relation) -> Loss:
    """What a step of noise on a sum costs under this relation."""
    if a_loss(step, "step").relation == "add_remove" and relation == "zero_out":
        return _null_is_absent(step)
    return step.under(relation)


def _null_is_absent(step: Loss) -> Loss:
    if isinstance(step, Composition):
        return compose(_null_is_absent(term) * count for term, count in step.terms)
    given = dict(arguments(step))
    found = type(step)(**{**given, "relation": "zero_out"}) if "relation" in given else step
    if found.relation != "zero_out" or found.directions() != step.directions():
        raise NotSound(
            "The loss of this step is not known to be the same when a unit is null and when it is absent.",
            remedy='State the step for relation="zero_out", or declare public_size.',
        )
    return found
