"""`Explanation`: what a question would cost, and how sure its answer would be, with nothing spent or read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dalenius.display import harmless
from dalenius.ledger import Account
from dalenius.losses.loss import Loss
from dalenius.release.digits import at_least
from dalenius.tables.answering import Request


@dataclass(frozen=True)
class Explanation:
    """The question, its exact cost, and the steps of its plan; and whether its account would accept it."""

    question: str
    loss: Loss
    lines: tuple[tuple[str, str], ...]
    account: Account
    by: str = ""
    purpose: str = ""

    @staticmethod
    def of(request: Request, account: Account) -> Explanation:
        """Of a question that might be asked of an account."""
        plan = request.plan()
        lines = tuple(plan.lines())
        return Explanation(request.asked, plan.loss, lines, account, request.by, request.purpose)

    @property
    def fits(self) -> bool:
        """Whether the account would accept it now."""
        return self.account.accepts(self.loss, by=self.by, purpose=self.purpose)

    @property
    def left(self) -> float:
        """The ε of the most that the account would accept now."""
        return self.account.left_for(by=self.by, purpose=self.purpose).epsilon

    def to_dict(self) -> dict[str, Any]:
        """Plain values and the loss, for JSON; the keys are stable."""
        return {
            "question": self.question,
            "loss": self.loss,
            "lines": self.lines,
            "account": self.account.name,
            "fits": self.fits,
            "left": self.left,
        }

    def __str__(self) -> str:
        fits = f"{self.account.name}, where it {'fits' if self.fits else 'does not fit'}"
        account = ("account", f"{fits}: at most epsilon {at_least(self.left)} does")
        said = [("question", self.question), *self.lines, account]
        return "\n".join(f"{f'{name}:':<12}{harmless(text)}" for name, text in said)
