"""How the batches of a training run are drawn. Each way carries its own loss.

Poisson              each unit by a coin of its own in every step
TruncatedPoisson     the same, cut to a random `cap` where the sample is larger
RandomAllocation     each unit in exactly one step of every epoch
WithoutReplacement   batches of one size, under replace
Cyclic               each unit at the same step of every epoch, for correlated noise
"""

from __future__ import annotations

from dalenius.learn.sampling.allocation import RandomAllocation
from dalenius.learn.sampling.cyclic import Cyclic
from dalenius.learn.sampling.fixed import WithoutReplacement
from dalenius.learn.sampling.poisson import Poisson, TruncatedPoisson
from dalenius.learn.sampling.reading import read
from dalenius.learn.sampling.scheme import Sampling

__all__ = [
    "Cyclic",
    "Poisson",
    "RandomAllocation",
    "Sampling",
    "TruncatedPoisson",
    "WithoutReplacement",
    "read",
]
