"""What a privacy loss says of new data: queries chosen with sight of private answers hold for the population.

>>> from dalenius.losses import Pure
>>> from dalenius.losses.generalization import generalization
>>> print(round(generalization(Pure(0.1, relation="replace"), size=10_000).gap, 4))
0.0538
"""

from __future__ import annotations

from dalenius.losses.generalization.gap import Gap, generalization
from dalenius.losses.generalization.planning import Plan, most_queries, plan
from dalenius.losses.generalization.posterior import Drift, drift

__all__ = ["Drift", "Gap", "Plan", "drift", "generalization", "most_queries", "plan"]
