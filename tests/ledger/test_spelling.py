"""A loss spelled as an expression is read back as the same loss."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dalenius.cli.expression import parse
from dalenius.ledger.spelling import spelled
from dalenius.losses import Approximate, Gaussian, Laplace, Loss, Pure

GOLDEN = sorted((Path(__file__).parents[1] / "losses" / "golden").glob("*.json"))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_kind_is_read_back(path: Path) -> None:
    loss = Loss.from_json(path.read_text())
    assert parse(spelled(loss)) == loss


@pytest.mark.parametrize(
    "text",
    [
        "pure(0.1)",
        "pure(1/3)",
        "approximate(0.5, delta=1e-09)",
        "gaussian(4, relation=replace)",
        "pure(0.1) * 3 + gaussian(2).poisson(0.01) * 2",
        "laplace(3).poisson(0.1).group(2)",
        "mixture([pure(1), laplace(2) * 3], weights=[0.5, 0.5])",
    ],
)
def test_it_is_as_short_as_one_would_write_it(text: str) -> None:
    assert spelled(parse(text)) == text


def test_what_has_no_expression_is_json() -> None:
    carried = Laplace(3).poisson(0.1).under("replace")
    long = Pure(Fraction(10**90 + 1, 10**91 * 3 + 1))
    for loss in (carried, carried * 2, long, Gaussian(2) + long):
        assert spelled(loss).startswith("{")
        assert parse(spelled(loss)) == loss


def test_numbers_are_exact() -> None:
    loss = Approximate(0.1 + 0.2, delta=1e-12)
    assert spelled(loss) == "approximate(0.30000000000000004, delta=1e-12)"
