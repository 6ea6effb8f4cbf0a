"""`Client`: one device that reports again and again, and remembers what it answered.

Theorem. All reports of one value are made from one response that was drawn once (`Memo`); so any number of
them cost a person no more than that response, by post-processing: ε∞ of RAPPOR's permanent response, the ε
of one report of any other randomizer, whose reports are then the same again. What was drawn about a device
before any value, RAPPOR's cohort and dBitFlip's buckets, is remembered too, and is told to the server.

A memo hides values, not their changes: where a response is sent as it is, two different ones say that the
value changed, and when (Ding, Kulkarni and Yekhanin 2017). `what_reports_cost` counts that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dalenius.local.bit_flips import BitFlips
from dalenius.local.memo import Memo
from dalenius.local.randomizer import Randomizer
from dalenius.local.rappor import Rappor
from dalenius.local.reports import Reports, Rows

DEVICE = "device"
"""The key of what was drawn before any value."""


class Client:
    """A device with its memo, in memory or in a file that is secret. See the module."""

    def __init__(self, randomizer: Randomizer, path: str | os.PathLike[str] | None = None) -> None:
        self.randomizer, self._memo = randomizer, Memo(randomizer.format.fingerprint, path)
        self._row: Callable[[Any], Rows] = (
            self._rappor
            if isinstance(randomizer, Rappor)
            else self._bit_flips
            if isinstance(randomizer, BitFlips)
            else self._same_again
        )

    def __repr__(self) -> str:
        return f"<Client of {type(self.randomizer).__name__}, with a secret memo>"

    def report(self, value: Any) -> Reports:
        """One report of the value."""
        return Reports(self.randomizer.format, self._row(value).reshape(1, -1))

    def _rappor(self, value: Any) -> Rows:
        rappor = self.randomizer
        assert isinstance(rappor, Rappor)
        cohort = np.array(self._memo.recall(DEVICE, lambda: rappor.draw_rows(1).tolist()))
        bits = rappor.filters(cohort, rappor.read([value]))
        # By the filter, not the string: what is not told is not kept.
        key = "filter " + np.packbits(bits).tobytes().hex()
        permanent = self._memo.recall(key, lambda: rappor.permanent(bits)[0].tolist())
        return rappor.joined(cohort, rappor.instantaneous(np.array([permanent], np.uint8)))

    def _bit_flips(self, value: Any) -> Rows:
        flips = self.randomizer
        assert isinstance(flips, BitFlips)
        buckets = np.array([self._memo.recall(DEVICE, lambda: flips.draw_buckets(1)[0].tolist())])
        item = flips.read([value])
        # All values of which no bit is sent have the same response.
        key = f"bucket {int(item[0])}" if (buckets == item).any() else "no bucket"
        bits = self._memo.recall(key, lambda: flips.flipped(buckets, item)[0].tolist())
        return flips.joined(buckets, np.array([bits]))

    def _same_again(self, value: Any) -> Rows:
        one = self.randomizer
        read = one.read([value])
        key = "value " + read.tobytes().hex()
        return np.array(
            self._memo.recall(key, lambda: one.randomize(read).reshape(-1).tolist()), one.format.kind
        )
