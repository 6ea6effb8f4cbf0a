"""Numbers read from a batch may be printed and added up. They cannot steer the loop or reach a gradient."""

from __future__ import annotations

import copy
import csv
import io
import logging
import math
import operator
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import Tensor
from torch.nn import functional

from dalenius.errors import NotSound
from dalenius.learn.dataflow.private_numbers import PrivateNumber
from tests.learn.mixing.logged_runs import begun, loop

Use = Callable[[Any], Any]
"""A use of a private number, or of the tensors of a batch."""
NUMBER = r"-?\d+(\.\d+)?(e[-+]\d+)?"
FIXED, ANY, SEVERAL = "%.3f", "%s", "%d: %.2f"


def read() -> list[Any]:
    """Return the losses of a finished run, as its loop has logged them."""
    losses: list[Any] = []
    loop(begun(), lambda loss, x, y: losses.append(loss.item()))
    return losses


@pytest.fixture(scope="module")
def value() -> Any:
    return read()[0]


# Printing.

TEXTS: dict[str, Use] = {
    "str": str,
    "repr": repr,
    "f-string": lambda v: f"{v}",
    "f-string with decimals": lambda v: f"{v:.3f}",
    "f-string with a width": lambda v: f"{v:>12.2e}".strip(),
    "format": lambda v: format(v, ".3f"),
    "format of a template": "{:.4f}".format,
    "percent with decimals": lambda v: FIXED % v,
    "percent": lambda v: ANY % v,
    "percent of several": lambda v: (SEVERAL % (3, v))[3:],
}


@pytest.mark.parametrize("write", TEXTS.values(), ids=TEXTS)
def test_a_number_is_written_as_a_float_is(write: Use, value: Any) -> None:
    assert re.fullmatch(NUMBER, write(value))


def test_a_loop_may_print_log_and_show_its_loss(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    bar, table = io.StringIO(), io.StringIO()
    progress = pytest.importorskip("tqdm").tqdm(total=2, file=bar, mininterval=0)

    def use(loss: Tensor, x: Tensor, y: Tensor) -> None:
        print("loss", loss.item(), f"{loss.item():.3f}")
        logging.getLogger("training").warning("loss %.4f", loss.item())
        csv.writer(table).writerow([1, loss.item()])
        progress.set_postfix(loss=loss.item())
        progress.set_description(f"loss {loss.item():.2f}")
        progress.update()

    loop(begun(), use)
    assert len(re.findall(rf"^loss {NUMBER} {NUMBER}$", capsys.readouterr().out, re.MULTILINE)) == 2
    assert len(caplog.messages) == 2
    assert len(table.getvalue().splitlines()) == 2
    assert re.search(rf"loss={NUMBER}", bar.getvalue())


def test_a_loop_may_print_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    loop(begun(), lambda loss, x, y: print(loss, f"{loss:.3f}", x[:1], loss.detach()))
    assert capsys.readouterr().out.count("tensor(") >= 4


# Arithmetic.

SUMS: dict[str, Use] = {
    "plus": lambda v: 0.0 + v,
    "minus": lambda v: v - 1,
    "times": lambda v: 32 * v,
    "divided": lambda v: v / 3,
    "inverse": lambda v: 1 / v,
    "power": lambda v: v**2,
    "negative": operator.neg,
    "absolute": abs,
    "rounded": lambda v: round(v, 3),
    "itself": lambda v: v + v,
    "numpy's float": lambda v: np.float64(0.5) + v,
    "sum of a list": lambda v: sum([v, v, v]),
    "mean of a list": lambda v: sum([v, v]) / len([v, v]),
    "numpy's mean of a list": lambda v: np.mean([v, v]),
    "moving average": lambda v: 0.9 * 2.5 + 0.1 * v,
    "copy": copy.deepcopy,
}


@pytest.mark.parametrize("add", SUMS.values(), ids=SUMS)
def test_arithmetic_gives_a_private_number(add: Use, value: Any) -> None:
    assert type(value) is PrivateNumber and not isinstance(value, float)
    assert type(add(value)) is PrivateNumber


def test_sums_are_those_of_floats(value: Any) -> None:
    assert re.fullmatch(r"0\.000", f"{abs((3 * value - 1) / 2 - value - value / 2 + 0.5):.3f}")


def test_a_loop_may_count_and_average(capsys: pytest.CaptureFixture[str]) -> None:
    """The running loss and the accuracy of an epoch, as most loops compute them."""
    total, right, seen = 0.0, 0, 0
    private = begun()
    for x, y in private.loader:
        private.zero_grad()
        outputs = private.model(x)
        loss = functional.cross_entropy(outputs, y)
        loss.backward()
        private.step()
        total += loss.item() * x.size(0)
        right += (outputs.argmax(1) == y).sum().item()
        seen += y.shape[0]
    print(f"loss {total / seen:.3f}, accuracy {100 * right / seen:.1f}%")
    assert re.fullmatch(rf"loss {NUMBER}, accuracy {NUMBER}%\n", capsys.readouterr().out)


def test_a_list_of_numbers_may_be_printed_and_added_up() -> None:
    lists: list[Any] = []
    loop(begun(), lambda loss, x, y: lists.append(x.tolist()))
    assert type(lists[0].sum()) is PrivateNumber
    assert re.fullmatch(NUMBER, str(lists[0].mean()))
    assert re.match(rf"\[\[{NUMBER}, ", str(lists[0]))


# Steering.

BRANCHES: dict[str, Use] = {
    "greater": lambda v: v > 1,
    "less": lambda v: v < 1,
    "less from the left": lambda v: operator.lt(1, v),
    "at least": lambda v: v >= 1,
    "at most": lambda v: v <= 1,
    "equal": lambda v: v == 1,
    "unequal": lambda v: v != 1,
    "equal to itself": lambda v: v == v + 0,
    "in a list": lambda v: v in [1.0, 2.0],
    "in a set": lambda v: {v},
    "hash": hash,
    "bool": bool,
    "not": operator.not_,
    "if": lambda v: 1 if v else 2,
    "and": lambda v: v and 1,
    "min": lambda v: min(v, 1.0),
    "max": lambda v: max(1.0, v),
    "sorted": lambda v: sorted([v, v]),
    "any": lambda v: any([v]),
    "less than a sum of them": lambda v: v < v + v,
    "numpy's comparison": lambda v: np.float64(1) < v,
    "float": float,
    "int": int,
    "index": operator.index,
    "complex": complex,
    "range": range,
    "place in a list": lambda v: [1, 2, 3][v],
    "repeated list": lambda v: [0] * v,
    "isnan": math.isnan,
    "isfinite": math.isfinite,
    "exp": math.exp,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "numpy's float of it": np.float64,
    "array of floats": lambda v: np.array([v, v], dtype=np.float64),
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("steer", BRANCHES.values(), ids=BRANCHES)
def test_a_number_cannot_steer(steer: Use, value: Any) -> None:
    """Neither in the loop nor after it: to stop early by the training loss is refused as well."""
    with pytest.raises(NotSound) as caught:
        steer(value)
    assert caught.value.remedy
    assert not re.search(rf"(?<!\w){re.escape(str(value))}", str(caught.value))


def test_whether_a_number_is_none_may_be_asked(value: Any) -> None:
    assert value is not None and isinstance(value, PrivateNumber)
