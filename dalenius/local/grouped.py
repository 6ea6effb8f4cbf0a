"""`GroupedSketch`: people split at random into groups, each of which reports on another part of its strings.

A device draws its group, each as likely, takes the part of its string that this group asks for, and sends
one report of a `HadamardSketch` on it. The group is drawn without sight of the string, so a report costs
what one of the sketch does, however many groups there are; each group has 1/g of the people. Strings have
`length` bytes: longer ones are cut, shorter ones filled with zeros.

The server asks the sketch of a group about candidates. A part is kept where its lower end at alpha over the
number of candidates asked about is above zero, and it is among the `kept` largest: of all parts that nobody
has, any is kept with probability at most alpha in each group (`sketch` has the law, hashes taken as drawn
at random). Candidates depend on other groups' reports alone, so the law holds for them, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.local import tallies
from dalenius.local.bit_rows import TRIED
from dalenius.local.frequency import LISTED
from dalenius.local.randomizer import Estimates, Ints, Randomizer, ratio_of
from dalenius.local.reports import Rows
from dalenius.local.sketch import HadamardSketch
from dalenius.local.strings import Words, constants, places, read_strings, words_of
from dalenius.losses.raw import DiscretePair
from dalenius.mechanisms.mechanism import Law
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number

LEVEL = 0.05
"""The alpha of each group."""
MOST_CELLS = 2**27


@dataclass(frozen=True)
class GroupedSketch(Randomizer):
    """Strings of `length` bytes; sketches of `rows` and `columns`, `kept` parts at most. See the module."""

    _: KW_ONLY
    length: int
    rows: int
    columns: int
    ratio: Fraction
    kept: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "length", numbers.count(self.length, "length", most=64))
        object.__setattr__(self, "kept", numbers.count(self.kept, "kept", most=4096))
        for name in ("rows", "columns", "ratio"):
            object.__setattr__(self, name, getattr(self.sketch, name))
        if self.cells > MOST_CELLS:
            raise InvalidArgument("The sketches have over 2^27 cells.", remedy="Choose fewer rows.")

    @property
    @abstractmethod
    def groups(self) -> int:
        """How many there are."""

    @abstractmethod
    def parts(self, text: bytes) -> list[bytes]:
        """What each group asks for of a string."""

    @abstractmethod
    def hitters(self, ask: Ask) -> list[bytes]:
        """The strings to be listed, as the last group found them."""

    @cached_property
    def sketch(self) -> HadamardSketch:
        """That of every group."""
        return HadamardSketch(rows=self.rows, columns=self.columns, ratio=self.ratio, relation=self.relation)

    @property
    def loss(self) -> DiscretePair:
        """Of one report."""
        return self.sketch.loss

    def worst_case(self) -> tuple[str, str]:
        """Two strings that fall on the same place in the fewest rows of all groups."""
        return self._worst

    @cached_property
    def _worst(self) -> tuple[str, str]:
        texts = [chr(ord("0") + number) for number in range(TRIED)]
        words = self.read(texts).reshape(TRIED, self.groups, 1, 2)
        spots = places(words, constants(self.rows)[:TRIED], self.columns).reshape(TRIED, -1)
        first, second = max(
            combinations(range(TRIED), 2), key=lambda pair: int((spots[pair[0]] != spots[pair[1]]).sum())
        )
        return texts[first], texts[second]

    def read(self, values: Any) -> Words:
        """The words of all parts of each string, two for each group."""
        whole = [self.filled(text) for text in read_strings(values)]
        known = {text: self.parts(text) for text in dict.fromkeys(whole)}
        return words_of(part for text in whole for part in known[text]).reshape(len(whole), 2 * self.groups)

    def filled(self, text: bytes) -> bytes:
        """A string of the right length."""
        return text[: self.length].ljust(self.length, b"\0")

    def randomize(self, values: Words) -> Rows:
        """A group, and a report on its part."""
        group = np.asarray(noise.uniform(self.groups, len(values)), dtype=np.int64)
        words = values.reshape(-1, self.groups, 2)[np.arange(len(values)), group]
        return group * self.sketch.shape[0] + self.sketch.randomize(words)

    @property
    def shape(self) -> tuple[int, int]:
        """One number: the group first."""
        return self.groups * self.sketch.shape[0], 1

    @property
    def cells(self) -> int:
        """For each group its reports, and its sketch."""
        return self.groups * (1 + self.rows * self.columns)

    def adds_up(self, tally: Ints, count: int) -> bool:
        """Each report is of one group, and adds up in its sketch."""
        table = tally.reshape(self.groups, -1)
        whole = tallies.parts_of(table[:, 0], count)
        return whole and all(self.sketch.adds_up(row[1:], int(row[0])) for row in table)

    def tally(self, rows: Rows) -> Ints:
        """By groups."""
        group, code = np.divmod(rows[:, 0].astype(np.int64), self.sketch.shape[0])
        found = np.zeros((self.groups, 1 + self.sketch.cells), np.int64)
        for one in range(self.groups):
            here = code[group == one]
            found[one, 0] = here.size
            found[one, 1:] = self.sketch.tally(here[:, None])
        return found.ravel()

    def estimates(self, tally: Ints, count: int) -> Estimates:
        """The strings that many people have, the most frequent first."""
        ask = Ask(self, tally.reshape(self.groups, -1))
        found = self.hitters(ask)
        columns = ask.shares(self.groups - 1, found)
        order = np.argsort(columns["share"])[::-1].tolist()
        texts = [text.rstrip(b"\0").decode("utf-8", "replace") for text in found]
        shown: dict[str, list[Any]] = {"item": [texts[place] for place in order]}
        shown |= {
            name: [column[place] for place in order] for name, column in columns.items() if name != "found"
        }
        note = (
            f"strings cut at {self.length} bytes; of those that nobody has, any is listed with probability "
            f"at most {LEVEL:g}"
        )
        return Estimates(shown, ("share",), (note,))

    def probabilities(self, value: Any) -> Law | None:
        """Of all reports, where they can be listed."""
        if self.shape[0] > LISTED:
            return None
        words = self.read([value]).reshape(self.groups, 2)
        laws = [self.sketch.law_of(words[group : group + 1]) for group in range(self.groups)]
        return Law(tuple(range(self.shape[0])), np.concatenate(laws) / self.groups)

    @classmethod
    def calibrate(
        cls, *, length: int, epsilon: Number, rows: int = 4096, columns: int = 256, kept: int = 32
    ) -> Any:
        """The one whose reports are epsilon-private."""
        return cls(length=length, rows=rows, columns=columns, ratio=ratio_of(epsilon), kept=kept)


class Ask:
    """Questions to the sketches of groups about parts."""

    def __init__(self, randomizer: GroupedSketch, table: Ints) -> None:
        self._sketch, self._kept, self._table = randomizer.sketch, randomizer.kept, table

    def shares(self, group: int, parts: Sequence[bytes]) -> dict[str, list[float]]:
        """Columns of shares of parts, by the reports of one group."""
        count = max(int(self._table[group, 0]), 1)
        return self._sketch.decoded(self._table[group, 1:], count, words_of(parts), LEVEL)[0]

    def surviving(self, group: int, parts: Sequence[bytes]) -> list[bytes]:
        """Parts that are there by the law of the module, the largest `kept` of them."""
        if not parts or not self._table[group, 0]:
            return []
        columns = self.shares(group, parts)
        there = [place for place, found in enumerate(columns["found"]) if found]
        there.sort(key=lambda place: -columns["share"][place])
        return [parts[place] for place in there[: self._kept]]
