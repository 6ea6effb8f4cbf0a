"""Packed sequences give the gradients of each example alone; any other use of packed data is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from sizes import slow
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from dalenius.errors import NotSound
from dalenius.learn.gradients import Watched

from .engine import watched_pass
from .reference import per_example_gradients
from .runs import flat, run_of

TIME, INPUT, WIDTH, CLASSES = 6, 5, 4, 3
KINDS: dict[str, type[nn.RNNBase]] = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM, bidirectional": ("LSTM", {"bidirectional": True}),
    "LSTM, bidirectional, two layers": ("LSTM", {"bidirectional": True, "num_layers": 2}),
    "LSTM, projected": ("LSTM", {"proj_size": 2}),
    "LSTM, projected, bidirectional, two layers": (
        "LSTM",
        {"proj_size": 2, "bidirectional": True, "num_layers": 2},
    ),
    "GRU": ("GRU", {}),
    "GRU, bidirectional, without bias": ("GRU", {"bidirectional": True, "bias": False}),
    "GRU, two layers": ("GRU", {"num_layers": 2}),
    "RNN": ("RNN", {}),
    "RNN of ReLU, bidirectional, two layers": (
        "RNN",
        {"nonlinearity": "relu", "bidirectional": True, "num_layers": 2},
    ),
}
every = pytest.mark.parametrize("name", OPTIONS)
Forward = Callable[["Model", Tensor, Tensor], Tensor]


class Model(nn.Module):
    """A classifier of rows of unequal lengths, by a packed recurrent network.

    Args:
        name: The entry of `OPTIONS`.
        forward: Computes scores of the model, rows (n, time, features) and lengths.
        batch_first: Whether the recurrent network takes the batch first.
    """

    def __init__(self, name: str, forward: Forward, *, batch_first: bool = True) -> None:
        super().__init__()
        kind, options = OPTIONS[name]
        self.inner = KINDS[kind](INPUT, WIDTH, batch_first=batch_first, **options)
        ways, width = 2 if self.inner.bidirectional else 1, options.get("proj_size", WIDTH)
        self.first = batch_first
        self.outputs = nn.Linear(ways * width, CLASSES)
        self.states = nn.Linear(self.inner.num_layers * ways * width, CLASSES)
        self.cells = nn.Linear(self.inner.num_layers * ways * WIDTH, CLASSES)
        self.starts = nn.Linear(INPUT, WIDTH)
        self._scores = forward

    def pack(self, x: Tensor, lengths: Tensor) -> PackedSequence:
        """Return rows, packed."""
        x = x if self.first else x.transpose(0, 1)
        return pack_padded_sequence(x, lengths.cpu(), batch_first=self.first, enforce_sorted=False)

    def run(self, packed: PackedSequence, *start: Any) -> tuple[PackedSequence, Any]:
        """Run the recurrent network, without torch's warning about the speed of projections."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result: tuple[PackedSequence, Any] = self.inner(packed, *start)
        return result

    def padded(self, packed: PackedSequence, total: int | None = TIME) -> tuple[Tensor, Tensor]:
        """Return outputs as (n, time, …), and lengths."""
        out, lengths = pad_packed_sequence(packed, batch_first=self.first, total_length=total)
        return out if self.first else out.transpose(0, 1), lengths

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return scores of classes."""
        return self._scores(self, x, lengths)


def by_everything(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Use padded outputs, their lengths and all last states."""
    packed, last = model.run(model.pack(x, lengths))
    out, again = model.padded(packed)
    scores: Tensor = model.outputs(torch.tanh(out.sum(1)) / again.unsqueeze(1))
    hidden, *cell = last if isinstance(last, tuple) else (last,)
    scores = scores + model.states(hidden.transpose(0, 1).flatten(1))
    return scores + model.cells(cell[0].transpose(0, 1).flatten(1)) if cell else scores


def by_outputs(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Use the mean over the words of each row."""
    out, again = model.padded(model.run(model.pack(x, lengths))[0])
    scores: Tensor = model.outputs(out.sum(1) / again.unsqueeze(1))
    return scores


def rows(n: int, *, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return rows with noise after their ends, lengths and labels, in double precision."""
    bits = torch.Generator().manual_seed(seed)
    x = torch.randn(n, TIME, INPUT, generator=bits, dtype=torch.float64)
    lengths = torch.randint(1, TIME, (n,), generator=bits)
    return x, lengths, torch.randint(CLASSES, (n,), generator=bits)


def entropies(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of each row."""
    return functional.cross_entropy(scores, labels, reduction="none")


def model_of(name: str = "LSTM", forward: Forward = by_outputs, **options: Any) -> Model:
    """Return a model of fixed weights, in double precision."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Model(name, forward, **options).double()


def check(model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    """Compare every example's gradient, of every parameter, with that of the example alone."""
    wanted = per_example_gradients(model, inputs, entropies)
    watched, shares = watched_pass(model, inputs, entropies)
    examples = len(inputs[0])
    for i in range(examples):
        totals = {parameter: torch.zeros_like(parameter) for parameter in shares.parameters}
        weights = torch.zeros(examples, dtype=torch.float64)
        weights[i] = 1
        shares.add(weights, totals)
        for parameter, total in totals.items():
            torch.testing.assert_close(total, wanted[watched.names[parameter]][i], rtol=1e-9, atol=1e-12)
        used = {watched.names[parameter] for parameter in totals}
        assert all(not wanted[name].any() for name in wanted.keys() - used)


# Exactness.


@every
@pytest.mark.parametrize("batch_first", [True, False], ids=["batch first", "time first"])
@pytest.mark.parametrize("n", [1, 3, *slow([2, 7])])
def test_gradients_are_those_of_each_example_alone(name: str, batch_first: bool, n: int) -> None:
    check(model_of(name, by_everything, batch_first=batch_first), rows(n))


@every
def test_outputs_are_those_of_torch(name: str) -> None:
    model, (x, lengths, _) = model_of(name, by_everything), rows(7)
    torch.testing.assert_close(Watched(model)(x, lengths), model(x, lengths))


@pytest.mark.parametrize("n", [2, TIME, 2 * TIME])
def test_a_batch_as_long_as_its_rows_is_not_mistaken_for_them(n: int) -> None:
    check(model_of(), rows(n))


def test_rows_of_equal_lengths() -> None:
    x, _, labels = rows(4)
    check(model_of(forward=by_everything), (x, torch.full((4,), TIME), labels))
    check(model_of(forward=by_everything), (x, torch.ones(4, dtype=torch.int64), labels))


def test_what_is_after_the_end_of_a_row_has_no_influence() -> None:
    x, lengths, labels = rows(5)
    beyond = torch.arange(TIME) >= lengths.unsqueeze(1)
    broken = x.masked_fill(beyond.unsqueeze(2), float("nan"))
    model = model_of(forward=by_everything)
    check(model, (broken, lengths, labels))
    torch.testing.assert_close(Watched(model)(broken, lengths), Watched(model)(x, lengths))


def started(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Begin from states that follow from each row."""
    start = model.starts(x[:, 0]).unsqueeze(0)
    out, _ = model.padded(model.run(model.pack(x, lengths), (start, torch.tanh(start)))[0])
    scores: Tensor = model.outputs(out.sum(1))
    return scores


def test_first_states_of_each_row() -> None:
    check(model_of(forward=started), rows(5))


class LearnedStart(Model):
    """A network that begins from a parameter, copied for each row."""

    def __init__(self) -> None:
        super().__init__("GRU", by_outputs)
        self.start = nn.Parameter(torch.randn(1, 1, WIDTH))

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return scores of classes."""
        out, _ = self.padded(self.run(self.pack(x, lengths), self.start.repeat(1, len(x), 1))[0])
        scores: Tensor = self.outputs(out.sum(1))
        return scores


def test_a_learned_first_state() -> None:
    check(LearnedStart().double(), rows(5))


def one_after_another(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Pass packed outputs on to the same network as they are."""
    packed, _ = model.run(model.pack(functional.pad(x[..., :WIDTH], (0, 1)), lengths))
    out, again = model.padded(packed)
    packed, _ = model.run(model.pack(functional.pad(out, (0, 1)), again))
    scores: Tensor = model.outputs(model.padded(packed)[0].sum(1))
    return scores


def test_rows_that_are_packed_twice() -> None:
    check(model_of(forward=one_after_another), rows(5))


class Stacked(nn.Module):
    """Two networks, of which the second one takes what the first one returns."""

    def __init__(self, frozen: bool) -> None:
        super().__init__()
        self.lower = nn.LSTM(INPUT, WIDTH, bidirectional=True, batch_first=True)
        self.upper = nn.GRU(2 * WIDTH, WIDTH, batch_first=True)
        self.below, self.head = nn.Linear(INPUT, INPUT), nn.Linear(WIDTH, CLASSES)
        self.lower.requires_grad_(not frozen)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return scores of classes."""
        x = torch.tanh(self.below(x))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.upper(self.lower(packed)[0])
        scores: Tensor = self.head(hidden[-1])
        return scores


@pytest.mark.parametrize("frozen", [False, True], ids=["trained", "frozen"])
def test_packed_outputs_are_passed_on(frozen: bool) -> None:
    check(Stacked(frozen).double(), rows(5))


def sorted_by_hand(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Sort rows before packing, and put them back afterwards."""
    lengths, order = lengths.sort(descending=True)
    packed = pack_padded_sequence(x[order], lengths, batch_first=True)
    out, _ = pad_packed_sequence(model.run(packed)[0], batch_first=True, total_length=TIME)
    scores: Tensor = model.outputs(out[order.argsort()].sum(1))
    return scores


def test_rows_that_the_model_sorts_and_puts_back() -> None:
    check(model_of(forward=sorted_by_hand), rows(5))


@pytest.mark.parametrize("read", [Tensor.tolist, Tensor.numpy], ids=["list", "array"])
def test_lengths_as_a_list(read: Callable[[Tensor], Any]) -> None:
    def scores(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, read(lengths), batch_first=True, enforce_sorted=False)
        result: Tensor = model.outputs(model.padded(model.run(packed)[0])[0].sum(1))
        return result

    check(model_of(forward=scores), rows(5))


def test_lengths_that_are_the_same_for_all_rows() -> None:
    def scores(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
        return by_everything(model, x, torch.full((x.shape[0],), TIME - 1))

    check(model_of(forward=scores), rows(5))


def test_dropout_between_layers_is_accepted() -> None:
    model = model_of("GRU, two layers", by_everything)
    model.inner.dropout = 0.5
    private, before = run_of(model, rows(40)), flat(model)
    for x, lengths, labels in private.loader:
        private.zero_grad()
        functional.cross_entropy(private.model(x, lengths), labels).backward()
        private.step()
    assert private.steps == 3 and not torch.equal(before, flat(model))


def test_rows_that_the_loop_packs() -> None:
    model = nn.LSTM(INPUT, CLASSES, batch_first=True).double()
    private = run_of(model, rows(40))
    for x, lengths, labels in private.loader:
        private.zero_grad()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        functional.cross_entropy(private.model(packed)[1][0][-1], labels).backward()
        private.step()
    assert private.steps == 3


def test_a_teacher_without_gradients() -> None:
    teacher, model = model_of(forward=by_everything), model_of(forward=by_outputs)
    private = run_of(model, rows(40))
    for x, lengths, _ in private.loader:
        private.zero_grad()
        with torch.no_grad():
            wanted = teacher(x, lengths)
        functional.mse_loss(private.model(x, lengths), wanted).backward()
        private.step()
    assert private.steps == 3


def test_an_empty_batch_adds_nothing() -> None:
    _, shares = watched_pass(model_of(forward=by_everything), rows(0), entropies)
    assert not shares.examples


# Lengths of a batch.


def shortest(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Take the mean over all times that pad_packed_sequence returns."""
    out, _ = model.padded(model.run(model.pack(x, lengths))[0], None)
    scores: Tensor = model.outputs(out.mean(1))
    return scores


def test_rows_are_padded_to_the_length_they_had() -> None:
    """Torch pads to the longest row of the batch, which one row could change for all."""
    model, (x, lengths, _) = model_of(forward=shortest), rows(5)
    assert lengths.max() < TIME
    public = model_of(
        forward=lambda *args: model.outputs(model.padded(model.run(model.pack(*args[1:]))[0])[0].mean(1))
    )
    torch.testing.assert_close(Watched(model)(x, lengths), public(x, lengths))


def test_rows_are_padded_with_the_value_and_to_the_length_that_are_asked_for() -> None:
    def scores(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
        packed = model.run(model.pack(x, lengths))[0]
        out, _ = pad_packed_sequence(packed, batch_first=True, padding_value=-3.0, total_length=TIME + 2)
        result: Tensor = model.outputs(out.sum(1))
        return result

    check(model_of(forward=scores), rows(5))


def test_lengths_that_are_not_possible_are_taken_as_the_nearest() -> None:
    """Torch raises an error, which would depend on data."""
    model, (x, *_) = model_of(forward=by_everything), rows(4)
    given, meant = torch.tensor([0, -2, TIME + 3, 2]), torch.tensor([1, 1, TIME, 2])
    torch.testing.assert_close(Watched(model)(x, given), model(x, meant))


# Refusals.


def refused(forward: Forward, match: str = ".") -> NotSound:
    """Return the refusal of a run of a model."""
    x, lengths, labels = rows(40)
    private = run_of(model_of(forward=forward), (x, lengths, labels))
    before = flat(private.model)
    with pytest.raises(NotSound, match=match) as caught:
        for x, lengths, labels in private.loader:
            private.zero_grad()
            functional.cross_entropy(private.model(x, lengths), labels).backward()
            private.step()
    assert torch.equal(before, flat(private.model)) and private.steps == 0
    assert caught.value.remedy
    return caught.value


def mean_of_inputs(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    return by_outputs(model, x - model.pack(x, lengths).data.mean(0), lengths)


def mean_of_outputs(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.outputs(model.padded(packed)[0].sum(1) - packed.data.mean(0))


def scored_packed(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.padded(packed._replace(data=model.outputs(packed.data)))[0].sum(1)


def rescaled_packed(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.pack(x, lengths)
    return model.outputs(
        model.padded(model.run(packed._replace(data=packed.data / packed.data.norm()))[0])[0].sum(1)
    )


def rescaled_in_place(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    with torch.no_grad():
        packed.data.div_(packed.data.norm())
    return model.outputs(model.padded(packed)[0].sum(1))


def other_sizes(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed, other = model.pack(x, lengths), model.pack(x, lengths.flip(0))
    return model.outputs(model.padded(packed._replace(batch_sizes=other.batch_sizes))[0][..., :WIDTH].sum(1))


def other_order(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed, other = model.run(model.pack(x, lengths))[0], model.pack(x, lengths.clone())
    return model.outputs(model.padded(packed._replace(unsorted_indices=other.unsorted_indices))[0].sum(1))


def never_put_back(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.outputs(model.padded(packed._replace(unsorted_indices=None))[0].sum(1))


def sorted_already(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = pack_padded_sequence(x, lengths, batch_first=True)
    return model.outputs(model.padded(model.run(packed)[0])[0].sum(1))


def sorted_by_another(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    _, order = lengths.flip(0).sort(descending=True)
    packed = pack_padded_sequence(x[order], lengths.sort(descending=True).values, batch_first=True)
    return model.outputs(model.padded(model.run(packed)[0])[0][order.argsort()].sum(1))


def divided_by_words(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.outputs(model.padded(packed)[0].sum(1)) / packed.data.shape[0]


def weighted_by_sizes(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.outputs((model.padded(packed)[0] * packed.batch_sizes.view(1, -1, 1)).sum(1))


def longest(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.outputs(model.padded(packed)[0][:, : int(packed.batch_sizes.count_nonzero())].mean(1))


def lengths_listed_and_counted(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    return by_outputs(model, x / torch.as_tensor(lengths.tolist()).max(), lengths)


def cut_to_the_shortest(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    """Use the lengths of rows that were cut by the lengths of others."""
    packed = model.pack(x[:, : lengths.min()], lengths)
    _, again = pad_packed_sequence(packed, batch_first=True)
    return by_outputs(model, x * again.view(-1, 1, 1), lengths)


def padded_with_a_private_value(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.run(model.pack(x, lengths))[0]
    return model.outputs(pad_packed_sequence(packed, batch_first=True, padding_value=x.shape[0])[0].sum(1))


def positions(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    packed = model.pack(x, lengths)
    return by_outputs(model, x * packed.unsorted_indices.view(-1, 1, 1), lengths)


def lengths_of_others(model: Model, x: Tensor, lengths: Tensor) -> Tensor:
    return by_outputs(model, x, lengths.flip(0))


REFUSED = (
    mean_of_inputs,
    mean_of_outputs,
    scored_packed,
    rescaled_packed,
    rescaled_in_place,
    other_sizes,
    other_order,
    never_put_back,
    sorted_already,
    sorted_by_another,
    divided_by_words,
    weighted_by_sizes,
    longest,
    padded_with_a_private_value,
    cut_to_the_shortest,
    lengths_listed_and_counted,
    positions,
    lengths_of_others,
)


@pytest.mark.parametrize("forward", REFUSED, ids=lambda forward: forward.__name__)
def test_packed_data_used_in_another_way_are_refused(forward: Forward) -> None:
    assert "test_packed_sequences.py" in str(refused(forward))


def test_a_batch_that_is_taken_as_sorted_is_refused_with_what_to_pass() -> None:
    assert "enforce_sorted=False" in refused(sorted_already, "pack_padded_sequence").remedy
