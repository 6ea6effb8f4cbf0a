"""`Plan`: how a question is answered privately, with its loss, fixed before any data is read.

    plan = Plan.make(question, unit=unit, epsilon=Fraction(1, 2), delta=Fraction(1, 10**9), bounds=None)
    plan.loss                     # public: what an account is charged
    plan.lines()                  # what explain shows
    plan.run(loaded)              # now data is looked at

Theorem. Whatever the data, `run` is dominated by `loss` for the plan's unit and relation: on its own it is
(epsilon, delta)-private, and losses of several plans compose. It consists of, in this order, the selection of
keys, the searches for bounds and the measures; the loss of each holds for every outcome of those before it
(`selecting`, `searching`, `measures`), and `budgeting` composes them. All else that `run` does looks at their
outcomes only. The whole proof is in docs/proofs/tables.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dalenius.errors import Argument, InvalidArgument, Message
from dalenius.losses.loss import Loss
from dalenius.noise import source
from dalenius.privacy import numbers
from dalenius.privacy.numbers import Number
from dalenius.privacy.unit import Unit
from dalenius.release import CONFIDENCE
from dalenius.tables.bounds import Bounds, check_squares, names_of
from dalenius.tables.engines.engine import WEIGHT, Bounding, Loaded, Measure
from dalenius.tables.learned import Learned
from dalenius.tables.planning import cautions, remarks, wording
from dalenius.tables.planning.answers import Answer, Sheet
from dalenius.tables.planning.bars import Noisy
from dalenius.tables.planning.budgeting import Additive, Noise, Norm, Split, split, too_small, weights_of
from dalenius.tables.planning.choosing import UNSEEN
from dalenius.tables.planning.estimates import Totals
from dalenius.tables.planning.known import Known, known
from dalenius.tables.planning.margins import with_margins
from dalenius.tables.planning.measures import Need, Place, counted, needs, nonnegative, norm, ranged
from dalenius.tables.planning.ranges import bits_of, levels_of, measure
from dalenius.tables.planning.searching import Found, Search, Searching, room, searches
from dalenius.tables.planning.selecting import check_keys, keys_per_unit, select
from dalenius.tables.planning.standing import Kept, kept_for
from dalenius.tables.question import Interval, Question
from dalenius.tables.rows import Key


@dataclass(frozen=True)
class Plan:
    """A question with everything that decides its cost and its noise, but for bounds yet to be found."""

    question: Question
    unit: Unit
    epsilon: Fraction
    delta: Fraction
    bounds: Bounds
    confidence: Fraction
    public_size: int | None
    intervals: tuple[Interval | None, ...]
    facts: Known
    searches: tuple[Search, ...]
    needs: tuple[Need, ...]
    parts: Split
    kept: Mapping[Search, Kept] = field(default_factory=dict)
    """Histograms of a profile, by the searches that they stand in for."""
    missing: tuple[float, float] | None = None
    """How many rows have no id, by a profile, and how far that is off."""

    @staticmethod
    def make(
        question: Question,
        *,
        unit: Unit,
        epsilon: Number,
        delta: Number,
        bounds: Bounds | None = None,
        public_size: int | None = None,
        confidence: Number = CONFIDENCE,
        learned: Learned | None = None,
    ) -> Plan:
        """The plan of a question for one (epsilon, delta); no data is read.

        `learned` is what a profile of the table has shown: where it has a histogram, no search is made.
        """
        limit, failure = numbers.epsilon(epsilon), numbers.delta(delta)
        given = bounds or Bounds()
        _check(question, unit, public_size)
        law: Norm = "l2" if failure else "l1"
        intervals, wanted = given.intervals(question), needs(question)
        facts = known(question, given, law)
        standing = kept_for(question, learned)
        open_ = searches(question, wanted, facts, intervals)
        kept = {each: standing[each.place] for each in open_ if each.place in standing}
        # A profile answers without searches: what it has of a column is not looked at more closely.
        known_columns = {each.column for each in kept if each.kind == "values"}
        looked = tuple(
            each
            for each in open_
            if each not in kept and not (each.kind == "steps" and each.column in known_columns)
        )
        parts = split(
            epsilon=limit,
            delta=failure,
            relation=unit.relation,
            weights=weights_of([each.weight for each in looked], [need.weight for need in wanted]),
            keys=keys_per_unit(question, given, failure),
        )
        absent = None if learned is None else learned.missing
        size = None if public_size is None else numbers.count(public_size, "public_size", least=0)
        sure = numbers.confidence(confidence)
        made = Plan(
            question,
            unit,
            limit,
            failure,
            given,
            sure,
            size,
            intervals,
            facts,
            looked,
            wanted,
            parts,
            kept,
            absent,
        )
        made._check_room()
        return made

    @property
    def loss(self) -> Loss:
        """What a run costs, whatever the data are."""
        return self.parts.loss

    @property
    def norm(self) -> Norm:
        """In which norm a unit's contributions are bounded: L2 with Gaussian noise, L1 with Laplace noise."""
        return "l2" if self.delta else "l1"

    @property
    def search_noises(self) -> tuple[Noise, ...]:
        """Of the searches, in their order."""
        return self.parts.noises[: len(self.searches)]

    @property
    def measure_noises(self) -> tuple[Noise, ...]:
        """Of the measures, in the order of the needs."""
        return self.parts.noises[len(self.searches) :]

    def lines(self) -> list[tuple[str, str]]:
        """What the plan does and costs, in words, each line with its name."""
        return wording.lines(self)

    def run(self, loaded: Loaded) -> Answer:
        """The answer, with noise drawn afresh; to be called once an account is charged with the loss."""
        salt = source.drawn(lambda bits: bits.words(16, np.uint16).tobytes())
        keys = self._keys(loaded, salt)
        if not keys or not self.needs:
            return self._answer(keys, self._nothing(), {}, {})
        found = self._searching.run(loaded, keys, salt)
        made = {need.place: self.measure(need, found, len(keys)) for need in self.needs}
        return self._answer(keys, found, made, self._noisy(loaded, keys, found, made, salt))

    def measure(self, need: Need, found: Found, groups: int) -> Measure:
        """A measure under bounds that were found."""
        interval = None if need.column is None or need.family != "rows" else found.intervals[need.column]
        noise = self.measure_noises[self.needs.index(need)]
        least = min(noise.room() for noise in self.measure_noises)
        return measure(
            need,
            interval,
            room=least / found.limit_of(need.place),
            centred=self._centred(need.column),
            levels=levels_of(groups, noise),
            bits=bits_of(groups, alone=not self._counted(need.column)),
        )

    def law(self, need: Need, made: Measure, bounding: Bounding) -> Additive:
        """The noise of a measure, which hides what one unit adds to all groups."""
        noise = self.measure_noises[self.needs.index(need)]
        return noise.on(norm(made, bounding), nonnegative=nonnegative(made))

    @property
    def _searching(self) -> Searching:
        return Searching(
            self.question,
            self.searches,
            self.search_noises,
            self.kept,
            self.needs,
            self.measure_noises,
            self.facts,
            self.intervals,
            self.bounds.groups,
        )

    def _keys(self, loaded: Loaded, salt: bytes) -> Sequence[Key]:
        if self.question.keys is not None:
            return self.question.keys
        assert self.parts.selection is not None
        return select(self.parts.selection, loaded.holders(most=self.parts.selection.keys, salt=salt))

    def _centred(self, column: int | None) -> bool:
        """Whether the number of a column's values is measured besides their sum."""
        return column is not None and counted(column, self.question) in self._places

    def _counted(self, column: int | None) -> bool:
        """Whether some number is measured that is not below that of a column's values."""
        return self._centred(column) or ("rows", None) in self._places

    @property
    def _places(self) -> set[Place]:
        return {need.place for need in self.needs}

    def _noisy(
        self, loaded: Loaded, keys: Sequence[Key], found: Found, made: dict[Place, Measure], salt: bytes
    ) -> dict[Place, Noisy]:
        """Every measure with its noise; those of one bound are read together."""
        noisy: dict[Place, Noisy] = {}
        for limit in sorted({found.limit_of(need.place) for need in self.needs}):
            lot = [need for need in self.needs if found.limit_of(need.place) == limit]
            bounding = found.bounding(self.norm, lot[0].place, self.bounds.groups, salt)
            totals, start = loaded.totals(keys, [made[need.place] for need in lot], bounding), 0
            for need in lot:
                law, width = self.law(need, made[need.place], bounding), made[need.place].width
                noisy[need.place] = Noisy.drawn(totals[:, start : start + width], law)
                start += width
        return {need.place: noisy[need.place] for need in self.needs}

    def _answer(
        self, keys: Sequence[Key], found: Found, made: dict[Place, Measure], noisy: dict[Place, Noisy]
    ) -> Answer:
        totals = Totals(self.question, made, noisy, found, self.public_size)
        shown, summed = with_margins(self.question, keys, totals, 1 - self.confidence)
        searched = bool(self.searches or self.kept)
        sheet = Sheet(self.question, shown, summed, 1 - self.confidence, searched=searched)
        columns, measures = sheet.columns()
        return Answer(
            columns,
            measures,
            remarks.bounds(self, found),
            sheet.notes(),
            cautions.warnings(self, found, sheet),
            remarks.mechanism(self, found, made, noisy),
        )

    def _nothing(self) -> Found:
        return Found(Fraction(1), Fraction(1), 1, self.intervals)

    def _check_room(self) -> None:
        """What is known already must leave room for noise: nothing may fail once data is read."""
        if not self.needs:
            return
        rows, alone = room(self.measure_noises), room(self.measure_noises, 1)
        if rows < UNSEEN:
            raise too_small()
        known = (self.facts.rows, rows), (self.facts.presence, alone), (self.facts.pairs, alone * WEIGHT)
        if any(bound is not None and bound > most for bound, most in known):
            raise InvalidArgument(
                "So much of one unit, at so small an epsilon, needs more noise than can be drawn.",
                remedy=Message(
                    "Choose smaller ",
                    Argument("bounds", "bounds=Bounds(rows=…, groups=…, pairs=…)"),
                    ", or allow a larger ",
                    Argument("epsilon", "epsilon"),
                    ".",
                ),
            )
        for need in self.needs:
            if need.column in ranged([need]) and self.intervals[need.column] is not None:
                # A range that no grid is fine or coarse enough for is refused now.
                self.measure(need, self._nothing(), 1)
            if need.kind == "squares" and need.column is not None:
                check_squares(names_of(self.question)[need.column], self.intervals[need.column])


def _check(question: Question, unit: Unit, public_size: int | None) -> None:
    if public_size is not None and unit.relation == "add_remove":
        raise InvalidArgument(
            "The number of units is private under add_remove, so it cannot be public too.",
            remedy=Message(
                "Leave ",
                Argument("public_size", "public_size"),
                " out, or protect units under ",
                Argument("relation", 'relation="replace" or "zero_out"', ("replace or zero_out",)),
                ".",
            ),
        )
    check_keys(question)
