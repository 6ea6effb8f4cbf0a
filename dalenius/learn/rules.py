"""Which rule takes over which function of torch, where a parameter meets examples."""

from __future__ import annotations

import torch
from torch.nn import functional

from dalenius.learn import (
    convolution,
    embedding,
    linear,
    normalization,
    packed_sequences,
    products,
    recurrent,
    selected_rows,
    spreading,
)
from dalenius.learn.dataflow.unequal_rows import UNEQUAL
from dalenius.learn.tape import Function, Rule

_BROADCAST = (
    "add sub mul div true_divide subtract multiply divide pow maximum minimum where lerp addcmul addcdiv "
    "rsub fmax fmin atan2 remainder fmod hypot logaddexp xlogy copysign"
)
_DUNDERS = "add radd sub rsub mul rmul truediv rtruediv pow rpow"


def _named(names: str) -> list[Function]:
    """Functions of torch, and methods of tensors, of these names."""
    return [
        getattr(home, name) for name in names.split() for home in (torch, torch.Tensor) if hasattr(home, name)
    ]


def _rules() -> dict[Function, Rule]:
    rules: dict[Function, Rule] = dict.fromkeys(_named(_BROADCAST), spreading.elementwise)
    dunders = [f"__{name}__" for name in _DUNDERS.split()]
    rules |= dict.fromkeys(_named(" ".join(dunders)), spreading.elementwise)
    rules |= dict.fromkeys(_named(" ".join(f"{name}_" for name in _BROADCAST.split())), spreading.elementwise)
    rules |= dict.fromkeys(
        _named(" ".join(f"__i{name}__" for name in ("add", "sub", "mul", "truediv"))), spreading.elementwise
    )
    rules |= dict.fromkeys(_named("cat concat concatenate stack"), spreading.beside)
    rules |= dict.fromkeys(_named("expand expand_as broadcast_to repeat tile"), spreading.expand)
    rules |= dict.fromkeys(_named("matmul mm bmm __matmul__"), products.matmul)
    rules |= dict.fromkeys(_named("addmm"), products.addmm)
    rules |= dict.fromkeys(_named("lstm gru rnn_tanh rnn_relu"), recurrent.recurrent)
    rules |= dict.fromkeys(UNEQUAL.values(), recurrent.recurrent_of_unequal_rows)
    rules |= dict.fromkeys(_named("lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"), recurrent.cell)
    rules |= dict.fromkeys(_named("conv1d conv2d conv3d"), convolution.convolution)
    rules |= dict.fromkeys((functional.layer_norm, torch.layer_norm), normalization.layer_norm)
    rules |= dict.fromkeys((functional.group_norm,), normalization.group_norm)
    rules |= dict.fromkeys((functional.rms_norm, torch.rms_norm), normalization.rms_norm)
    rules |= dict.fromkeys((functional.instance_norm,), normalization.instance_norm)
    rules |= dict.fromkeys((functional.batch_norm,), normalization.batch_norm)
    rules |= dict.fromkeys((functional.embedding,), embedding.embedding)
    rules |= dict.fromkeys((functional.embedding_bag,), embedding.embedding_bag)
    rules[functional.linear] = linear.linear
    return rules


RULES = _rules()
BAGS = frozenset((functional.embedding_bag,))
"""Functions whose rules find out by themselves whose the data are."""
FOLLOWED = packed_sequences.FOLLOWED
"""Functions that mix examples in a way that others undo, where it is known what they did."""
SELECTING = selected_rows.follow
"""Runs functions that select rows of a batch, take selected rows, or write them back."""
