"""Rows and residuals in whole numbers: functions of one row, within the norms that are stated for them."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.learn.tabular.bayes import _parts
from dalenius.learn.tabular.columns import codes, read_columns
from dalenius.learn.tabular.residuals import FAR, FINE, norms, of_margins, on_grid, residuals
from dalenius.learn.tabular.sums import ONE, counts, products, totals

CHANCE = np.random.default_rng(1)


def test_products_are_exact_beyond_what_floats_hold() -> None:
    left, right = (CHANCE.integers(-ONE, ONE + 1, (3000, 4)) for _ in range(2))
    found = products(left.astype(float), right.astype(float))
    assert found.tolist() == (left.astype(object).T @ right.astype(object)).tolist()
    # Sums that would be rounded if they were taken at once.
    large = np.full((9, 1), 2.0**50 - 1)
    assert products(np.ones((9, 1)), large, most=2**50).tolist() == [[9 * (2**50 - 1)]]
    assert totals(right.astype(float)).tolist() == right.sum(axis=0).tolist()


def test_counts_leave_out_codes_below_zero() -> None:
    assert counts(np.array([0, 2, -1, 2]), 3, most=1).tolist() == [1, 0, 2]
    weights = np.array([5.0, 7.0, 100.0, -1.0])
    assert counts(np.array([0, 2, -1, 2]), 3, weights).tolist() == [5, 0, 6]


def test_a_row_is_read_alike_wherever_it_stands() -> None:
    columns = read_columns((-1, 1), 7, l2_norm=1.5, l1_norm=2)
    x = CHANCE.normal(size=(400, 7))
    whole, _ = columns.rows(x)
    order = CHANCE.permutation(400)
    weights = on_grid(CHANCE.normal(size=(3, 7)))
    labels = CHANCE.integers(0, 3, 400)
    told = residuals(whole, labels, weights)
    assert (columns.rows(x[order])[0] == whole[order]).all()
    assert (residuals(whole[order], labels[order], weights) == told[order]).all()
    for i in (0, 17, 399):
        assert (columns.rows(x[i : i + 1])[0] == whole[i]).all()
        assert (residuals(whole[i : i + 1], labels[i : i + 1], weights) == told[i]).all()


def test_rows_are_within_their_norms_and_bounds() -> None:
    columns = read_columns(([0, -1, 5], [10, 1, 9]), 3, l2_norm=1.2, l1_norm=1.5)
    x = np.vstack([CHANCE.normal(0, 20, (500, 3)), [[np.inf, -np.inf, np.inf]], [[0, 0, 7]]])
    whole, present = columns.rows(x)
    squares = [sum(int(k) ** 2 for k in row) for row in whole]
    assert max(squares) <= (columns.l2 * ONE) ** 2
    assert max(sum(abs(int(k)) for k in row) for row in whole) <= columns.l1 * ONE
    assert (whole[-1] == 0).all(), "the least of a column that begins at 0 stays 0, and the middle of others"
    assert present.all() and (whole[:, 0] >= 0).all()


def test_a_row_without_a_number_counts_for_nothing() -> None:
    columns = read_columns((-1, 1), 2)
    whole, present = columns.rows(np.array([[1.0, np.nan], [np.inf, 0.5]]))
    assert whole.tolist() == [[0, 0], [ONE, ONE // 2]] and present.tolist() == [False, True]
    objects = np.array([[1.0, None], ["x", 0.5], [1, True]], dtype=object)
    assert columns.rows(objects)[1].tolist() == [False, False, True]


def test_labels_outside_of_the_classes_are_left_out() -> None:
    assert codes(np.array(["a", "c", "b"]), ["a", "b"]).tolist() == [0, -1, 1]
    assert codes([1.0, None, float("nan"), [3], "1", 2], [1, 2]).tolist() == [0, -1, -1, -1, -1, 1]


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_residuals_are_within_their_norms_and_near_the_truth(classes: int) -> None:
    size = 1 if classes == 2 else classes
    margins = CHANCE.normal(0, 6, (4000, size)) * FINE
    margins[:50] = 100 * FAR * FINE * CHANCE.choice([-1, 1], (50, size))
    labels = CHANCE.integers(0, classes, 4000)
    found = of_margins(np.floor(margins), labels)
    l1, l2 = norms(classes)
    assert max(sum(abs(int(k)) for k in row) for row in found) <= l1
    assert max(sum(int(k) ** 2 for k in row) for row in found) <= l2**2
    full = np.column_stack([np.zeros(4000), margins]) if size == 1 else margins
    powers = np.exp((full - full.max(axis=1, keepdims=True)) / FINE)
    truth = (labels[:, np.newaxis] == np.arange(classes)) - powers / powers.sum(axis=1, keepdims=True)
    assert np.abs(found / ONE - truth[:, -size:]).max() < 2e-3


def test_what_a_leaf_is_told_is_within_the_norms_of_the_theorem() -> None:
    t = np.arange(ONE + 1).astype(np.int64)
    h = 2 * t * (ONE - t) // ONE
    assert (8 * (t + h) <= 9 * ONE).all() and (t * t + h * h <= ONE * ONE).all()
    assert (t * t + h * h <= t * ONE).all() and (t + h <= 3 * t).all()


def test_the_three_parts_of_a_cell_add_up_to_one() -> None:
    v = np.arange(-ONE, ONE + 1).astype(float)[:, np.newaxis]
    first, middle, last = _parts(v).T
    assert (first + middle + last == ONE).all() and min(first.min(), middle.min(), last.min()) >= 0
    assert np.abs((first - last) - v[:, 0]).max() <= 1
    assert np.abs((first + last - middle) / ONE - (v[:, 0] / ONE) ** 2).max() <= 4 / ONE


@pytest.mark.parametrize("columns", [30, 64, 100])
def test_a_row_times_a_matrix_has_the_same_bits_in_any_company(columns):
    from dalenius.learn.tabular.sums import row_by_row

    bits = np.random.default_rng(columns)
    rows, weights = bits.normal(size=(64, columns)), bits.normal(size=(columns, 10))
    alone = np.concatenate([row_by_row(rows[i : i + 1], weights) for i in range(64)])
    for many in (1, 2, 3, 5, 7, 39, 40, 64):
        assert np.array_equal(row_by_row(rows[:many], weights), alone[:many])
    assert np.allclose(alone, rows @ weights)
