"""`Layers`: under a bound for each layer, its sum is made as soon as its backward pass is; nothing is kept.

When all parts of a layer's parameters have come, norms, factors and the clipped sum follow from them alone,
and the sum takes their place on the tape. How often a parameter is used is learned from the passes before:
those of a layer that may get more, such as shares of what is derived from it, are kept as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.clipping import layer_of
from dalenius.learn.parts import Part, Summed, united

Summing = Callable[[Mapping[Tensor, Part]], Mapping[Tensor, Tensor]]
"""From the parts of a layer to its clipped sums."""


class Layers:
    """Of the parameters of a model; `summing` is None while parts are kept."""

    def __init__(self, names: Mapping[Tensor, str]) -> None:
        self._layers = {one: layer_of(name) for one, name in names.items()}
        self.summing: Summing | None = None
        self._uses: dict[Tensor, int] | None = None
        self._kept: set[str] = set()
        self._seen: Counter[Tensor] = Counter()
        self._held: dict[str, dict[Tensor, list[Part]]] = {}
        self._done: set[str] = set()

    def begin(self) -> None:
        """Before a pass."""
        self._seen, self._held, self._done = Counter(), {}, set()

    def put(self, weight: Tensor, part: Part) -> dict[Tensor, Part] | None:
        """What takes the place of a part, once its layer is complete; None if it is to be kept."""
        layer = self._layers.get(weight)
        if layer is None:
            return None
        self._seen[weight] += 1
        if layer in self._done:
            raise _more(layer)
        if self.summing is None or self._uses is None or layer in self._kept or weight not in self._uses:
            return None
        held = self._held.setdefault(layer, {})
        held.setdefault(weight, []).append(part)
        members = [one for one in self._uses if self._layers[one] == layer]
        if any(self._seen[one] < self._uses[one] for one in members):
            return {}
        del self._held[layer]
        self._done.add(layer)
        sums = self.summing({one: united(parts) for one, parts in held.items()})
        return {one: Summed(total, part.examples) for one, total in sums.items()}

    def rest(self) -> dict[Tensor, list[Part]]:
        """After a pass: what was held of layers that were not completed."""
        found = {one: parts for held in self._held.values() for one, parts in held.items()}
        self._held = {}
        return found

    def learn(self, carried: set[Tensor]) -> None:
        """What a whole pass has shown, and which parameters got shares of what is derived from them."""
        late = {self._layers[one] for one in carried}
        if late & self._done:
            raise _more(", ".join(sorted(late & self._done)))
        self._kept |= late
        # The larger of both counts.
        self._uses = Counter(self._uses or {}) | self._seen


def _more(layer: str) -> NotSound:
    return NotSound(
        f"A layer ({layer or 'the model itself'}) was used more often than in the passes before, and its sum "
        "was made already.",
        remedy="Pass clip as a number: under PerLayer every pass goes the same way through the model.",
    )
