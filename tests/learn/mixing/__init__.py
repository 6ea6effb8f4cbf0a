"""Training loops in which one example changes what another adds to a step, by kind."""

from __future__ import annotations

from tests.learn.mixing import (
    axes_confused,
    batch_statistics,
    control_flow,
    counts,
    distributed_exchange,
    hooks,
    in_place_inputs,
    in_place_state,
    later_batches,
    loss_normalization,
    padding_and_lengths,
    ranking_and_mining,
    selected_rows,
    shared_randomness,
)
from tests.learn.mixing.loops import MixingLoop

MODULES = (
    batch_statistics,
    axes_confused,
    counts,
    ranking_and_mining,
    selected_rows,
    padding_and_lengths,
    control_flow,
    loss_normalization,
    in_place_state,
    in_place_inputs,
    hooks,
    shared_randomness,
    distributed_exchange,
    later_batches,
)

LOOPS: tuple[MixingLoop, ...] = tuple(loop for module in MODULES for loop in module.LOOPS)
