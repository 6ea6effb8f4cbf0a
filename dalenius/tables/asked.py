"""`Asked`: a question put to a table at a price, read and planned once; then explained, checked or answered.

asked = table.ask("SELECT ward, COUNT(*) FROM visits GROUP BY ward", epsilon=0.5)
asked.explanation        # what it would cost; spends nothing, reads nothing
asked.fits(0.8)          # whether the account would accept the same question at another price
asked.run()              # the answer, charged
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from dalenius.display import harmless
from dalenius.ledger.texts import shortened
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.tables.explanation import SHOWN, Explanation
from dalenius.tables.unopened import Unopened

if TYPE_CHECKING:
    from dalenius.ledger import Account
    from dalenius.release import Release
    from dalenius.tables.answering import Request


class Asked:
    """A question at a price. Made by `Table.ask`, which reads the question and plans it."""

    def __init__(
        self, request: Request, account: Callable[[], Account], answer: Callable[[Request], Release]
    ) -> None:
        """Plan a question.

        Args:
            request: The question, its price, and who asks.
            account: Gives the account that is charged, as it stands now.
            answer: Answers a request and charges it.
        """
        request.plan()
        self.request, self._account, self._answer = request, account, answer

    @property
    def epsilon(self) -> float:
        """Its price."""
        return float(self.request.epsilon)

    @property
    def explanation(self) -> Explanation:
        """What the answer would cost, exactly, and how it would be made. Nothing is spent or read."""
        account = self._account()
        explained = Explanation.of(self.request, account)
        if not (isinstance(account, Unopened) and account.waiting):
            return explained
        said = f"not open yet, and nothing was opened: the first answer opens it, with {account.budget}"
        return replace(explained, lines=(*explained.lines, ("budget", said)))

    def fits(self, epsilon: Number | None = None) -> bool:
        """Return whether the account would accept the question now, at its price or at another one."""
        request = self.request
        if epsilon is not None and numbers.epsilon(epsilon) != request.epsilon:
            request = replace(request, epsilon=numbers.epsilon(epsilon))
        return self._account().accepts(request.plan().loss, by=request.by, purpose=request.purpose)

    def run(self) -> Release:
        """Return the answer, charged before data are read; one that was released before is given again."""
        return self._answer(self.request)

    def __repr__(self) -> str:
        return f"<Asked {harmless(shortened(self.request.asked, SHOWN))} at epsilon {self.epsilon:g}>"

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()
