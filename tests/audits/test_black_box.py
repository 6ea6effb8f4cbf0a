"""Nothing but outputs: the pair and the event are found, errors are outputs, and what is right survives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dalenius.audits import audit
from dalenius.audits.black_box import pairs_of
from dalenius.audits.outcomes import Layout, Raised
from dalenius.errors import InvalidArgument
from dalenius.losses import Pure
from dalenius.mechanisms import Laplace
from dalenius.privacy.quantized import Grid

EXACT = Laplace(scale=1, sensitivity=1, grid=Grid(0), exact=True)
INPUTS = [[0, 0, 1], [1], [0, 0]]


class Buffered:
    """Draws of a mechanism on the sum of the records, some at a time."""

    def __init__(self, mechanism: Laplace) -> None:
        self.mechanism, self.kept = mechanism, dict[float, list[float]]()

    def __call__(self, records: list[int]) -> float:
        kept = self.kept.setdefault(sum(records), [])
        if not kept:
            kept.extend(self.mechanism.sample(sum(records), 5000).tolist())
        return kept.pop()


def test_what_is_right_survives_and_most_of_it_is_found() -> None:
    """False-alarm rate 1e-6; the share is a statement of power."""
    found = audit(Buffered(EXACT), inputs=INPUTS, claim=Pure(1), trials=20_000)
    assert not found.violated and 0.7 < found.epsilon_lower <= 1


def test_half_the_noise_is_found_on_the_only_pair_that_shows_it() -> None:
    """Inputs that do not differ in what is counted show nothing."""
    narrow = Buffered(Laplace(scale=0.5, sensitivity=1, grid=Grid(0), exact=True))
    found = audit(narrow, inputs=[[0, 0], [0], [0, 0, 1]], claim=Pure(1), trials=20_000)
    assert found.violated and found.evidence > 1e6 and found.epsilon_lower > 1.5


def test_an_error_on_one_input_only_is_found() -> None:
    exact = Buffered(EXACT)

    def touchy(records: list[int]) -> float:
        if len(records) == 1:
            raise KeyError(records[0])
        return exact(records)

    found = audit(touchy, inputs=INPUTS, claim=Pure(1), trials=2000)
    assert found.violated


def test_floating_point_noise_on_a_float_is_found() -> None:
    """Mironov (2012): the low bits of the sum tell what noise was added to."""
    draw = np.random.default_rng(5)
    found = audit(
        lambda records: float(sum(records)) + draw.laplace(),
        inputs=[[0, 1], [0]],
        claim=Pure(1),
        trials=10_000,
    )
    assert found.violated


def test_neighbors_are_those_of_the_relation() -> None:
    pairs = pairs_of([[1, 2]], None, Pure(1))
    assert pairs == [([1, 2], [2]), ([1, 2], [1])]
    replaced = pairs_of([(1, 2)], None, Pure(1, relation="replace"))
    assert ((1, 2), (2, 2)) in replaced and ((1, 2), (1, 1)) in replaced
    arrays = pairs_of([np.array([[1.0], [2.0]])], None, Pure(1))
    assert [one[1].tolist() for one in arrays] == [[[2.0]], [[1.0]]]
    assert len(pairs_of(range(1000), lambda one: [one + 1], Pure(1))) == 256


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "what it claims"),
        ({"claim": Pure(1)}, "what it claims"),
        ({"claim": 1.0, "inputs": [[1]]}, "claim is a loss"),
        ({"claim": Pure(1), "inputs": 3}, "not a list of inputs"),
        ({"claim": Pure(1), "inputs": [[1]], "neighbors": 3}, "a function"),
        ({"claim": Pure(1), "inputs": [1]}, "lists of records"),
        ({"claim": Pure(1), "inputs": [[]]}, "no neighbouring inputs"),
        ({"claim": Pure(1, relation="zero_out"), "inputs": [[1]]}, "stands for none"),
        ({"claim": Pure(1), "inputs": [[1]], "confidence": 1}, "for certain"),
    ],
)
def test_what_is_missing_is_said(given: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        audit(len, **given)


def test_outputs_of_all_kinds_become_rows() -> None:
    odd: list[Any] = [1, 2.5, True, float("nan"), float("inf"), 10**400, "text", None, Raised("KeyError")]
    odd += [[1, 2, 3], (1, "a"), {"b": 2, "a": 1}, np.array([[1.0, 2.0]]), np.float32(0.1), []]
    rows = Layout.of(odd).rows(odd)
    assert rows.shape[0] == len(odd) and np.isfinite(rows).all()
    kinds = rows[:, 0]
    assert kinds[0] == kinds[1] and len({kinds[6], kinds[7], kinds[8], kinds[9]}) == 4
    assert (Layout.of(odd).rows(["never seen"])[:, 0] == -1).all()


class Plain:
    """An object of which its plain repr shows only where it lies."""


@pytest.mark.parametrize("made", [Plain, lambda: {"a": object()}, lambda: len, lambda: [Plain(), Plain()]])
def test_where_an_object_lies_is_not_an_output(made: Any) -> None:
    """A function that ignores its input. False-alarm rate 1e-6."""
    found = audit(lambda _: made(), inputs=[[0, 1]], claim=Pure(0.1), trials=2000)
    assert not found.violated and found.epsilon_lower == 0


def test_what_an_object_holds_is_an_output() -> None:
    class Holding:
        def __init__(self, count: int) -> None:
            self.count = count

    assert audit(lambda records: Holding(len(records)), inputs=[[0]], claim=Pure(1), trials=2000).violated


def test_a_function_that_changes_its_input_sees_it_fresh_each_time() -> None:
    """False-alarm rate 1e-6."""
    noise = Buffered(EXACT)

    def in_place(records: list[int]) -> list[int]:
        records[0] += int(noise([0]))
        return records

    found = audit(
        in_place, inputs=[[0], [1]], neighbors=lambda one: [[1 - one[0]]], claim=Pure(1), trials=4000
    )
    assert not found.violated


def test_an_error_after_so_many_calls_does_not_tell_inputs_apart() -> None:
    """As of a budget that is spent. False-alarm rate 1e-6."""
    for limit in (1500, 2500, 5000):
        noise, calls = Buffered(EXACT), 0

        def limited(records: list[int], noise: Buffered = noise, limit: int = limit) -> float:
            nonlocal calls
            calls += 1
            if calls > limit:
                raise PermissionError
            return noise(records)

        assert not audit(limited, inputs=[[0, 1]], claim=Pure(1), trials=4000).violated


def test_what_is_no_function_is_not_called_private() -> None:
    with pytest.raises(InvalidArgument, match="a function"):
        audit(5, inputs=[[1]], claim=Pure(1))  # type: ignore[arg-type]


def test_a_mechanism_is_held_to_its_own_claim() -> None:
    with pytest.raises(InvalidArgument, match="its own claim"):
        audit(EXACT, claim=Pure(9))
