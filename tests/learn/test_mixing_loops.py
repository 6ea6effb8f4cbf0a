"""Every loop in which examples mix is refused before it is charged, and the operation that mixes is named."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.private import Private
from dalenius.ledger.account import Account
from tests.learn.mixing import LOOPS
from tests.learn.mixing.loops import CONSTRUCTOR, LATER, MixingLoop, seeded
from tests.learn.mixing.plain_runs import mixes
from tests.learn.mixing.rows import COUNT, Tagger, people, tagged
from tests.learn.runs import network, run_of

KINDS = {
    "batch statistics",
    "counts",
    "ranking and mining",
    "selected rows",
    "padding and lengths",
    "control flow on values",
    "normalisation of the loss",
    "in-place state",
    "hooks",
    "randomness shared across rows",
    "distributed exchange",
}
ACCEPTED_BY_A_REHEARSAL = {
    "triplet_with_the_hardest_positive",
    "character_lstm_with_the_usual_collate",
    "mean_over_the_tokens_of_the_batch",
    "sum_over_the_items_in_the_batch",
    "pad_sequence_and_a_mean_over_time",
    "loss_that_is_not_finite_replaced_by_zero",
    "inputs_rescaled_if_there_is_an_outlier",
    "losses_far_above_the_mean_dropped",
    "a_little_of_the_sum",
}
"""Loops that a check on two made-up rows cannot refuse."""

AT_ONCE = [loop for loop in LOOPS if loop.refused != LATER]
IN_TIME = [loop for loop in LOOPS if loop.refused == LATER]
BATCH = 32
"""Expected rows of a batch. Some loops need four rows: of 64, sampled at one half, fewer come with 3e-15."""


def named(loop: MixingLoop) -> str:
    """Return the name of a test."""
    return loop.name


def private_run(loop: MixingLoop, account: Account) -> Private:
    """Return the private run of a loop, not begun."""
    asked = {"batch_size": BATCH, "public_size": COUNT, "steps": 3, "noise_multiplier": 4, **loop.asked}
    return run_of(loop.model(), loop.data(), account=account, delta=1e-6, **asked)


# The list.


def test_the_list_has_every_kind_and_every_loop_that_a_rehearsal_accepts() -> None:
    names = [loop.name for loop in LOOPS]
    assert len(names) == len(set(names))
    assert {loop.kind for loop in AT_ONCE} == KINDS
    assert set(names) >= ACCEPTED_BY_A_REHEARSAL
    assert len(AT_ONCE) >= len(ACCEPTED_BY_A_REHEARSAL) + 40
    assert all(sum(loop.kind == kind for loop in AT_ONCE) >= 4 for kind in KINDS)


@pytest.mark.parametrize("loop", LOOPS, ids=named)
def test_the_loop_mixes(loop: MixingLoop) -> None:
    """Without the library: what replacing one row does to a step depends on the other rows."""
    assert mixes(loop)


# The refusals.


@pytest.mark.parametrize("loop", AT_ONCE, ids=named)
def test_a_mixing_loop_is_refused_before_anything_is_charged(loop: MixingLoop, account: Account) -> None:
    """The refusal names the operation, and its line in the file of the loop, not of torch or the library."""
    before = account.entries()
    with loop.setting(), pytest.raises(NotSound) as caught:
        loop.run(private_run(loop, account))
    assert account.entries() == before
    assert re.search(loop.blamed, str(caught.value)), str(caught.value)
    assert caught.value.remedy
    if loop.refused != CONSTRUCTOR:
        place = re.search(rf"{re.escape(loop.file.name)}\D{{1,8}}(\d+)", str(caught.value))
        assert place is not None, str(caught.value)
        assert loop.file.read_text().splitlines()[int(place[1]) - 1].strip()


@pytest.mark.parametrize("loop", IN_TIME, ids=named)
def test_a_loop_that_mixes_batches_is_refused_before_its_second_step(
    loop: MixingLoop, account: Account
) -> None:
    """The first step of these is per example: the charge for the run is made, and one step at most."""
    private = private_run(loop, account)
    with pytest.raises(NotSound, match=loop.blamed):
        loop.run(private)
    assert private.steps <= 1


# What is not mixing.


def usual(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        nn.CrossEntropyLoss()(private.model(x), y).backward()
        private.step()


def noisy(private: Any) -> None:
    for x, y in private.loader:
        private.zero_grad()
        outputs = private.model(x + 0.1 * torch.randn_like(x))
        functional.cross_entropy(outputs, y, reduction="sum").backward()
        private.step()


def averaged_per_example(private: Any) -> None:
    for words, tags in private.loader:
        private.zero_grad()
        mask = (tags != -100).float()
        losses = functional.cross_entropy(private.model(words), tags.clamp(min=0), reduction="none")
        ((losses * mask).sum(1) / mask.sum(1)).mean().backward()
        private.step()


SOUND = [
    MixingLoop("sound", "", usual, network, people),
    MixingLoop("sound", "", noisy, network, people),
    MixingLoop("sound", "", averaged_per_example, lambda: seeded(Tagger), tagged),
    MixingLoop("sound", "", usual, network, people, sizes=(5, 2)),
]


@pytest.mark.parametrize("loop", SOUND, ids=named)
def test_a_sound_loop_does_not_mix_and_is_charged(loop: MixingLoop, account: Account) -> None:
    """The two checks above can tell: neither calls every loop a mixing one."""
    before = account.entries()
    assert not mixes(loop)
    private = private_run(loop, account)
    loop.run(private)
    assert private.steps == 3
    assert len(account.entries()) > len(before)
