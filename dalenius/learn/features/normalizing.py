"""Features of each example brought to one size, by numbers of that example alone.

Private training clips what each example adds: examples whose features are large would have most of their say
cut off, and channels that are large by nature would leave the others to the noise. `normalized` gives each
group of channels of one example mean nought and variance one (Wu and He 2018), after square roots if asked
for, by which faint textures count for more. So rows of d features have an L2 norm of at most √d. A root is
rounded alike wherever it stands in a tensor, as other powers are not: an example's features are its own.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers

CHUNK = 1024
"""Examples that are worked on at once."""
FLOOR = 1e-3
"""Added to variances: a group that hardly varies is not blown up."""


def normalized(features: Tensor, *, groups: int = 27, root: bool = False) -> Tensor:
    """Of n × channels × …, in groups of equally many; roots are taken of negative features as if of 0."""
    count = numbers.count(groups, "groups")
    if not isinstance(features, Tensor) or features.dim() < 2 or not features.is_floating_point():
        raise InvalidArgument(
            "features must be a tensor of floats, an example each row.", remedy="Pass n × channels × …"
        )
    if features.shape[1] % count:
        raise InvalidArgument(
            f"{features.shape[1]} channels are not {count} groups of equally many.",
            remedy=f"Choose groups that divide {features.shape[1]}.",
        )
    found = torch.empty_like(features)
    with torch.no_grad():
        for start in range(0, len(features), CHUNK):
            part = features[start : start + CHUNK]
            sized = part.clamp_min(0).sqrt() if root else part
            found[start : start + CHUNK] = functional.group_norm(sized, count, eps=FLOOR)
    return found
