"""Fixed schedules with fresh noise in every step: a record pays for the steps it takes part in.

Theorem (composition; parallel for the others). If which steps a record may take part in is fixed before
the run, or follows from what was released so far and not from the data, and it takes part in k steps at
most, then a run of steps that cost `loss` each costs it loss * k: a step without it has the same law on
both neighbours. Nothing is amplified, and nothing but the schedule needs to be trusted.

    cyclic         one step in each pass of `separation` steps, in a fixed order: k passes, k steps
    b-separated    any two of its steps at least `separation` apart: k = ⌈steps / separation⌉ at most

The order must be the record's own, say by a hash of its key. A position in the list is not: removing one
record moves all that follow into other batches. Under replace the position is as good as a key.
"""

from __future__ import annotations

from dalenius.losses.fields import a_loss
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers


def participations(steps: int, separation: int) -> int:
    """In how many of `steps` a record takes part at most, its steps being `separation` or more apart."""
    total, apart = numbers.count(steps, "steps"), numbers.count(separation, "separation")
    return -(-total // apart)


def separated(loss: Loss, steps: int, separation: int) -> Loss:
    """The loss of a run of `steps`, each of which costs `loss` to a record that takes part in it."""
    return a_loss(loss, "loss") * participations(steps, separation)
