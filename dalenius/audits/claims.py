"""`audit`: a lower bound on ε from draws of the real sampler, and what was attainable.

    >>> import dalenius as dp
    >>> from dalenius.mechanisms import Laplace
    >>> found = dp.audit(Laplace(scale=1, sensitivity=1), trials=20_000)
    >>> found.violated, 0.8 < found.epsilon_lower < 1
    (False, True)

The adversary knows the mechanism and its worst neighbouring inputs, draws on both, and bets against the
claim (`bets`). Draws are ranked by what it knows of the law, or learned from draws that serve for nothing
else (`scores`); batch by batch it bets on the event that told most among the draws before. It bets against
the whole curve of the claim and against its ε at one δ (`families`), which share the risk, and may stop at
any time. Whatever the mechanism, a claim that it keeps is rejected with probability at most 1 − confidence,
and `epsilon_any` is too large with the same; `epsilon_lower` supposes besides that the mechanism is of the
claim's kind, where `family` says so. Draws must not depend on each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from dalenius.audits.attaining import attainable
from dalenius.audits.black_box import audit_callable, pairs_of
from dalenius.audits.families import read_claim
from dalenius.audits.hunt import FIRST, Draw, Hunt
from dalenius.audits.report import Audit
from dalenius.audits.scores import Case, known
from dalenius.errors import InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.mechanisms.mechanism import Law, Mechanism
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

TRIALS = 400_000
"""Draws from each of the two inputs, where nothing else is asked for."""


def audit(
    mechanism: Mechanism | Callable[[Any], Any],
    *,
    inputs: Iterable[Any] | None = None,
    neighbors: Callable[[Any], Iterable[Any]] | None = None,
    claim: Loss | None = None,
    delta: Number | None = None,
    trials: int = TRIALS,
    confidence: Number | None = None,
    until: float = math.inf,
) -> Audit:
    """Attack a claim at `delta` (chosen if None), with so many draws or until an ε is shown.

    A mechanism is attacked on its worst case. Of any other function, each call of which is one draw, `claim`
    says what is claimed, and `inputs` and `neighbors` where to look: without `neighbors`, inputs are lists of
    records, next to each other as the claim's relation says. Nothing else of it is known, and a violation is
    reported only where the evidence is a million to one, if `confidence` says nothing else.
    """
    count = numbers.count(trials, "trials", least=400)
    if isinstance(mechanism, Mechanism):
        if claim is not None or inputs is not None or neighbors is not None:
            raise InvalidArgument(
                "A mechanism states its own claim and its own worst case.",
                remedy="Leave claim, inputs and neighbors out, or pass a function of the data.",
            )
        sure = _confidence(Fraction(99, 100) if confidence is None else confidence)
        return _of_mechanism(mechanism, delta, count, sure, until)
    if not callable(mechanism) or (neighbors is not None and not callable(neighbors)):
        raise InvalidArgument(
            "What is audited is a mechanism or a function, and neighbors a function too.",
            remedy="Pass a function that takes one input and gives one output.",
        )
    if claim is None or inputs is None:
        raise InvalidArgument(
            "Of a function it is not known what it claims, and on what.",
            remedy="Pass claim=a loss and inputs=[…], with neighbors=a function that lists those of one.",
        )
    return audit_callable(
        mechanism,
        pairs_of(inputs, neighbors, read_claim(claim)),
        claim,
        delta=numbers.delta(_likely(claim) if delta is None else delta),
        trials=count,
        confidence=_confidence(1 - Fraction(1, 10**6) if confidence is None else confidence),
        until=until,
    )


def _of_mechanism(
    mechanism: Mechanism, delta: Number | None, count: int, confidence: Fraction, until: float
) -> Audit:
    failure = numbers.delta(_likely(mechanism.loss) if delta is None else delta)
    hunt = Hunt(mechanism.loss, failure, float(1 - confidence))
    case = _most_telling(mechanism, hunt, count // FIRST)
    laws: list[Law | None] = [mechanism.probabilities(value) for value in case]
    drawn = hunt.run(_draws(mechanism, case), known(mechanism, case, laws), count, until)
    return hunt.report(confidence, drawn, attainable(laws, float(failure)))


def _confidence(asked: Number) -> Fraction:
    sure = numbers.probability(asked, "confidence")
    if float(1 - sure) == 0:
        raise InvalidArgument(
            "No number of draws shows anything for certain.", remedy="Pass a confidence such as 0.999999."
        )
    return sure


def _likely(claim: Loss) -> Fraction:
    """A δ at which an attack can show something: 0 for a pure claim, else a quarter of the advantage."""
    pure = claim.epsilon(0).upper < math.inf
    return Fraction(0) if pure else Fraction(f"{claim.advantage().upper / 4:.2g}")


def _draws(mechanism: Mechanism, case: Case) -> Draw:
    return lambda size: (mechanism.sample(case[0], size), mechanism.sample(case[1], size))


def _most_telling(mechanism: Mechanism, hunt: Hunt, size: int) -> Case:
    """The case on which the first bet promises most, each tried on its share of `size` draws."""
    cases = mechanism.cases()
    if len(cases) == 1:
        return cases[0]
    share = max(50, size // len(cases))

    def promise(case: Case) -> float:
        laws = [mechanism.probabilities(value) for value in case]
        draw = _draws(mechanism, case)
        return hunt.promise(draw, known(mechanism, case, laws), share)

    return max(cases, key=promise)
