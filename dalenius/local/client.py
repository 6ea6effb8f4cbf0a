"""`Client`: one device that reports again and again, and remembers what it answered.

Theorem. All reports of one value are made from one response that was drawn once (`Memo`); so any number of
them cost a person no more than that response, by post-processing: ε∞ of RAPPOR's permanent response, the ε
of one report of any other randomizer, whose reports are then the same again. What was drawn about a device
before any value, RAPPOR's cohort and dBitFlip's buckets, is remembered too, and is told to the server.

Responses are remembered by what is told of a value, its key: its Bloom filter, its bucket or that it has
none, the number of an item, a number or vector after clipping. Values with one key have one response.

A memo hides values, not which reports are of the same one: a response that comes again says so. With values
that change, that pattern tells of them whatever ε is: A, B, A again and A, B, C are told apart.
`what_reports_cost` has the theorem, and refuses where the pattern may not be known.

Responses follow from a secret of the device (`memo`): a file that is restored from a backup gives the same
responses again, and a device with a `secret` needs no file. A device that lost its secret begins anew, and
costs as much again.

Use a file of its own for each survey, and name the survey: with one response for two surveys, whoever sees
both knows that the values are the same.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local.bit_flips import BitFlips
from dalenius.local.memo import Memo
from dalenius.local.randomizer import Randomizer
from dalenius.local.rappor import Rappor
from dalenius.local.reports import Reports, Rows

DEVICE = "device"
"""The key of what was drawn before any value."""


class Client:
    """A device that reports again and again, with one response for each value. See the module.

    Args:
        randomizer: Makes the reports.
        path: A secret file to keep responses in, which no other client has; None keeps them in memory.
        survey: The name of the survey. Different surveys have independent responses.
        secret: The device's own secret of 32 random bytes or more, instead of a file. Responses follow from
            it, so that nothing else is kept; the same secret serves all surveys of the device.
    """

    def __init__(
        self,
        randomizer: Randomizer,
        path: str | os.PathLike[str] | None = None,
        *,
        survey: str = "",
        secret: bytes | None = None,
    ) -> None:
        if not isinstance(randomizer, Randomizer):
            raise InvalidArgument("A client is of a randomizer.", remedy="Pass one, as Client(oracle).")
        self.randomizer = randomizer
        self._memo = Memo(randomizer.format.fingerprint, path, survey=survey, secret=secret)

    def __repr__(self) -> str:
        return f"<Client of {type(self.randomizer).__name__}, with a secret memo>"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the memo's file up, so that it can be opened again; no report is made from then on."""
        self._memo.close()

    def report(self, value: Any) -> Reports:
        """One report of the value."""
        read = self.randomizer.read_one(value)
        return Reports(self.randomizer.format, self._row(read).reshape(1, -1), noise.tainted())

    def _row(self, read: Any) -> Rows:
        if isinstance(self.randomizer, Rappor):
            return self._rappor(self.randomizer, read)
        if isinstance(self.randomizer, BitFlips):
            return self._bit_flips(self.randomizer, read)
        return self._same_again(self.randomizer, read)

    def _rappor(self, rappor: Rappor, read: Any) -> Rows:
        cohort = np.array(
            self._memo.recall(DEVICE, lambda: rappor.draw_rows(1).tolist(), size=1, below=rappor.cohorts)
        )
        bits = rappor.filters(cohort, read)
        # By the filter, not the string: what is not told is not kept.
        key = "filter " + np.packbits(bits).tobytes().hex()
        permanent = self._memo.recall(
            key, lambda: rappor.permanent(bits)[0].tolist(), size=rappor.width, below=2
        )
        return rappor.joined(cohort, rappor.instantaneous(np.array([permanent], np.uint8)))

    def _bit_flips(self, flips: BitFlips, read: Any) -> Rows:
        many = flips.chosen
        drawn = self._memo.recall(
            DEVICE, lambda: flips.draw_buckets(1)[0].tolist(), size=many, below=flips.domain
        )
        buckets = np.array([drawn])
        # All values of which no bit is sent have the same response.
        key = f"bucket {int(read[0])}" if (buckets == read).any() else "no bucket"
        bits = self._memo.recall(key, lambda: flips.flipped(buckets, read)[0].tolist(), size=many, below=2)
        return flips.joined(buckets, np.array([bits]))

    def _same_again(self, one: Randomizer, read: Any) -> Rows:
        form = one.format
        response = self._memo.recall(
            "value " + one.key(read).hex(),
            lambda: one.randomize(read).reshape(-1).tolist(),
            size=form.fields,
            below=form.below,
        )
        return np.array(response, form.kind)
