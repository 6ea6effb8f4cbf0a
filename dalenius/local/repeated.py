"""What reporting again and again costs a person, in numbers and in plain words.

    fresh noise for every report   k reports compose: k·ε for pure losses, without end. They hide values,
                                   changes and when they came, as each report hides by itself.
    memoised, one value            all reports are made from one response: its loss at most, however many.
    memoised, c changes            at times that are public: the value of each stretch has a response of its
                                   own, so c + 1 of them compose. Of returning to an old value less is told.
    memoised, changes hidden       not private: where a response is sent as it is, the reports before and
                                   after a change differ, which never happens without one. It is refused.

With RAPPOR's second noise k memoised reports cost ε_k, between ε₁ and ε∞ (`rappor`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dalenius.errors import NotSound
from dalenius.local.randomizer import Randomizer
from dalenius.local.rappor import Rappor
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.release.digits import at_most


@dataclass(frozen=True)
class Costs:
    """Losses of one report, of several with a memo, of any number with it, and of several without."""

    reports: int
    changes: int
    one: Loss
    memoised: Loss
    unbounded: Loss
    fresh: Loss

    @property
    def epsilons(self) -> dict[str, float]:
        """The ε of each, at δ = 0, and of any number of fresh reports."""
        named = {name: getattr(self, name) for name in ("one", "memoised", "unbounded", "fresh")}
        return {name: loss.epsilon(0).upper for name, loss in named.items()} | {"unbounded_fresh": math.inf}

    def __str__(self) -> str:
        said = {name: at_most(value) for name, value in self.epsilons.items()}
        moved = f" that changes {self.changes} times, at times that anybody may know" if self.changes else ""
        many, ratio = self.reports, _times(self.epsilons["unbounded"])
        return (
            f"One report costs epsilon {said['one']}. With a memo, {many} reports of a value{moved} cost "
            f"{said['memoised']}, and any number of them {said['unbounded']}: whatever is seen of them is at "
            f"most {ratio} times likelier with one value than with another. Without a memo, {many} reports "
            f"cost {said['fresh']}, and there is no end to it."
        )


def what_reports_cost(
    randomizer: Randomizer, reports: int, *, changes: int = 0, change_times_public: bool = False
) -> Costs:
    """What so many reports of one device cost, whose value changes at most so often."""
    many = numbers.count(reports, "reports")
    moved = numbers.count(changes, "changes", least=0)
    if moved and not change_times_public:
        raise NotSound(
            "A memo does not hide that a value changed, nor when: reports before and after it differ.",
            remedy="Pass change_times_public=True if these times may be known; else send fresh reports, "
            "at reports times the loss of one.",
        )
    stretches = min(moved + 1, many)
    one = randomizer.loss
    if isinstance(randomizer, Rappor):
        # Of any split of the reports over stretches, none costs more than all in each.
        memoised, forever = randomizer.loss_of(many), randomizer.permanent_loss
    else:
        memoised = forever = one
    return Costs(many, moved, one, _of(memoised, stretches), _of(forever, stretches), _of(one, many))


def _of(loss: Loss, times: int) -> Loss:
    return loss if times == 1 else loss * times


def _times(epsilon: float) -> str:
    return at_most(math.exp(min(epsilon, 700.0)))
