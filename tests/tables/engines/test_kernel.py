"""The pieces that integers are made of, at their edges."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import duckdb
import nasty
import numpy as np
import pyarrow
import pytest
from reference import digest, magnitude, mix, steps, weight
from scipy.stats import chi2

from dalenius.errors import InvalidArgument, QueryFailed
from dalenius.privacy.quantized import Grid
from dalenius.tables.engines import hashing
from dalenius.tables.engines.engine import WEIGHT, Bounding, Measure
from dalenius.tables.engines.kernel import Part
from dalenius.tables.engines.kernel_cells import Cells, Hasher, cells
from dalenius.tables.engines.kernel_rows import Block, magnitude_bins
from dalenius.tables.engines.kernel_sums import Steps, Sum
from dalenius.tables.engines.kernel_weights import octaves, weights
from dalenius.tables.rows import Range, Rows
from dalenius.tables.sources.opening import open_source

LIMITS = (Fraction(1), Fraction(1, 3), Fraction(22, 7), Fraction(1000), Fraction(10**12), Fraction(1, 10**6))


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_weights_are_exact_where_they_change(limit: Fraction) -> None:
    random = Random(0)
    for norm, power in (("l2", 2), ("l1", 1)):
        edges = [int((WEIGHT * limit / random.randint(1, WEIGHT)) ** power) for _ in range(500)]
        edges += [random.randint(1, 2 ** random.randint(1, 62)) for _ in range(500)]
        sizes = [size for edge in edges for size in (edge - 1, edge, edge + 1) if 1 <= size < 2**63]
        found = weights(np.array(sizes, np.int64), limit, norm).tolist()
        assert found == [weight(limit, size if norm == "l2" else size * size) for size in sizes]


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_a_wrong_guess_of_a_weight_is_mended_or_zero(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, limit = np.arange(1, 5000, dtype=np.int64), Fraction(40, 3)
    exact = weights(sizes, limit, norm)
    for off in (-0.7, 0.7):
        monkeypatch.setattr(np, "minimum", lambda a, b, off=off: np.clip(a + off, 0, b))
        assert (weights(sizes, limit, norm) == exact).all()
    monkeypatch.setattr(np, "minimum", lambda a, b: np.clip(a + 9.0, 0, b))
    assert (weights(sizes, limit, norm) <= exact).all()


def test_octaves() -> None:
    numbers = [n for bit in range(62) for n in (2**bit - 1, 2**bit, 2**bit + 1) if n >= 1]
    assert octaves(np.array(numbers, np.int64)).tolist() == [(n - 1).bit_length() for n in numbers]


@pytest.mark.parametrize("bound", [1, 2**31 - 1, 2**31, 2**61, 2**124], ids=str)
def test_sums_do_not_overflow(bound: int) -> None:
    random = Random(1)
    total, wanted = Sum(2, bound), [0, 0]
    for _ in range(4):
        size = 1 << 16
        amounts = [random.choice([bound, -bound, bound - 1, 3 % (bound + 1)]) for _ in range(8)] * (size // 8)
        amounts = amounts if random.random() < 0.5 else [bound] * size
        places = [0] * (size - 1) + [1]
        kind = object if bound > 2**62 else np.int64
        total.add(np.array(places), np.full(size, WEIGHT, np.int64), np.array(amounts, kind))
        wanted[0] += WEIGHT * sum(amounts[:-1])
        wanted[1] += WEIGHT * amounts[-1]
    assert total.total().tolist() == wanted


@pytest.mark.parametrize("seed", range(40))
def test_steps(seed: int) -> None:
    random = Random(seed)
    chosen = nasty.some_range(random)
    values = [value for value in nasty.VALUES if value is not None and value == value]
    ends = [float(chosen.lower), float(chosen.upper)]
    values += [np.nextafter(end, side) for end in ends for side in (-np.inf, np.inf)] + ends
    found = Steps(chosen).of(np.array(values))
    assert [int(step) for step in found] == [steps(float(value), chosen) for value in values]


def test_a_range_without_a_grid_point_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        Steps(Range(Fraction(1, 3), Fraction(1, 2), Grid(0)))


def test_magnitudes_of_edges() -> None:
    values = [0.0, -0.0, np.inf, -np.inf, 5e-324, 1e308]
    values += [
        sign * 2.0**power for sign, power in product((1, -1), (-130, -129, -128, -1, 0, 1, 126, 127, 128))
    ]
    values += [np.nextafter(value, 0) for value in values if np.isfinite(value) and value]
    assert magnitude_bins(np.array(values)).tolist() == [magnitude(float(value)) for value in values]


def test_the_hash_is_one_to_one_and_the_same_in_sql() -> None:
    numbers = np.arange(0, 2**32, 4099, dtype=np.uint32)
    mixed = hashing.mix(numbers)
    assert len(np.unique(mixed)) == len(numbers)
    assert mixed[:1000].tolist() == [mix(int(number)) for number in numbers[:1000]]
    x = "CAST({} AS BIGINT)"
    one = f"xor({x}, {x} >> 16)".replace("{}", "n")
    two = f"((({one}) * {0x21F0AAAD}) & {0xFFFFFFFF})"
    three = f"((xor({two}, {two} >> 15) * {0x735A2D97}) & {0xFFFFFFFF})"
    sql = f"SELECT xor({three}, {three} >> 15) FROM (SELECT unnest(?) AS n)"
    found = duckdb.execute(sql, [numbers[-1000:].tolist()]).fetchall()
    assert [row[0] for row in found] == mixed[-1000:].tolist()


@pytest.mark.parametrize("kind", nasty.UNITS)
def test_digests_in_sql(kind: str) -> None:
    names = {"BIGINT": "integer", "HUGEINT": "integer", "UBIGINT": "integer", "INTEGER": "integer"}
    names |= {
        "VARCHAR": "text",
        "DOUBLE": "real",
        "DATE": "date",
        "TIMESTAMP": "moment",
        "BOOLEAN": "boolean",
    }
    salt = bytes(range(32))
    sql = hashing.digest(salt, "k", [hashing.spelled("x", names[kind])] * 2)
    for value in nasty.UNITS[kind]:
        found = duckdb.execute(f"SELECT {sql} FROM (SELECT CAST(? AS {kind}) AS x)", [value]).fetchall()
        assert found == [(digest(salt, "k", [value, value]),)], value


def test_where_hashes_tie_fewer_are_kept() -> None:
    group = Cells(np.arange(6, dtype=np.uint32), np.ones(6, np.int64), 3)
    hasher = Hasher(np.zeros(1, np.uint32), np.array([5, 5, 5, 9, 9, 1], np.uint32))
    for most in range(1, 7):
        assert len(group.sampled(hasher, most)[0].words) <= most


def test_samples_of_groups_are_uniform() -> None:
    # False alarms: 1e-6, as salts are drawn afresh and SHA-256 is taken for random.
    units, groups = 20_000, 5
    data = pyarrow.table({"u": np.repeat(np.arange(units), groups), "g": list("abcde") * units})
    engine = open_source(data, "t")
    with engine.load(Rows("SELECT u AS unit_0, g AS key_0 FROM t", 1, 1)) as loaded:
        counts = list(loaded.holders(most=1, salt=np.random.default_rng().bytes(32)).values())
    engine.close()
    assert sum(counts) == units
    expected = units / groups
    assert sum((count - expected) ** 2 for count in counts) / expected < chi2.isf(1e-6, groups - 1)


def test_the_order_of_rows_and_the_number_of_threads_do_not_matter() -> None:
    draw = np.random.default_rng(5)
    size = 300_000
    value = draw.normal(size=size) * 10.0 ** draw.integers(-5, 20, size)
    data = pyarrow.table(
        {"u": draw.integers(0, 3000, size), "g": draw.integers(0, 50, size).astype(str), "v": value}
    )
    rows = Rows("SELECT u AS unit_0, g AS key_0, v AS value_0 FROM t", 1, 1, 1)
    keys = [(str(i),) for i in range(50)]
    measures = [Measure("rows"), Measure("sum", 0, Range(Fraction(-(2**40)), Fraction(2**40), Grid(-20)))]
    found = []
    for threads, room in ((1, 1 << 30), (4, 1 << 30), (2, 1 << 20)):
        shuffled = data.take(pyarrow.array(draw.permutation(size)))
        engine = open_source(shuffled, "t", threads=threads, room=room)
        with engine.load(rows) as loaded:
            totals = loaded.totals(keys, measures, Bounding("l2", Fraction(30), groups=20, salt=bytes(32)))
            found.append((totals.tolist(), loaded.magnitudes(0).tolist()))
        engine.close()
    assert found[0] == found[1] == found[2]


def test_the_same_key_twice_is_refused() -> None:
    engine = open_source(pyarrow.table({"u": [1], "g": [1.0]}), "t")
    with engine.load(Rows("SELECT u AS unit_0, g AS key_0 FROM t", 1, 1)) as loaded:
        for keys in (
            [(1,), (1.0,)],
            [(float("nan"),), (float("nan"),)],
            [(0.0,), (-0.0,)],
            [(None,), (None,)],
        ):
            with pytest.raises(InvalidArgument, match="twice"):
                loaded.totals(keys, [Measure("rows")], Bounding("l2"))
        assert loaded.totals([(True,), (1,)], [Measure("rows")], Bounding("l2")).tolist() == [[0], [WEIGHT]]
    engine.close()


def test_too_many_rows_for_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.tables.engines.kernel.MOST", 3)
    with pytest.raises(QueryFailed):
        Part([Block(np.zeros(3, np.uint32))], bits=0, units=1)


def test_cells_at_the_top_of_a_word() -> None:
    words = np.array([0, 2**32 - 2, 2**32 - 1, 2**32 - 1], np.uint32)
    found = [(group.words.tolist(), group.rows.tolist()) for group in cells(words, 1)]
    assert found == [([0, 2**32 - 2, 2**32 - 1], [1, 1, 2])]
