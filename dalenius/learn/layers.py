"""`Layers`: under a bound for each layer, its sum is made as soon as its backward pass is; nothing is kept.

When all parts of a layer's parameters have come, norms, factors and the clipped sum follow from them alone,
and the sum takes their place on the tape. How many parts come is known from how often a parameter met
examples on the way forward, and from how many parts came of that in the passes before. Where that does not
divide, and where shares of what is derived from a parameter come on top, parts are kept as ever. An example
whose gradient is no number in a layer adds nothing to the sum of that layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from torch import Tensor

from dalenius.errors import NotSound
from dalenius.learn.clipping import layer_of
from dalenius.learn.lookups import united
from dalenius.learn.parts import Part, Summed

Summing = Callable[[Mapping[Tensor, Part]], Mapping[Tensor, Tensor]]
"""From the parts of a layer to its clipped sums."""


class Layers:
    """Of the parameters of a model; `summing` is None while parts are kept."""

    def __init__(self, names: Mapping[Tensor, str]) -> None:
        self._layers = {one: layer_of(name) for one, name in names.items()}
        self._members: dict[str, list[Tensor]] = {}
        for one, layer in self._layers.items():
            self._members.setdefault(layer, []).append(one)
        self.summing: Summing | None = None
        self._known: dict[Tensor, tuple[int, int]] | None = None
        """How often a parameter met examples in a pass, and how many parts came of it."""
        self._kept: set[str] = set()
        self._held: dict[str, dict[Tensor, list[Part]]] = {}
        self._begin()

    def _begin(self) -> None:
        self._met: Counter[Tensor] = Counter()
        self._seen: Counter[Tensor] = Counter()
        self._done: set[str] = set()

    def meet(self, weights: Iterable[Tensor]) -> None:
        """On the way forward: these meet examples."""
        self._met.update(one for one in weights if one in self._layers)

    def put(self, weight: Tensor, part: Part) -> dict[Tensor, Part] | None:
        """What takes the place of a part, once its layer is complete; None if it is to be kept."""
        layer = self._layers.get(weight)
        if layer is None:
            return None
        self._seen[weight] += 1
        if layer in self._done:
            raise _more(layer)
        members = self._members[layer]
        wanted = [self._expected(one) for one in members]
        if self.summing is None or layer in self._kept or None in wanted:
            return None
        held = self._held.setdefault(layer, {})
        held.setdefault(weight, []).append(part)
        if any(self._seen[one] < (count or 0) for one, count in zip(members, wanted, strict=True)):
            return {}
        del self._held[layer]
        self._done.add(layer)
        sums = self.summing({one: united(parts) for one, parts in held.items()})
        return {one: Summed(total, part.examples) for one, total in sums.items()}

    def _expected(self, weight: Tensor) -> int | None:
        """How many parts are to come in this pass, if that is known."""
        met = self._met[weight]
        if not met:
            return 0
        before = None if self._known is None else self._known.get(weight)
        if before is None or before[1] * met % before[0]:
            return None
        return before[1] * met // before[0]

    @property
    def holding(self) -> bool:
        """Whether parts of layers that are not complete are held."""
        return bool(self._held)

    def drop(self) -> None:
        """Forget a pass that is not to be taken in."""
        self._begin()
        self.forget()

    def forget(self) -> None:
        """Forget the way back of a pass, and not which parameters met examples on the way forward."""
        self._held, self._seen, self._done = {}, Counter(), set()

    def rest(self) -> dict[Tensor, list[Part]]:
        """What was held of layers that were not completed."""
        found = {one: parts for held in self._held.values() for one, parts in held.items()}
        self._held = {}
        return found

    def learn(self, carried: set[Tensor]) -> None:
        """After a pass: what it has shown, and which parameters got shares of what is derived from them."""
        late, done = {self._layers[one] for one in carried}, self._done
        new = {one: (met, self._seen[one]) for one, met in self._met.items()}
        self._known = {**(self._known or {}), **new}
        self._kept |= late
        self._begin()
        if late & done:
            raise _more(", ".join(sorted(late & done)))


def _more(layer: str) -> NotSound:
    return NotSound(
        f"A layer ({layer or 'the model itself'}) was used more often than in the passes before, and its sum "
        "was made already.",
        remedy="Pass clip as a number: under PerLayer every pass goes the same way through the model.",
    )
