"""Heavy hitters: frequent strings are listed, and of those that nobody has hardly any."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dalenius.errors import InvalidArgument
from dalenius.local import FragmentPuzzle, PrefixExtending
from dalenius.local.grouped import LEVEL, Ask, GroupedSketch
from dalenius.local.puzzle import _mark, _piece

WORDS = {"one": 0.3, "two": 0.25, "ones": 0.15}
KINDS = [PrefixExtending, FragmentPuzzle]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_frequent_strings_are_listed(kind: type[GroupedSketch]) -> None:
    """Prefixes of one another too; shares within six standard deviations, bars of hashes alone are five."""
    n = 100_000
    rare = [f"{i:04d}" for i in range(int(n * (1 - sum(WORDS.values()))))]
    values = [word for word, share in WORDS.items() for _ in range(int(n * share))] + rare
    hitters = kind.calibrate(length=4, epsilon=4, rows=1024, columns=64, kept=64)
    found = hitters.estimator().add(hitters.encode(values)).estimate()
    assert list(found["item"]) == ["one", "two", "ones"]
    off = np.abs(found["share"] - list(WORDS.values()))
    assert np.all(off < 6 * np.sqrt(found["variance"]))
    assert any("probability at most 0.05" in bound for bound in found.receipt.bounds)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_nothing_is_listed_where_nothing_is_frequent(kind: type[GroupedSketch]) -> None:
    """A share is listed from five standard deviations on, as bars allow for hashes too: two, below 1e-6."""
    hitters = kind.calibrate(length=2, epsilon=1, rows=256, columns=64)
    found = hitters.estimator().add(hitters.encode([f"{i}" for i in range(5000)])).estimate()
    assert len(found) <= 1


def test_strings_that_nobody_has_survive_as_seldom_as_is_said() -> None:
    """Of 100 runs with 50 absent candidates each; one-sided at 1e-6."""
    hitters = PrefixExtending.calibrate(length=1, epsilon=2, rows=256, columns=64)
    absent = [bytes([byte]) for byte in range(50)]
    wrong = 0
    for _ in range(100):
        tally = hitters.tally(hitters.encode(["a"] * 1000 + ["b"] * 1000).rows).reshape(1, -1)
        wrong += bool(Ask(hitters, tally).surviving(0, absent))
        assert Ask(hitters, tally).surviving(0, [*absent, b"a", b"b"])[:2] in ([b"a", b"b"], [b"b", b"a"])
    assert binom.sf(wrong - 1, 100, LEVEL) > 1e-6


def test_each_person_reports_once() -> None:
    """One number, whose group is drawn whatever the string: at six standard errors."""
    hitters = PrefixExtending.calibrate(length=4, epsilon=1, rows=16, columns=16)
    rows = hitters.encode(["word"] * 8000).rows[:, 0]
    groups = np.bincount(rows // hitters.sketch.shape[0], minlength=4)
    assert rows.shape == (8000,) and np.all(np.abs(groups - 2000) < 6 * (8000 * 3 / 16) ** 0.5)
    assert hitters.loss == hitters.sketch.loss


def test_parts() -> None:
    assert PrefixExtending.calibrate(length=3, epsilon=1).parts(b"ab\0") == [b"a", b"ab", b"ab\0"]
    puzzle, mark = FragmentPuzzle.calibrate(length=2, epsilon=1), _mark(b"ab")
    assert puzzle.parts(b"ab") == [_piece(0, 97, mark), _piece(1, 98, mark), b"ab"]
    assert puzzle.filled(b"abc") == b"ab" and puzzle.filled(b"") == b"\0\0"
    with pytest.raises(InvalidArgument, match="2\\^27"):
        PrefixExtending.calibrate(length=64, epsilon=1, rows=2**14, columns=2**10)
