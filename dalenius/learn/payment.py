"""`Payment`: what a private run costs, how much of that has been charged, and to which account.

A run is paid for in stretches, each charged before a batch of it is drawn. With pay="run" there is one
stretch: the whole run is charged at once, which is the tightest account of it. With pay="epoch" or a number
of steps every stretch is a charge of its own, so that a run that stops early has paid for the stretches it
began and for nothing else. The account is a privacy filter: whether to go on may be decided in view of the
weights so far, which have been paid for. A filter adds up charges less tightly than one charge for the run.

A stretch is charged as the sampler's steps by themselves (`Sampling.stretch`). Where they have no loss of
their own, because batches or noise of different steps depend on each other, only pay="run" is sound.
"""

from __future__ import annotations

from functools import partial

from dalenius.errors import InvalidArgument, RelationMismatch
from dalenius.learn.sampling import Sampling
from dalenius.learn.several import Processes
from dalenius.learn.stretches import Length, Stretches, read_length
from dalenius.learn.whose import check_rows
from dalenius.ledger.account import Account
from dalenius.ledger.reservation import line_of
from dalenius.losses.loss import Loss
from dalenius.losses.pure import Pure
from dalenius.release.receipt import Entry


def check_account(account: Account | None) -> None:
    """Refuse something to charge that is not an account."""
    if account is not None and not isinstance(account, Account):
        raise InvalidArgument(
            "account must be an account of a ledger.",
            remedy="Pass account=ledger.account(…), or leave it out: costs are then only added up.",
        )


class Payment:
    """The charges of one run.

    Args:
        sampling: How batches are drawn, and how many steps there are.
        step_loss: What a step costs a unit that takes part in it.
        account: The account to charge; None where losses are only added up.
        by: Who charges the account.
        purpose: What for.
        pay: "run", "epoch" or a number of steps: how much is charged at once.
        processes: The processes of the run, of which the first charges its account.
    """

    def __init__(
        self,
        sampling: Sampling,
        step_loss: Loss,
        *,
        account: Account | None,
        by: str,
        purpose: str,
        pay: Length,
        processes: Processes,
    ) -> None:
        self.stretches = Stretches(sampling, read_length(pay))
        self.step_loss, self.account = step_loss, account
        self.paid = 0
        """The number of steps that have been charged, from the first on."""
        self.entry: Entry | None = None
        """The account's line of the last stretch that was charged."""
        self._by, self._purpose, self._processes = by, purpose, processes
        self._next(0)

    @property
    def sampling(self) -> Sampling:
        """The sampling that is paid for."""
        return self.stretches.sampling

    @property
    def begun(self) -> bool:
        """Whether anything has been charged."""
        return self.paid > 0

    def cost(self, again: int = 0) -> Loss:
        """Return the loss of all steps that are planned, and of `again` steps that were made again."""
        planned = self.sampling.loss(self.step_loss)
        return planned + self._again * again if again else planned

    def spent(self, again: int = 0) -> Loss:
        """Return the loss of all that has been charged, with `again` steps that were made again."""
        if self.paid == self.sampling.steps:
            return self.cost(again)
        if not self.paid:
            return self._again * again if again else Pure(0, relation=self.sampling.relation)
        paid = self.sampling.stretch(self.step_loss, 0, self.paid)
        return paid + self._again * again if again else paid

    def check(self) -> None:
        """Refuse a run whose first stretch the account would refuse. Nothing is charged."""
        self._processes.first("the account", self._check_here)

    def pay_for(self, step: int) -> bool:
        """Charge the stretch that a step lies in, unless it was charged; return whether it is charged now.

        Raises:
            BudgetExceeded: The account refuses the charge.
        """
        if step < self.paid:
            return False
        self.entry = self._charge(self._next(step))
        self.paid = self.stretches.around(step)[1]
        return True

    def go_on(self, paid: int, entry: Entry | None) -> None:
        """Take over what a saved run has paid.

        Args:
            paid: The number of steps that were charged.
            entry: The account's line of the last stretch.
        """
        self.paid, self.entry = paid, entry

    def catch_up(self, paid: int, number: int) -> None:
        """Take over what was paid after a run was saved.

        Args:
            paid: The number of steps that were charged.
            number: The number of the account's line of the last stretch; 0 where there is no account.
        """
        self.paid = max(self.paid, paid)
        if number > (0 if self.entry is None else self.entry.number):
            self.entry = self._processes.first("a line of the account", partial(self._line, number))

    def _line(self, number: int) -> Entry | None:
        if self.account is None:
            return self.entry
        with self.account.ledger.store.read() as snapshot:
            line = next(iter(snapshot.entries(after=number - 1, account=self.account.name)), None)
        return self.entry if line is None else line_of(self.account, line)

    def pay_again(self) -> None:
        """Charge one more attempt at a step."""
        self._charge(self._again)

    def payer(self) -> tuple[str, str] | None:
        """Return the account and the line that opened it, by which processes compare accounts."""
        if self.account is None:
            return None
        with self.account.ledger.store.read() as snapshot:
            opened = next(iter(snapshot.entries(account=self.account.name)))
        return self.account.name, opened.hash

    def check_payers(self) -> None:
        """Refuse processes of one run that were given different accounts."""
        first, *others = self._processes.each("accounts", self.payer)
        if any(other is not None and other != first for other in others):
            raise InvalidArgument(
                "The account of the first process is charged, and another process has another account.",
                remedy="Pass one account in the process of rank 0, or the same in all, of a ledger that all "
                "machines share.",
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a receipt says of stretches, where there is more than one."""
        if self.stretches.length == "run":
            return ()
        return (f"charged by {self.stretches}, before each: {self.paid} of {self.sampling.steps} steps",)

    @property
    def _again(self) -> Loss:
        return self.sampling.again(self.step_loss)

    def _next(self, step: int) -> Loss:
        """Return the loss of the stretch that a step lies in."""
        return self.sampling.stretch(self.step_loss, *self.stretches.around(step))

    def _check_here(self) -> None:
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
        account.check(self._next(0), by=self._by, purpose=self._purpose)

    def _charge(self, loss: Loss) -> Entry | None:
        return self._processes.first("a charge", partial(self._charge_here, loss))

    def _charge_here(self, loss: Loss) -> Entry | None:
        if self.account is None:
            return None
        with self.account.reserve(loss, by=self._by, purpose=self._purpose) as reservation:
            line = reservation.line()
            reservation.end("commit")
        return line
