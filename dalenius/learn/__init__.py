"""Private training on PyTorch: clipping example by example in one backward pass, exact noise, true accounts.

    marks, placing, tape, rules   watch a forward pass: which tensors hold examples, what meets a parameter
    linear … recurrent, anything  what each kind of layer adds to its parameters' gradients, by example
    parts, lookups, gradients     norms and weighted sums of these, without ever holding all of them
    clipping, adding, noising     clipped sums of a batch, and the noise on them; numerics is their model
    sampling, loader              how batches are drawn, and what that makes of the loss
    rehearsal, costing, private   the run: rehearsed, charged, trained; fitting does it in one call
    attempts, journal, state      a run that is broken off goes on: the same noise, or another charge
    keeping, export               what is kept: a secret state, weights with their receipt

Each name is loaded when first used, and torch with it: `pip install 'dalenius[learn]'`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names
from dalenius.errors import MissingExtra

if TYPE_CHECKING:
    from dalenius.learn.adam import Adam
    from dalenius.learn.adaptive import Quantile
    from dalenius.learn.averaging import Average
    from dalenius.learn.clipping import Absolute, Automatic, Flat, PerLayer
    from dalenius.learn.export import read_receipt
    from dalenius.learn.fitting import fit
    from dalenius.learn.optimizer import PrivateOptimizer
    from dalenius.learn.private import Private
    from dalenius.learn.replacing import replaced
else:
    _HOMES = {
        "Absolute": "dalenius.learn.clipping",
        "Adam": "dalenius.learn.adam",
        "Automatic": "dalenius.learn.clipping",
        "Average": "dalenius.learn.averaging",
        "Flat": "dalenius.learn.clipping",
        "PerLayer": "dalenius.learn.clipping",
        "Private": "dalenius.learn.private",
        "PrivateOptimizer": "dalenius.learn.optimizer",
        "Quantile": "dalenius.learn.adaptive",
        "fit": "dalenius.learn.fitting",
        "read_receipt": "dalenius.learn.export",
        "replaced": "dalenius.learn.replacing",
    }
    _get, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> object:
        if name in _HOMES and find_spec("torch") is None:
            raise MissingExtra(
                "Private training needs PyTorch, which is not installed.",
                remedy="Run pip install 'dalenius[learn]'.",
            )
        return _get(name)


__all__ = [
    "Absolute",
    "Adam",
    "Automatic",
    "Average",
    "Flat",
    "PerLayer",
    "Private",
    "PrivateOptimizer",
    "Quantile",
    "fit",
    "read_receipt",
    "replaced",
]
