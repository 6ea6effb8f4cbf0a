"""What reporting again and again costs a person, in numbers and in plain words.

    fresh noise for every report   k reports compose: k·ε for pure losses, without end. They hide values,
                                   changes and when they came, as each report hides by itself.
    memoised, one value            all reports are made from one response: its loss at most, however many.
    memoised, D values             given which reports share a response: the losses of D responses compose.
    memoised, who shares hidden    nothing is promised, and it is refused: no bound holds for any number of
                                   reports.

Theorem (the third line). Let a device draw c before it has a value (RAPPOR's cohort, dBitFlip's buckets,
else nothing), which it tells; let two sequences of n values be such that, with this c, the same reports share
a key (`client`), k_j of them the j-th of D. Then, given c, the laws of all n reports are those of D
independent experiments, the j-th being k_j reports from one response; so their loss is at most the
composition of D losses, each at most that of one response:

    RAPPOR    Σ ε_{k_j} ≤ D·ε∞; of n reports at most (D − r)·ε_m + r·ε_{m + 1}, n = D·m + r, r < D, ε_0 = 0
    dBitFlip  2D bits of log(p/(1 − p)) each for 2 ≤ D ≤ d, and 2d for D = d + 1, which are all there are;
              so, however often a value changes, d·ε at most, and 2ε for d = 1
    others    D·ε

Proof. The responses of different keys are drawn by themselves, and noise after them too: given c the law is a
product over keys. RAPPOR: factor j is that of k_j reports of one string (`rappor`). With x = ρ^k, ρ < 1, ε_k
is a sum of terms log((a + bx)/(b + ax)), a > b, whose second derivative in log x is abx/(a + bx)² − abx/(b +
ax)² ≤ 0: ε_k is concave in k, so a sum of D of them is largest where their numbers differ by one at most.
dBitFlip: given the buckets, two of them differ in two bits, one and none in one bit, and each sequence has
"none" under one key at most. If that is the same key for both, the d others have two bits each; if not, two
keys have one bit and the d − 1 others two. All this is attained, where filters are disjoint: let one sequence
be the other with its values permuted. For D = 1 the condition always holds, so the loss is that of one
report, over the draw of c too; for more it may hold for some c only, and dBitFlip's buckets are the same for
all keys, so nothing is averaged.

What is not in it: who shares a response tells of values by itself. With public times of change A, B, A and A,
B, C are told apart for certain where a response is sent as it is, whenever the third report is not the first
one again; and after enough reports where RAPPOR adds noise. Of dBitFlip a change that shows says that a
bucket was left or entered, and one that does not says that none was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import NotSound
from dalenius.local.bit_flips import BitFlips
from dalenius.local.frequency import FrequencyOracle
from dalenius.local.randomizer import Randomizer
from dalenius.local.ranges import RangeRandomizer
from dalenius.local.rappor import Rappor
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.losses.raw import DiscretePair
from dalenius.privacy import numbers
from dalenius.release.digits import at_most

IN_FULL = 20.0
"""The largest ε whose e^ε is written as a number."""


@dataclass(frozen=True)
class Costs:
    """Losses of one report, of several with a memo, of any number with it, and of several without.

    With more than one value, those with a memo are given which reports share a response.
    """

    reports: int
    values: int
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
        many, ratio, alone = self.reports, _times(self.epsilons["unbounded"]), self.values == 1
        of = "a value that stays" if alone else f"at most {self.values} values"
        given = "" if alone else ", given which reports share a response, which is not hidden"
        return (
            f"One report costs epsilon {said['one']}. With a memo, {many} reports of {of} cost "
            f"{said['memoised']}, and any number of them {said['unbounded']}{given}: whatever is seen of "
            f"them is at most {ratio} times likelier with {'one value' if alone else 'some values'} than "
            f"with {'another' if alone else 'others'}. Without a memo, {many} reports cost {said['fresh']}, "
            "and there is no end to it."
        )


def what_reports_cost(
    randomizer: Randomizer, reports: int, *, values: int = 1, pattern_public: bool = False
) -> Costs:
    """What so many reports of one device cost, of at most so many values it ever has.

    With `pattern_public` anybody may know which of its reports are of the same value, as a memo shows.
    """
    many, held = numbers.count(reports, "reports"), numbers.count(values, "values")
    if held > 1 and pattern_public is not True:
        raise NotSound(
            "A memo does not hide which reports are of the same value: with values that change, no bound "
            "holds for any number of reports.",
            remedy="Pass pattern_public=True if anybody may know that; else draw each report anew, with "
            "randomizer.encode, at reports times the loss of one.",
        )
    if held > 1 and randomizer.relation != "replace":
        raise NotSound(
            "Who has no value has one response, so with several values other reports share one.",
            remedy='Use a randomizer with relation="replace".',
        )
    one, keys = randomizer.loss, _keys(randomizer, held)
    if isinstance(randomizer, Rappor):
        memoised = randomizer.loss_of(many) if keys == 1 else _shared_out(randomizer, many, keys)
        forever = _of(randomizer.permanent_loss, keys)
    else:
        memoised, forever = (_responses(randomizer, number) for number in (min(keys, many), keys))
    return Costs(many, held, one, memoised, forever, _of(one, many))


def _keys(randomizer: Randomizer, values: int) -> int:
    """How many responses there are at most of so many values."""
    if isinstance(randomizer, FrequencyOracle | RangeRandomizer):
        values = min(values, randomizer.domain)
    return min(values, randomizer.chosen + 1) if isinstance(randomizer, BitFlips) else values


def _responses(randomizer: Randomizer, keys: int) -> Loss:
    """Of the responses of so many keys, each sent as it is."""
    if keys == 1 or not isinstance(randomizer, BitFlips):
        return _of(randomizer.loss, keys)
    p, q = randomizer.support
    return DiscretePair((p, q), (q, p), relation=randomizer.relation) * (2 * min(keys, randomizer.chosen))


def _shared_out(rappor: Rappor, reports: int, keys: int) -> Loss:
    """Of so many reports of at most so many filters, by ε at δ = 0: the most it can be."""
    each, more = divmod(reports, keys)
    total = more * Fraction(rappor.epsilon_of(each + 1))
    if each:
        total += (keys - more) * Fraction(rappor.epsilon_of(each))
    return Pure(total, relation=rappor.relation)


def _of(loss: Loss, times: int) -> Loss:
    return loss if times == 1 else loss * times


def _times(epsilon: float) -> str:
    return at_most(math.exp(epsilon)) if epsilon <= IN_FULL else f"e^{at_most(epsilon)}"
