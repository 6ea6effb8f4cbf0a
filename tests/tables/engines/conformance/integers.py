"""All that `Loaded` gives, against the reference, bit for bit."""

from __future__ import annotations

from random import Random
from typing import Any

import nasty
from reference import ReferenceLoaded, name

from dalenius.tables.engines.engine import Loaded
from dalenius.tables.rows import Key


def counted(holders: dict[Key, int]) -> dict[object, int]:
    return {tuple(name(part) for part in key): count for key, count in holders.items()}


def check(
    random: Random,
    table: nasty.Table,
    loaded: Loaded,
    truth: ReferenceLoaded,
    widest: int = 2**30,
    *,
    few: bool = False,
) -> None:
    """Random keys, measures and bounds; squares of so many steps at most; with `few` each method once."""

    def some(several: list[Any]) -> list[Any]:
        return [random.choice(several)] if few else several

    keys = [key for key in table.keys if random.random() < 0.8] or [(None,) * table.rows.keys]
    measures, bounding = nasty.measures(random, table, widest), nasty.bounding(random)
    salt = random.randbytes(32)
    for most in some([1, 2, 100]):
        found = counted(dict(loaded.holders(most=most, salt=salt)))
        assert found == counted(dict(truth.holders(most=most, salt=salt)))
    for norm, presence in some([(norm, presence) for norm in ("l2", "l1") for presence in (False, True)]):
        shapes = loaded.shapes(keys, norm=norm, presence=presence)
        assert (shapes == truth.shapes(keys, norm=norm, presence=presence)).all()
    for column in range(table.rows.values):
        assert (loaded.magnitudes(column) == truth.magnitudes(column)).all()
    for asked in [keys] if few else [keys, keys[:1], []]:
        totals, wanted = (one.totals(asked, measures, bounding) for one in (loaded, truth))
        assert totals.shape == wanted.shape
        assert (totals == wanted).all(), (measures, totals, wanted)
