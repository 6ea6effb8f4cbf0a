"""`Explanation`: what a question would cost, and how sure its answer would be, with nothing spent or read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dalenius.display import facts, harmless
from dalenius.errors import Argument, Message, spelled
from dalenius.ledger import Account
from dalenius.ledger.texts import shortened
from dalenius.losses.loss import Loss
from dalenius.tables.answering import Request
from dalenius.tables.fitting import LIST, USED_UP, Fitting, fitting

SHOWN = 100
"""Letters of a question in a repr."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """The question, its exact cost, and the steps of its plan; and whether its account would accept it."""

    question: str
    loss: Loss
    lines: tuple[tuple[str, str], ...]
    account: Account
    request: Request

    @staticmethod
    def of(request: Request, account: Account) -> Explanation:
        """Of a question that might be asked of an account."""
        plan = request.plan()
        assumed = [
            ("profile" if text.startswith("groups by ") else "assumed", text) for text in request.assumed
        ]
        return Explanation(request.asked, plan.loss, (*plan.lines(), *assumed), account, request)

    @property
    def fits(self) -> bool:
        """Whether the account would accept it now."""
        return self.account.accepts(self.loss, by=self.request.by, purpose=self.request.purpose)

    @property
    def left(self) -> float:
        """The largest ε, to three digits, at which the account would accept the question now; 0 for none."""
        found = self._fitting()
        return 0.0 if found is None or found.listed else float(found.epsilon)

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
        return self.spelled(lambda argument: argument.python)

    def spelled(self, spell: Callable[[Argument], str]) -> str:
        """Return it as text, with the arguments that it names as `spell` writes them."""
        return "\n".join(f"{f'{name}:':<12}{harmless(spelled(text, spell))}" for name, text in self.stated())

    def __repr__(self) -> str:
        cost = next((text for name, text in self.lines if name == "cost"), "")
        return f"<Explanation of {harmless(shortened(self.question, SHOWN))}: {harmless(cost)}>"

    def _repr_html_(self) -> str:
        return facts("What it would cost", self.stated())

    def stated(self) -> list[tuple[str, str]]:
        """Return everything it says, each with its name."""
        return [("question", self.question), *self.lines, ("account", self._standing())]

    def _fitting(self) -> Fitting | None:
        """What fits: by the search of refusals, and not less than is asked where that does."""
        found = fitting(self.request, self.account)
        if self.fits and (found is None or found.listed or found.epsilon < self.request.epsilon):
            return Fitting(self.request.epsilon, self.loss)
        return found

    def _standing(self) -> str:
        """Whether it fits, and what would; as the refusal says it."""
        found = self._fitting()
        stands = f"{self.account.name}, where it {'fits' if self.fits else 'does not fit'}"
        if found is None:
            return f"{stands} at any epsilon"
        if found.listed:
            return Message(f"{stands}: {USED_UP}. ", LIST, f": then epsilon {found} fits")
        return f"{stands}: at most epsilon {found} does"
