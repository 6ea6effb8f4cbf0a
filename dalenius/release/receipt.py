"""`Receipt`: what a release cost and how it was made, and the `Entry` of the account that paid for it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from dalenius import display
from dalenius.errors import InvalidArgument
from dalenius.losses.fields import written
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers
from dalenius.privacy.unit import Unit
from dalenius.release.digits import at_most

EXACT = "exact noise on whole grid steps, each record rounded by itself"
"""The numerical model of values that were quantized record by record."""
AGGREGATE = "exact noise on grid steps; the value was computed by the caller, whose arithmetic is not covered"
"""The numerical model of a float handed in by the caller, charged for its rounding onto the grid."""
AGAIN = "given again, free"
"""How the note of a release begins that was released before: nothing was charged this time."""
ROWS_WITHOUT = "rows without "
"""How a bound begins that says what becomes of rows without an id; it is shown below an answer too."""
TAINTED = "TAINTED: made with seeded noise, for tests only. It protects nobody."
"""What is said of a release whose noise can be drawn again."""

FOLDED = ("hash", "signature", "mechanism", "numerics")
"""What a notebook folds away of a receipt."""
DELTAS = tuple(Fraction(1, 10**k) for k in (6, 5, 4, 3, 2, 1))
"""Where the ε of a loss that is not pure is stated: at the first at which it is finite."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The line of an account that a release was charged to.

    `hash` is that of the line, in hexadecimal digits, which the account's chain of lines fixes; `left` says
    what the account has left after it; `signature` is the account's, where it has a key.
    """

    account: str
    number: int
    hash: str
    left: str
    signature: str | None = None

    def __post_init__(self) -> None:
        numbers.count(self.number, "number")
        texts = (self.account, self.left, self.hash, self.signature or "")
        if not all(isinstance(text, str) for text in texts) or not all(map(_hexadecimal, texts[2:])):
            raise InvalidArgument(
                "An entry has texts, its hash and signature in hexadecimal digits.",
                remedy="Pass what the account wrote.",
            )

    def __str__(self) -> str:
        return f"{self.account}, entry {self.number}"


@dataclass(frozen=True, repr=False)
class Receipt:
    """What a release cost and how it was made; without an entry no account was charged.

    `delta` is where its ε is stated; without one it is 0 for a pure loss, and else the first of `DELTAS` at
    which the ε is finite. `warnings` say, by what was released, where it should be read with care.
    """

    loss: Loss
    mechanism: str
    numerics: str
    unit: Unit | None = None
    entry: Entry | None = None
    bounds: tuple[str, ...] = ()
    postprocessing: tuple[str, ...] = ()
    tainted: bool = False
    delta: Fraction | None = None
    warnings: tuple[str, ...] = ()

    @property
    def charged(self) -> str:
        """Which account paid, or "uncharged"."""
        return "uncharged" if self.entry is None else f"{self.entry}"

    @property
    def promise(self) -> tuple[float, Fraction]:
        """An ε that holds and the δ at which it does: 0 where the loss is pure."""
        for delta in (Fraction(0), *DELTAS) if self.delta is None else (self.delta,):
            epsilon = self.loss.epsilon(delta).upper
            if epsilon < math.inf:
                break
        return epsilon, delta

    @property
    def cost(self) -> str:
        """The promise in words."""
        epsilon, delta = self.promise
        return f"epsilon {at_most(epsilon)}" + (f" at delta {float(delta):g}" if delta else "")

    @property
    def short(self) -> str:
        """The cost, for whom, and who paid, on one line."""
        return display.harmless(f"{self.cost}{self._whom}, {self.charged}")

    @property
    def _whom(self) -> str:
        unit = self.unit
        if unit is None:
            return ""
        rows = "" if unit.column is not None else " (each row)"
        return f" per {unit.entity}{rows}" + (f" and {unit.window}" if unit.window else "")

    @property
    def notes(self) -> str:
        """Lines below a release: what the account had left or that it was free, rows left out, warnings."""
        again = [note for note in self.postprocessing if note.startswith(AGAIN)][-1:]
        left = again or ([] if self.entry is None else [f"left: {self.entry.left}"])
        absent = [bound for bound in self.bounds if bound.startswith(ROWS_WITHOUT)]
        said = [*left, *absent, *(f"warning: {text}" for text in self.warnings)]
        return "".join(f"\n{display.harmless(text)}" for text in said)

    def lines(self) -> list[tuple[str, str]]:
        """Everything it states, each with its name."""
        stated = [
            ("cost", self.cost),
            ("account", self.charged),
            *self._paid(),
            ("protects", f"{self.unit}" if self.unit else f"not stated, {self.loss.relation}"),
            ("mechanism", self.mechanism),
            ("numerics", self.numerics),
            *(("bound", bound) for bound in self.bounds),
            *(("afterwards", note) for note in self.postprocessing),
            *(("warning", text) for text in self.warnings),
        ]
        return ([("warning", TAINTED)] if self.tainted else []) + stated

    def _paid(self) -> list[tuple[str, str]]:
        if self.entry is None:
            return []
        signed = [] if self.entry.signature is None else [("signature", self.entry.signature)]
        return [("left", self.entry.left), ("hash", self.entry.hash), *signed]

    def __str__(self) -> str:
        return "\n".join(f"{name + ':':<12}{display.harmless(text)}" for name, text in self.lines())

    def __repr__(self) -> str:
        return f"<Receipt {self.short}>"

    def _repr_html_(self) -> str:
        lines = self.lines()
        folded = [fact for fact in lines if fact[0] in FOLDED]
        said = [fact for fact in lines if fact[0] not in FOLDED and fact != ("warning", TAINTED)]
        return display.facts("Receipt", said, folded=folded, alarm=TAINTED if self.tainted else None)

    def plain(self) -> dict[str, Any]:
        """As plain values, for JSON; a delta and warnings where there are any."""
        fields = asdict(self) | {"loss": json.loads(self.loss.to_json())}
        delta, warnings = fields.pop("delta"), fields.pop("warnings")
        stated = {} if delta is None else {"delta": written(delta)}
        unit = {} if self.unit is None else {"unit": self.unit.plain()}
        return fields | unit | stated | ({"warnings": warnings} if warnings else {})

    @staticmethod
    def read(
        *,
        loss: Any,
        unit: Any,
        entry: Any,
        bounds: Any,
        postprocessing: Any,
        delta: Any = None,
        warnings: Any = (),
        **rest: Any,
    ) -> Receipt:
        """From what `plain` gave."""
        return Receipt(
            delta=None if delta is None else Fraction(delta),
            warnings=tuple(warnings),
            loss=Loss.from_json(json.dumps(loss)),
            unit=None if unit is None else Unit(**unit),
            entry=None if entry is None else Entry(**entry),
            bounds=tuple(bounds),
            postprocessing=tuple(postprocessing),
            **rest,
        )


def _hexadecimal(text: str) -> bool:
    return set(text) <= set("0123456789abcdef")
