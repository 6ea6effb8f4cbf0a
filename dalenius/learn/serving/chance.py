"""What is random in other people's code, drawn afresh for every model.

A generator that all models draw from would carry something of one shard into the next model: how much the
former had drawn. So each starts from a secret seed of its own, and a processor's generators are left as they
were. Nothing here draws from them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from dalenius import noise

BITS, WORDS = 31, 8
"""Of a seed: words that every generator takes."""


@contextmanager
def own_chance() -> Iterator[None]:
    """Python's, numpy's and torch's generators, as far as they are loaded, seeded afresh within."""
    words = [int(word) for word in noise.uniform(2**BITS, WORDS)]
    number = sum(word << BITS * i for i, word in enumerate(words))
    shared, python, torch = np.random.mtrand._rand, *map(sys.modules.get, ("random", "torch"))
    with ExitStack() as left:
        _kept(left, shared.get_state, shared.set_state)
        shared.seed(words)
        if python is not None:
            _kept(left, python.getstate, python.setstate)
            python.seed(number)
        if torch is not None:
            generator = torch.default_generator
            _kept(left, generator.get_state, generator.set_state)
            generator.manual_seed(number % 2**63)
            if torch.cuda.is_initialized():
                torch.cuda.manual_seed_all(number % 2**63)
        yield


def _kept(left: ExitStack, read: Callable[[], Any], write: Callable[[Any], Any]) -> None:
    """What is there now comes back."""
    left.callback(write, read())
