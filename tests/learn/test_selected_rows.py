"""Rows that a mask selects are followed row by row, and are mixed in any other use."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.private import Private

from .accepted.loop import Loop, training
from .clipped_sums import clipped_sum
from .runs import data, network, run_of, train

ROWS = 9


class Gated(nn.Module):
    """Rows with a positive first feature go through a part of their own."""

    def __init__(self, *, dense: bool = False) -> None:
        super().__init__()
        self.dense, self.gate = dense, nn.Linear(5, 1)
        self.own, self.common = nn.Linear(5, 8), nn.Linear(5, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden, weight = torch.tanh(self.common(x)), torch.sigmoid(self.gate(x))
        chosen = x[..., 0] > 0
        if self.dense:
            own = torch.where(chosen.unsqueeze(-1), torch.tanh(self.own(x)) * weight, 0.0)
            return self.head(hidden + own)
        places = chosen.nonzero().squeeze(1)
        return self.head(hidden.index_add(0, places, torch.tanh(self.own(x[places])) * weight[places]))


def loop(dense: bool) -> Loop:
    """Return the ordinary loop over a model that selects rows, or over its twin that does not."""
    loss = training(lambda model, x, y: functional.cross_entropy(model(x), y))
    return Loop("gated", lambda: Gated(dense=dense), lambda n, bits: data(n), loss)


def test_a_routed_model_has_the_gradients_of_one_that_weighs_all_parts() -> None:
    rows = data(ROWS)
    routed, weighed = (clipped_sum(loop(dense), rows) for dense in (False, True))
    torch.testing.assert_close(routed, weighed, rtol=1e-6, atol=1e-9)


def test_a_loss_of_one_example_that_weighs_all_parts_has_the_same_gradients() -> None:
    def step(private: Private) -> None:
        learn = private.loss(lambda model, row: functional.cross_entropy(model(row[0]), row[1]))
        for batch in private.loader:
            private.zero_grad()
            learn(batch)
            private.step()

    single = Loop("single", lambda: Gated(dense=True), lambda n, bits: data(n), step)
    rows = data(ROWS)
    torch.testing.assert_close(
        clipped_sum(single, rows), clipped_sum(loop(dense=False), rows), rtol=1e-5, atol=1e-8
    )


def by_rows(criterion: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Loop:
    """Return the loop over a loss of the inputs, the outputs and the labels of a batch."""

    def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return criterion(x, model(x), y)

    return Loop("selected", network, lambda n, bits: data(n), training(loss_of))


def losses_of(outputs: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, y, reduction="none")


def test_a_sum_over_selected_rows_is_that_over_a_masked_batch() -> None:
    selected = by_rows(lambda x, out, y: losses_of(out[y > 0], y[y > 0]).sum() / ROWS)
    kept = by_rows(lambda x, out, y: losses_of(out[kept := y > 0], y[kept]).sum() / ROWS)
    masked = by_rows(lambda x, out, y: (losses_of(out, y) * (y > 0)).sum() / ROWS)
    rows = data(ROWS)
    torch.testing.assert_close(clipped_sum(kept, rows), clipped_sum(masked, rows), rtol=1e-6, atol=1e-9)
    with pytest.raises(NotSound):
        # Two masks may have other rows, and nothing tells that they have not.
        clipped_sum(selected, rows)


def test_a_change_in_place_is_followed() -> None:
    def changed(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        chosen = y > 0
        rows = out[chosen]
        rows *= 2.0
        rows.add_(rows.clone()).relu_()
        out = out.clone()
        out[chosen] = rows
        return functional.cross_entropy(out, y)

    def masked(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        out = torch.where((y > 0)[:, None], (4 * out).relu(), out)
        return functional.cross_entropy(out, y)

    rows = data(ROWS)
    torch.testing.assert_close(
        clipped_sum(by_rows(changed), rows), clipped_sum(by_rows(masked), rows), rtol=1e-6, atol=1e-9
    )


def test_functions_with_several_results_are_followed() -> None:
    def selected(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        chosen = (y > 0).nonzero(as_tuple=True)[0]
        values, places = out[chosen].max(1)
        first, *others = out.index_select(0, chosen).unbind(1)
        norms = out[chosen].view(-1, 3, 1).square().sum((1, 2))
        return (values * first.exp() + norms + others[0] * places).sum() / ROWS

    def masked(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        values, places = out.max(1)
        terms = values * out[:, 0].exp() + out.square().sum(1) + out[:, 1] * places
        return (terms * (y > 0)).sum() / ROWS

    rows = data(ROWS)
    torch.testing.assert_close(
        clipped_sum(by_rows(selected), rows), clipped_sum(by_rows(masked), rows), rtol=1e-6, atol=1e-9
    )


def test_rows_of_an_earlier_state_of_a_mask_are_not_taken_for_those_of_a_later_one() -> None:
    def rewritten(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        chosen = x[:, 0] > 0
        rows = out[chosen]
        chosen.logical_not_()
        out = out.clone()
        out[chosen] = rows
        return functional.cross_entropy(out, y)

    with pytest.raises((NotSound, RuntimeError)):
        clipped_sum(by_rows(rewritten), data(ROWS))


def steering(name: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return a loss that lets the number of selected rows decide something."""

    def criterion(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        rows = out[x[:, 0] > 0.5]
        loss = functional.cross_entropy(out, y)
        if name == "rank":
            return loss * rows.squeeze().dim()
        if name == "first":
            return loss * rows.squeeze(0).dim()
        if name == "length":
            return loss * (2.0 if rows.shape[0] > 3 else 1.0)
        if name == "loop":
            return loss + sum(row.sum() for row in rows)
        if name == "places":
            return loss * (x[:, 0] > 0.5).nonzero().squeeze().dim()
        rows.unsqueeze_(1)
        return loss + rows.sum() / rows.shape[0]

    return criterion


@pytest.mark.parametrize("name", ["rank", "first", "length", "loop", "places", "in place"])
def test_the_number_of_selected_rows_decides_nothing(name: str) -> None:
    with pytest.raises(NotSound):
        clipped_sum(by_rows(steering(name)), data(ROWS))


def test_an_error_does_not_tell_how_many_rows_were_selected() -> None:
    def failing(x: Tensor, out: Tensor, y: Tensor) -> Tensor:
        return functional.linear(out[x[:, 0] > 0.5], torch.ones(2, 7)).sum()

    rows = data(ROWS)
    count = int((rows[0][:, 0] > 0.5).sum())
    with pytest.raises(RuntimeError) as caught:
        clipped_sum(by_rows(failing), rows)
    assert str(count) not in str(caught.value)


def zeroed_by_a_view(rows: Tensor) -> None:
    rows[:, 0].zero_()


def zeroed_by_a_copy_of_the_tensor(rows: Tensor) -> None:
    rows.detach()[0] = 0


def zeroed_by_a_function(rows: Tensor) -> None:
    functional.relu(rows.view(-1, 3), inplace=True)


WRITES = zeroed_by_a_view, zeroed_by_a_copy_of_the_tensor, zeroed_by_a_function


@pytest.mark.parametrize("write", WRITES)
def test_rows_that_a_view_of_them_changed_are_refused_and_not_computed_without_the_change(
    write: Callable[[Tensor], None],
) -> None:
    def criterion(x: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        chosen = x[:, 0] > 0
        rows, spread = outputs[chosen], torch.zeros_like(outputs)
        write(rows)
        spread[chosen] = rows
        return losses_of(spread, y).mean()

    with pytest.raises(NotSound, match="another view"):
        clipped_sum(by_rows(criterion), data(ROWS))


def test_a_view_of_rows_that_is_changed_is_followed_itself() -> None:
    def changed(x: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        chosen = x[:, 0] > 0
        view, spread = outputs[chosen].view(-1, 3), torch.zeros_like(outputs)
        view.mul_(2)
        spread[chosen] = view
        return losses_of(spread, y).mean()

    def weighed(x: Tensor, outputs: Tensor, y: Tensor) -> Tensor:
        return losses_of(outputs * 2 * (x[:, :1] > 0), y).mean()

    rows = data(ROWS)
    torch.testing.assert_close(clipped_sum(by_rows(changed), rows), clipped_sum(by_rows(weighed), rows))


def test_rows_of_an_earlier_batch_are_mixed() -> None:
    """All rows are in every batch here, so that the sizes of an earlier mask fit."""
    private = run_of(network(), data(ROWS), batch_size=ROWS, public_size=ROWS)
    kept = []
    with pytest.raises(NotSound):
        for x, y in private.loader:
            chosen = x[:, 0] > 0
            kept.append((chosen.nonzero().squeeze(1), x[chosen]))
            places, rows = kept[0]
            private.zero_grad()
            functional.cross_entropy(private.model(x.index_add(0, places, rows)), y).backward()
            private.step()
    assert len(kept) > 1


def test_a_model_that_returns_selected_rows_is_refused_outside_of_a_loop() -> None:
    """Nobody follows the loss of a loop of one's own, so that outputs must be known by example."""
    from .runs import stepper

    class Selected(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x[x[:, 0] > 0])

    private = stepper(Selected())
    private.zero_grad()
    with pytest.raises(NotSound, match="mixes examples"):
        private.model(data(4)[0])


def test_a_routed_model_trains() -> None:
    private = run_of(Gated(), data(40))
    train(private)
    assert private.steps == 3
