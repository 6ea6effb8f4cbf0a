"""`check`, `check_influence`: a recorded training loop held against the loss it declares.

    finding   what is looked at                                                        in a correct loop
    clipping  a contribution above the bound; fewer of them than examples (averages    never, up to
              were clipped); a sum that is not that of the contributions               rounding
    steps     more steps than declared                                                 never
    repeats   an example twice in one batch                                            never
    noise     Σ noise²/(σC)² far below its χ² law: in all, in a step, in a coordinate  α/8 each
    reuse     two steps, or two coordinates throughout, with one noise                 never, if continuous
    rate      how many were taken in all; how often the most frequent one: binomial    α/8 each
    shuffled  all batches of one size; too many taken just once in 1/q steps           α/8 each

`check_influence` leaves one example out after the other: the sum may move by the bound at most. It asks
nothing of the loop but a function from a batch to the sum, so it sees clipped averages however reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.audits.replay_chances import noise, reuse, sampling
from dalenius.audits.replaying import Finding, Recorded
from dalenius.errors import InvalidArgument
from dalenius.losses.composition import Composition
from dalenius.losses.gaussian import Gaussian
from dalenius.losses.loss import Loss
from dalenius.losses.poisson import Poisson
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

TOLERANCE = 1e-4
"""Single-precision arithmetic may exceed a bound by so much of it."""
TESTS = 8
"""Tests that share the false-alarm rate."""


@dataclass(frozen=True)
class Declared:
    """What a loss says of the loop: noise over the clipping bound, the sampling rate (1: none), the steps."""

    noise_multiplier: float
    sampling_rate: float
    steps: int


def declared_loop(loss: Loss) -> Declared:
    """Read `Gaussian(s) * n` or `Gaussian(s).poisson(q) * n`."""
    terms = loss.terms if isinstance(loss, Composition) else ((loss, 1),)
    one, steps = terms[0]
    inner = one.loss if isinstance(one, Poisson) else one
    if len(terms) > 1 or not isinstance(inner, Gaussian):
        raise InvalidArgument(
            "Only loops of one kind of step with Gaussian noise are checked.",
            remedy="Declare Gaussian(noise_multiplier).poisson(sampling_rate) * steps.",
        )
    rate = float(one.sampling_rate) if isinstance(one, Poisson) else 1.0
    return Declared(float(inner.noise_multiplier), rate, steps)


def check(recorded: Recorded, declared: Loss, *, false_alarm: Number = 1e-6) -> tuple[Finding, ...]:
    """Everything in the record that the declared loss does not cover; empty where nothing was found.

    A loop that does what it declares has a finding with probability at most `false_alarm`.
    """
    said, level = declared_loop(declared), float(numbers.confidence(false_alarm, "false_alarm")) / TESTS
    if not recorded.steps:
        raise InvalidArgument("No step was recorded.", remedy="Call the recorder's step in the loop.")
    found = [*_clipping(recorded), *_steps(recorded, said), *reuse(recorded)]
    found += noise(recorded, said.noise_multiplier * recorded.clip, level)
    return tuple(found + ([*sampling(recorded, said.sampling_rate, level)] if said.sampling_rate < 1 else []))


def check_influence(
    total: Callable[[NDArray[np.int64]], ArrayLike], batch: ArrayLike, *, clip: Number
) -> tuple[Finding, ...]:
    """Whether any example of the batch moves the sum before noise, `total(batch)`, by more than `clip`."""
    who, bound = np.asarray(batch, dtype=np.int64), float(numbers.positive(clip, "clip"))
    whole = np.asarray(total(who), dtype=np.float64)
    rest = [np.asarray(total(np.delete(who, k)), dtype=np.float64) for k in range(len(who))]
    moved = max((float(np.linalg.norm(whole - one)) for one in rest), default=0.0)
    if moved <= bound * (1 + TOLERANCE):
        return ()
    text = f"one example moves the sum by {moved:.4g}, more than {bound:.4g}: are averages clipped?"
    return (Finding("clipping", text),)


def _clipping(recorded: Recorded) -> Iterator[Finding]:
    bound = recorded.clip * (1 + TOLERANCE)
    for k, step in enumerate(recorded.steps):
        longest = float(step.norms.max(initial=0.0))
        if len(step.norms) < len(step.sampled):
            text = f"{len(step.norms)} contributions of {len(step.sampled)} examples: averages were clipped"
            yield Finding("clipping", f"{text}, which one example can move by twice the bound.", k)
        elif longest > bound:
            yield Finding("clipping", f"a contribution of norm {longest:.4g}, above {recorded.clip:.4g}.", k)
        elif step.unexplained > TOLERANCE * (recorded.clip + float(np.linalg.norm(step.total))):
            yield Finding("clipping", "the sum before noise is not that of the contributions.", k)
        else:
            continue
        return


def _steps(recorded: Recorded, said: Declared) -> Iterator[Finding]:
    if len(recorded.steps) > said.steps:
        yield Finding("steps", f"{len(recorded.steps)} steps, and {said.steps} were declared.")
    for k, step in enumerate(recorded.steps):
        if len(np.unique(step.sampled)) < len(step.sampled):
            yield Finding("repeats", "an example is in one batch more than once.", k)
            return
