"""`fitting`: the ε at which an account would still accept a question, for refusals and for `explain`.

What a question costs is not of the form that an account states as left, and where its groups are found
privately it takes a little of the account's δ as well. So its own costs are put to the account, from what is
left downward. Where no ε is accepted, but would be with groups that are listed, it is that δ that is used up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.ledger import Account
from dalenius.losses.filters import LEAST
from dalenius.losses.gauges import round_down
from dalenius.losses.loss import Loss

if TYPE_CHECKING:
    from dalenius.tables.answering import Request

_DIGITS = 3
_TRIES, _LESS = 16, Fraction(19, 20)
"""How many prices are tried, each so much lower than the one before."""
USED_UP = "the delta that it has for groups found privately is used up, though epsilon is left"
LIST = Message(
    "List the groups (", Argument("keys", "keys=…"), "), or declare the categories of the columns in GROUP BY"
)
"""What costs no such δ."""


@dataclass(frozen=True)
class Fitting:
    """A price at which a question would be accepted now, and what it costs then."""

    epsilon: Fraction
    loss: Loss
    listed: bool = False
    """Whether this is so only if its groups are listed."""

    def __str__(self) -> str:
        return f"{float(self.epsilon):g}"


def fitting(request: Request, account: Account) -> Fitting | None:
    """The largest price, to three digits, or nearly that; None where nothing fits."""
    left = Fraction(str(account.left_for(by=request.by, purpose=request.purpose).epsilon))
    found = _search(request, account, left)
    if found is not None or request.question.keys is not None:
        return found
    groups = ((None,) * len(request.question.key_names),)
    listed = replace(request, question=replace(request.question, keys=groups))
    found = _accepted(listed, account, request.epsilon) or _search(listed, account, left)
    return None if found is None else replace(found, listed=True)


def _search(request: Request, account: Account, most: Fraction) -> Fitting | None:
    """Downward in steps until a price fits, then upward between it and the one before."""
    price = most
    for _ in range(_TRIES):
        found = _accepted(request, account, price)
        if found is not None:
            return _raised(request, account, found, min(most, price / _LESS))
        price *= _LESS
    return None


def _raised(request: Request, account: Account, found: Fitting, above: Fraction) -> Fitting:
    """The largest price that fits, up to one above which none does."""
    while (price := round_down((found.epsilon + above) / 2, _DIGITS)) > found.epsilon:
        tried = _accepted(request, account, price)
        if tried is None:
            above = price
        else:
            found = tried
    return found


def _accepted(request: Request, account: Account, price: Fraction) -> Fitting | None:
    """The question at a price, rounded down, where the account would accept it."""
    if price <= LEAST:
        return None
    epsilon = round_down(price, _DIGITS)
    try:
        loss = replace(request, epsilon=epsilon).plan().loss
    except InvalidArgument:
        # So small a price would buy nothing but noise.
        return None
    fits = account.accepts(loss, by=request.by, purpose=request.purpose)
    return Fitting(epsilon, loss) if fits else None
