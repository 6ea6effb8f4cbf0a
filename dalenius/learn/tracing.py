"""A whole pass, forward and backward, as one graph for torch's compiler.

The pass is run once on tensors that have no content, with stand-ins for parameters and buffers, and all that
it asks of torch is written down: the rules' ways back as well, so that the parts of the gradients are outputs
of the graph like the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.fx.experimental.proxy_tensor import make_fx

from dalenius.errors import NotSound
from dalenius.learn.gradients import Watched
from dalenius.learn.parts import Part
from dalenius.learn.recording import Parts, Run, apart


def traced(model: Watched, run: Run, inputs: Sequence[Tensor]) -> tuple[Run, Set[Tensor]]:
    """The same pass, compiled, and the parameters that it has parts of."""
    state = model.state()
    makers: dict[Tensor, Callable[[Sequence[Tensor]], Part]] = {}

    def flat(*given: Tensor) -> tuple[Tensor, ...]:
        own, batch = given[: len(state)], given[len(state) :]
        with model.standing_in(dict(zip(state, own, strict=True))):
            loss, parts = run(batch)
        found, first = [loss], dict(zip(own, state, strict=True))
        makers.update({first[one]: apart(part, found) for one, part in parts.items()})
        return tuple(found)

    try:
        graph = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)(*state, *inputs)
    except (RuntimeError, DynamicOutputShapeException):
        raise _refused() from None
    graph.graph.eliminate_dead_code()
    try:
        with torch.no_grad():
            call = torch._inductor.compile(graph, [one.detach() for one in (*state, *inputs)])
    except DynamicOutputShapeException:
        raise _refused() from None

    def again(batch: Sequence[Tensor]) -> tuple[Tensor, Parts]:
        with torch.no_grad():
            found = call(*(one.detach() for one in state), *batch)
        return found[0], {parameter: make(found) for parameter, make in makers.items()}

    return again, makers.keys()


def _refused() -> NotSound:
    """What torch says of it tells sizes, and is left out."""
    return NotSound(
        "The pass cannot be compiled: what it does depends on what is in a tensor, such as the rows that an "
        "index picks.",
        remedy="Pass compile=False, which records it on a GPU.",
    )
