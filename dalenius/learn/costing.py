"""What a private run costs: its loss, the noise that keeps a promise, the charge, and the receipt."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import torch

from dalenius.errors import InvalidArgument, RelationMismatch
from dalenius.learn.adding import Sum
from dalenius.learn.attempts import Attempts
from dalenius.learn.averaging import Average
from dalenius.learn.clipping import Clipping
from dalenius.learn.closures import for_each
from dalenius.learn.gradients import Watched
from dalenius.learn.numerics import grid_bits
from dalenius.learn.optimizer import step_loss
from dalenius.learn.sampling import Sampling
from dalenius.learn.several import Processes
from dalenius.learn.whose import check_rows
from dalenius.ledger.account import Account
from dalenius.losses.calibration import calibrate
from dalenius.losses.loss import Loss
from dalenius.noise.stream import StreamKey
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.release.receipt import Entry, Receipt


class Costed:
    """A run whose sampling carries the loss."""

    model: Watched
    processes: Processes
    optimizer: torch.optim.Optimizer
    sampling: Sampling
    step_loss: Loss
    noise_multiplier: Fraction
    delta: Fraction | None
    account: Account | None
    average: Average | None
    rehearses: bool
    _sum: Sum
    _key: StreamKey
    _attempts: Attempts
    _entry: Entry | None
    _evaluations: int
    _by: str
    _purpose: str

    @property
    def loss(self) -> Loss:
        """Of the whole run, which is charged before its first step, and of steps that were charged again."""
        planned, more = self.sampling.loss(self.step_loss), self._attempts.more
        return planned + self.sampling.again(self.step_loss) * more if more else planned

    @property
    def spent(self) -> Loss:
        """The same: a run is charged as a whole."""
        return self.loss

    @property
    def receipt(self) -> Receipt:
        """What is said of all that leaves: by weights that are published, or anything computed from them."""
        plan, more = self._sum.plan, self._attempts.more
        again = (f"steps made again with fresh noise, each charged by itself: {more}",) if more else ()
        return Receipt(
            loss=self.loss,
            mechanism=f"DP training, noise multiplier {float(self.noise_multiplier):g}",
            numerics=str(plan.numerics),
            unit=None if self.account is None else self.account.unit_for(self.loss),
            entry=self._entry,
            bounds=(plan.clipping.how, *self.sampling.notes, *again),
            postprocessing=(
                type(self.optimizer).__name__,
                *(() if self.average is None else (self.average.how,)),
            ),
            tainted=self._key.tainted,
            delta=self.delta,
            warnings=() if self.rehearses else ("the loop was not rehearsed",),
        )

    def _noise(self, clipping: Clipping, noise_multiplier: Number | None, epsilon: Number | None) -> Fraction:
        if (noise_multiplier is None) == (epsilon is None):
            raise InvalidArgument(
                "A run has a target epsilon or a noise multiplier.",
                remedy="Pass one of epsilon and noise_multiplier.",
            )
        if noise_multiplier is not None:
            return numbers.positive(noise_multiplier, "noise_multiplier")

        if clipping.norm == "l2" and not self.delta:
            raise InvalidArgument(
                "Gaussian noise keeps no promise without a delta.",
                remedy="Pass delta, far below one over the number of people, or clip=dp.learn.Absolute(…).",
            )
        numbers_in_all = sum(one.numel() for one in self.model.names)

        def family(multiplier: Fraction) -> Loss:
            bits = grid_bits(numbers_in_all, multiplier, clipping.norm)
            return self.sampling.loss(step_loss(clipping.norm, multiplier, bits))

        found = calibrate(family, epsilon=epsilon or 0, delta=self.delta or 0, name="noise_multiplier")
        return for_each(found, self._evaluations)

    def _check_account(self) -> None:
        account = self.account
        if account is None:
            return
        check_rows(account.unit, by_unit=self.sampling.rows_per_unit is not None)
        if self.sampling.relation == "zero_out" and account.unit.relation != "zero_out":
            raise RelationMismatch(
                f"The number of rows is taken as public; it is private to an account for "
                f"{account.unit.relation}.",
                remedy="Pass public_size, a number of rows that may be published.",
            )
        account.check(self.loss, by=self._by, purpose=self._purpose)

    def _charge(self, loss: Loss) -> Entry | None:
        """Once, to the account of the first process."""
        return self.processes.first("a charge", partial(self._charge_here, loss))

    def _charge_here(self, loss: Loss) -> Entry | None:
        if self.account is None:
            return None
        with self.account.reserve(loss, by=self._by, purpose=self._purpose) as reservation:
            line = reservation.line()
            reservation.end("commit")
        return line
