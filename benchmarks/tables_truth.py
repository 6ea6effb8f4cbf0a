"""Do intervals contain the truth? Every 95 % interval, beside what DuckDB says of the unprotected table.

    python3 -m venv build/bench-truth
    build/bench-truth/bin/pip install -r benchmarks/requirements-tables-truth.txt -e .
    build/bench-truth/bin/python benchmarks/tables_truth.py

The questions are in tables_truth.sql, the tables in tables_truth_data.py. Each question is asked as a new
analyst would, with default settings, at several ε, in several runs; each run has an account of its own. A
cell is one measure of one group. Its truth is the result of the same SQL without HAVING, ORDER BY and
LIMIT, by DuckDB, on the whole table, rows without a unit among them. A second truth is that of the rows
that have a unit. A side of an interval is open where it is infinite; a cell without a number is open on
both sides.

The best fixed bounds are chosen with sight of the data, for each measure and ε: of `Bounds(rows=1, 2, 4,
…)`, with the true ranges of all values or with ranges from their 0.5 to their 99.5 percentile, those with
the least median |error| over a few runs. Their error is that of further runs. Their honest width is that of
the noise's interval and of what the bounds truly take away, as an answer at ε = 1000 with the same bounds
tells. They are kept in build/, as finding them takes half of the time: delete the file where the noise of
the library changes.

`--profile 0.3` calls `table.learn(epsilon=0.3)` first in each run, where the library has it; the last such
report is kept in benchmarks/results/tables_truth_profile.md, at ε = 0.3 and 1 (`--output`). `--runs`,
`--epsilon` and `--questions` (a pattern of names) ask less. The report is printed and written to
benchmarks/results/tables_truth.md.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import sqlglot
from measure import processor, table, version
from numpy.typing import NDArray
from sqlglot import expressions as exp
from tables_truth_data import PUBLIC, SOURCES, write_tables

import dalenius as dp
from dalenius.errors import DaleniusError
from dalenius.tables.bounds import Bounds, names_of
from dalenius.tables.language.parsing import ask
from dalenius.tables.table import Table

HERE = Path(__file__).parent
QUESTIONS, RESULTS = HERE / "tables_truth.sql", HERE / "results" / "tables_truth.md"
BASELINE = HERE.parent / "build" / "tables_truth_baseline.json"
EPSILONS = (0.1, 0.3, 1.0)
EXACT = 1000
"""The ε at which noise is small beside what bounds take away."""
PLENTY = 10**5
"""The ε of an account, so that no budget runs out."""
TRIES, CHECKS = 3, 9
"""Runs by which fixed bounds are chosen, and runs that measure the chosen ones."""
INNER = (0.005, 0.995)
"""The quantiles between which values are held, where not between the least and the largest."""
FAR_OFF = 3
"""An error of more widths than this is counted."""
Floats = NDArray[np.float64]
VALUE, LOW, HIGH, TRUTH, OWNED = range(5)


@dataclass(frozen=True)
class Question:
    """A question of tables_truth.sql: `groups` says how its groups are known."""

    name: str
    source: str
    groups: str
    sql: str
    truth: str

    @property
    def zeros(self) -> set[str]:
        """Return the outputs that are 0 in a group without rows: counts, sums, and sums of these."""
        found = set()
        for output in sqlglot.parse_one(self.sql, dialect="duckdb").expressions:
            aggregates = list(output.find_all(exp.AggFunc))
            plain = all(isinstance(each, exp.Count | exp.Sum | exp.CountIf) for each in aggregates)
            if aggregates and plain and not output.find(exp.Div):
                found.add(output.alias_or_name)
        return found


def read_questions(pattern: str) -> list[Question]:
    """Return the questions whose names match a pattern."""
    found = []
    for part in re.split(r"^-- (?=.*\|.*\|)", QUESTIONS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        name, source, groups = (word.strip() for word in head.split("|"))
        sql, _, truth = (" ".join(text.split()).rstrip(";") for text in body.partition("-- truth"))
        found.append(Question(name, source, groups, sql, truth or without_choice(sql)))
    if len({question.name for question in found}) < len(found):
        raise SystemExit("Two questions have one name.")
    return [question for question in found if re.search(pattern, question.name)]


def without_choice(sql: str) -> str:
    """Return a question about all groups, in no order."""
    whole = sqlglot.parse_one(sql, dialect="duckdb")
    for clause in ("having", "order", "limit", "offset"):
        whole.set(clause, None)
    return whole.sql(dialect="duckdb")


@dataclass(frozen=True)
class Answer:
    """One answer: for each measure its cells, a row each, as value, low, high, truth and owned truth."""

    question: Question
    epsilon: float
    cells: dict[str, Floats]
    keys: dict[str, list[tuple[Any, ...]]]
    warned: bool
    seconds: float
    left_out: float
    """The share of groups of the truth that the answer does not show, where groups are private."""

    @cached_property
    def all(self) -> Floats:
        """Return the cells of all measures."""
        return np.concatenate([np.zeros((0, 5)), *self.cells.values()])


@dataclass
class Asked:
    """What came of all questions."""

    answers: list[Answer] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """The first sentence of each refusal, by question and where it is not refused at every ε, by ε."""


class Bench:
    """The tables, and the truth of every question."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._truths: dict[tuple[str, bool], dict[tuple[Any, ...], dict[str, float]]] = {}
        self._columns: dict[str, list[str]] = {}

    def connect(self, source: str, *, owned: bool = False) -> duckdb.DuckDBPyConnection:
        """Return a connection with all tables; where `owned`, with the rows that have a unit alone."""
        connection = duckdb.connect()
        chosen = SOURCES[source]
        for name in dict.fromkeys((*PUBLIC, chosen.table)):
            mine = owned and chosen.unit and name == chosen.table
            kept = f" WHERE {chosen.unit} IS NOT NULL" if mine else ""
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{self.folder / name}.parquet'{kept}")
        return connection

    def open(self, source: str) -> Table:
        """Return the private table, with an account of its own."""
        chosen = SOURCES[source]
        unit = dp.Unit(chosen.entity, column=chosen.unit) if chosen.unit else dp.Unit(chosen.entity)
        with self.connect(source) as connection:
            categories = {
                column: [row[0] for row in connection.execute(sql).fetchall()]
                for column, sql in chosen.categories.items()
            }
        return dp.table(
            self.folder / f"{chosen.table}.parquet",
            unit=unit,
            budget=dp.Budget(epsilon=PLENTY, delta=chosen.delta),
            ledger=dp.Ledger.memory(),
            categories=categories or None,
            public={name: self.folder / f"{name}.parquet" for name in PUBLIC if name != chosen.table},
        )

    def most_rows(self, source: str) -> int:
        """Return the most rows of a unit."""
        chosen = SOURCES[source]
        if not chosen.unit:
            return 1
        with self.connect(source, owned=True) as connection:
            counts = f"SELECT count(*) AS n FROM {chosen.table} GROUP BY {chosen.unit}"
            return int(connection.execute(f"SELECT max(n) FROM ({counts})").fetchall()[0][0])

    def truth(self, question: Question, measures: Sequence[str], *, owned: bool) -> Callable[..., float]:
        """Return a function from a group and a measure to the truth; NaN where there is none."""
        known = self._truths.get((question.name, owned))
        if known is None:
            with self.connect(question.source, owned=owned) as connection:
                result = connection.execute(question.truth)
                names = self._columns[question.name] = [column[0] for column in result.description]
                rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
            known = {
                tuple(key(row[name]) for name in names if name not in measures): {
                    name: number(row[name]) for name in measures
                }
                for row in rows
            }
            self._truths[question.name, owned] = known
        empty = {name: 0.0 if name in question.zeros else math.nan for name in measures}
        every = known
        return lambda group, measure: every.get(group, empty)[measure]

    def answer(self, opened: Table, question: Question, epsilon: float, **given: Any) -> Answer:
        """Ask, and put the truth beside every cell."""
        start = time.process_time()
        release = opened.sql(question.sql, epsilon=epsilon, **given)
        seconds = time.process_time() - start
        measures = release.measures
        raw, owned = (self.truth(question, measures, owned=each) for each in (False, True))
        names = [name for name in self._columns[question.name] if name not in measures]
        groups = [
            tuple(map(key, row)) for row in zip(*(release.columns[name] for name in names), strict=True)
        ]
        groups = groups if names else [()] * len(release)
        cells, keys = {}, {}
        for name in measures:
            ends = (f"{name}_low", f"{name}_high")
            columns = [release.columns[each] for each in (name, *ends) if each in release.columns]
            filled = [list(map(number, row)) for row in zip(*columns, strict=True)]
            rows = np.array(
                [
                    [*ends_of(*row), raw(group, name), owned(group, name)]
                    for row, group in zip(filled, groups, strict=True)
                ]
            ).reshape(-1, 5)
            there = ~np.isnan(rows[:, TRUTH])
            cells[name] = rows[there]
            keys[name] = [group for group, kept in zip(groups, there, strict=True) if kept]
        every = self._truths[question.name, False]
        hidden = 1 - len(every.keys() & set(groups)) / max(len(every), 1)
        chosen = any(word in question.sql for word in ("HAVING", "LIMIT", "WHERE n"))
        return Answer(
            question,
            epsilon,
            cells,
            keys,
            bool(release.receipt.warnings),
            seconds,
            math.nan if chosen or question.groups != "private" else hidden,
        )


def key(part: Any) -> Any:
    """Return a part of a group's key so that equal ones are equal: a moment at midnight is its date."""
    if isinstance(part, datetime):
        part = part.replace(tzinfo=None)
        return part.date().isoformat() if part.time() == datetime.min.time() else part.isoformat()
    return part.isoformat() if isinstance(part, date) else part


def number(cell: Any) -> float:
    """Return a cell as a number; dates as days, NaN for NULL and texts."""
    if isinstance(cell, date):
        return float(cell.toordinal())
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def ends_of(value: float, low: float = math.nan, high: float = math.nan) -> tuple[float, float, float]:
    """Return a cell with its interval: ends that are not there are infinite."""
    return value, -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high


def first_sentence(error: BaseException) -> str:
    """Return the first sentence of a refusal, with the name of its class."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {re.split(r'(?<=[.!?]) ', said)[0]}"


def ask_all(
    bench: Bench, questions: Sequence[Question], epsilons: Sequence[float], runs: int, profile: float | None
) -> Asked:
    """Ask every question at every ε, `runs` times."""
    asked = Asked()
    refusals: dict[str, dict[float, str]] = {}
    for run in range(runs):
        start = time.process_time()
        for source in dict.fromkeys(question.source for question in questions):
            with bench.open(source) as opened:
                if profile is not None and hasattr(opened, "learn"):
                    opened.learn(epsilon=profile)
                for question in (each for each in questions if each.source == source):
                    for epsilon in epsilons:
                        if question.name in refusals and epsilon in refusals[question.name]:
                            continue
                        try:
                            asked.answers.append(bench.answer(opened, question, epsilon))
                        except DaleniusError as refused:
                            refusals.setdefault(question.name, {})[epsilon] = first_sentence(refused)
        print(f"run {run + 1} of {runs}: {time.process_time() - start:.0f} s of CPU", flush=True)
    for name, said in refusals.items():
        where = "" if len(said) == len(epsilons) else f" (ε = {', '.join(f'{e:g}' for e in said)})"
        asked.refused[name] = next(iter(said.values())) + where
    return asked


# The best fixed bounds.


@dataclass(frozen=True)
class Best:
    """The fixed bound with the least median |error|, that error, and the median of its honest width."""

    rows: int
    error: float
    width: float


Baseline = dict[tuple[str, float, str], Best]
Ranges = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Tried:
    """Bounds with the median |error| of each measure, and what they take from each cell."""

    rows: int
    bounds: Bounds
    errors: dict[str, float]
    taken: dict[str, dict[tuple[Any, ...], float]]


class Oracle:
    """Fixed bounds, chosen with sight of the data."""

    def __init__(self, bench: Bench, path: Path | None) -> None:
        self.bench, self.path = bench, path
        self._kept: dict[str, dict[str, list[float]]] = {}
        if path is not None and path.exists():
            self._kept = json.loads(path.read_text(encoding="utf-8"))

    def baseline(self, questions: Sequence[Question], epsilons: Sequence[float]) -> Baseline:
        """Return the best bounds of every question, ε and measure; kept ones are not looked for again."""
        found: Baseline = {}
        for question in questions:
            places = {epsilon: f"{question.source}: {question.sql} [{epsilon:g}]" for epsilon in epsilons}
            if not self._kept.keys() >= set(places.values()):
                self._find(question, places)
            for epsilon, place in places.items():
                for name, (rows, error, width) in self._kept.get(place, {}).items():
                    found[question.name, epsilon, name] = Best(int(rows), error, width)
        return found

    def _find(self, question: Question, places: dict[float, str]) -> None:
        """Find and keep the best bounds of a question."""
        with ExitStack() as stack:
            # The same question on the same account is answered from the answers that were released before.
            opened = [stack.enter_context(self.bench.open(question.source)) for _ in range(TRIES + CHECKS)]
            for epsilon, place in places.items():
                if place in self._kept:
                    continue
                with suppress(DaleniusError):
                    best = self._best(question, epsilon, opened)
                    self._kept[place] = {name: [b.rows, b.error, b.width] for name, b in best.items()}
                    self._keep()

    def _keep(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_text(json.dumps(self._kept), encoding="utf-8")

    def _best(self, question: Question, epsilon: float, opened: Sequence[Table]) -> dict[str, Best]:
        """Try every kind of ranges, and with each bounds from the largest down."""
        tried = [
            each
            for ranges in self._ranges(question, opened[0])
            for each in self._tried(question, epsilon, opened[:TRIES], ranges)
        ]
        names = list(dict.fromkeys(name for each in tried for name in each.errors))
        best = {
            name: min((each for each in tried if name in each.errors), key=partial(_error_of, name))
            for name in names
        }
        checked = {
            id(each): [
                self.bench.answer(fresh, question, epsilon, bounds=each.bounds) for fresh in opened[TRIES:]
            ]
            for each in best.values()
        }
        found = {}
        for name, each in best.items():
            answers = [one for one in checked[id(each)] if name in one.cells]
            width = _honest(answers, name, each.taken.get(name, {}))
            found[name] = Best(each.rows, median_error(answers, name), width)
        return found

    def _tried(
        self, question: Question, epsilon: float, opened: Sequence[Table], ranges: Ranges
    ) -> list[Tried]:
        """Try bounds until what they take away is more than the least error found."""
        most = self.bench.most_rows(question.source)
        found: list[Tried] = []
        for rows in (most, *(2**i for i in reversed(range(most.bit_length())) if 2**i < most)):
            given = Bounds(rows=rows, ranges=ranges)
            taken = _taken(self.bench.answer(opened[0], question, EXACT, bounds=given))
            answers = [self.bench.answer(each, question, epsilon, bounds=given) for each in opened]
            errors = {name: median_error(answers, name) for name in answers[0].cells}
            found.append(Tried(rows, given, errors, taken))
            least = {name: min(each.errors.get(name, math.inf) for each in found) for name in errors}
            if all(median(taken.get(name, {}).values()) > least[name] for name in errors):
                break
        return found

    def _ranges(self, question: Question, opened: Table) -> list[Ranges]:
        """Return the ranges of all values whose ranges are not known: the true ones, and percentiles."""
        asked = ask(question.sql, opened.schema)
        whole = sqlglot.parse_one(question.sql, dialect="duckdb")
        for clause in ("having", "order", "limit", "offset", "group"):
            whole.set(clause, None)
        true, inner = {}, {}
        with self.bench.connect(question.source, owned=True) as connection:
            for name, known in zip(names_of(asked), asked.intervals, strict=True):
                if known is not None:
                    continue
                ends = [f"min({name})", f"max({name})"]
                ends += [f"quantile_disc({name}, {part})" for part in INNER]
                try:
                    whole.set("expressions", [sqlglot.parse_one(end, dialect="duckdb") for end in ends])
                    row = connection.execute(whole.sql(dialect="duckdb")).fetchall()[0]
                    low, high, first, last = map(float, row)
                except (sqlglot.ParseError, duckdb.Error, TypeError, ValueError):
                    continue
                true[name], inner[name] = (low, high), (first, last)
        return [true, inner] if true else [{}]


def _error_of(name: str, tried: Tried) -> float:
    """Return the error of a measure; NaN, where no group is shown, is worse than any."""
    error = tried.errors[name]
    return math.inf if math.isnan(error) else error


def _taken(exact: Answer) -> dict[str, dict[tuple[Any, ...], float]]:
    """Return what bounds take from each cell, by measure and group."""
    return {
        name: dict(zip(exact.keys[name], np.abs(rows[:, TRUTH] - rows[:, VALUE]).tolist(), strict=True))
        for name, rows in exact.cells.items()
    }


def _honest(answers: Sequence[Answer], name: str, taken: dict[tuple[Any, ...], float]) -> float:
    """Return the median width of the noise's interval and what the bounds take away."""
    found = [
        (row, taken.get(group, 0.0))
        for each in answers
        for group, row in zip(each.keys[name], each.cells[name], strict=True)
    ]
    filled = [(row, lost) for row, lost in found if row[TRUTH] != 0] or found
    return median(row[HIGH] - row[LOW] + lost for row, lost in filled)


def median(numbers: Iterable[float]) -> float:
    """Return the median of what is a number; NaN where nothing is."""
    found = [each for each in numbers if not math.isnan(each)]
    return float(np.median(found)) if found else math.nan


def median_error(answers: Sequence[Answer], name: str) -> float:
    """Return the median |error| of a measure over cells and answers."""
    rows = filled_cells(answers, name)
    return median(np.abs(rows[:, VALUE] - rows[:, TRUTH]).tolist())


def filled_cells(answers: Sequence[Answer], name: str) -> Floats:
    """Return the cells of a measure whose truth is not 0, or all where it always is.

    The error and the width of a question with many empty groups would be those of the empty ones alone, for
    which the smallest bound is best.
    """
    rows = np.concatenate([np.zeros((0, 5)), *(each.cells[name] for each in answers if name in each.cells)])
    filled = rows[rows[:, TRUTH] != 0]
    return filled if len(filled) else rows


# The report.


@dataclass(frozen=True)
class Part:
    """Answers of some questions at some ε, and what is said of them."""

    answers: list[Answer]
    baseline: Baseline

    @cached_property
    def cells(self) -> Floats:
        """Return all cells of all answers."""
        return np.concatenate([np.zeros((0, 5)), *(each.all for each in self.answers)])

    def only(self, keep: Callable[[Answer], bool]) -> Part:
        """Return the part of which something is true."""
        return Part([each for each in self.answers if keep(each)], self.baseline)

    @cached_property
    def questions(self) -> dict[str, Part]:
        """Return the parts of single questions."""
        found: dict[str, list[Answer]] = {}
        for each in self.answers:
            found.setdefault(each.question.name, []).append(each)
        return {name: Part(part, self.baseline) for name, part in found.items()}

    def coverage(self, truth: int = TRUTH) -> float:
        """Return the share of cells whose interval contains the truth."""
        return share(contained(self.cells, truth))

    def each_coverage(self) -> dict[str, float]:
        """Return the coverage of every question that has cells."""
        return {name: part.coverage() for name, part in self.questions.items() if len(part.cells)}

    def open(self) -> float:
        """Return the share of cells with an open side."""
        return share(~np.isfinite(self.cells[:, LOW]) | ~np.isfinite(self.cells[:, HIGH]))

    def far_off(self) -> float:
        """Return the largest |error| / width of a closed cell."""
        return float(np.max(relative_errors(self.cells), initial=0.0))

    def ratios(self) -> list[tuple[float, float]]:
        """Return median |error| and median width over those of the best bounds, for each measure and ε."""
        found = []
        for place, best in self.baseline.items():
            part = self._at.get(place[:2], [])
            rows = filled_cells(part, place[2])
            if len(rows):
                error = median_error(part, place[2])
                width = median((rows[:, HIGH] - rows[:, LOW]).tolist())
                found.append((ratio(error, best.error), ratio(width, best.width)))
        return found

    @cached_property
    def _at(self) -> dict[tuple[str, float], list[Answer]]:
        found: dict[tuple[str, float], list[Answer]] = {}
        for each in self.answers:
            found.setdefault((each.question.name, each.epsilon), []).append(each)
        return found


def contained(cells: Floats, truth: int = TRUTH) -> NDArray[np.bool_]:
    """Return which intervals contain the truth, but for rounding of floats."""
    slack = 1e-9 * np.abs(cells[:, truth])
    return np.asarray(
        (cells[:, LOW] - slack <= cells[:, truth]) & (cells[:, truth] <= cells[:, HIGH] + slack)
    )


def relative_errors(cells: Floats) -> Floats:
    """Return |error| / width of the closed cells that have a number."""
    closed = cells[np.isfinite(cells[:, :TRUTH]).all(axis=1)]
    error, width = np.abs(closed[:, VALUE] - closed[:, TRUTH]), closed[:, HIGH] - closed[:, LOW]
    slack = 1e-9 * np.abs(closed[:, TRUTH])
    with np.errstate(all="ignore"):
        return np.asarray(np.where(error <= slack, 0.0, error / width))


def share(flags: NDArray[np.bool_]) -> float:
    """Return the share that is true; NaN of nothing."""
    return float(np.mean(flags)) if flags.size else math.nan


def ratio(ours: float, best: float) -> float:
    """Return a ratio; 1 where both are 0."""
    if best == 0:
        return 1.0 if ours == 0 else math.inf
    return ours / best


def percent(part: float) -> str:
    return "–" if math.isnan(part) else f"{100 * part:.1f} %"


def short(figure: float) -> str:
    """Return three digits of a number."""
    if math.isnan(figure):
        return "–"
    if math.isinf(figure):
        return "∞"
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


Line = tuple[str, Callable[[Part], str]]


def _least(part: Part) -> str:
    each = part.each_coverage()
    name = min(each, key=lambda one: each[one], default="")
    return f"{percent(each[name])} ({name})" if name else "–"


def _enough(part: Part) -> str:
    each = list(part.each_coverage().values())
    return f"{sum(one >= 0.9 for one in each)} of {len(each)}"


def _error_ratio(part: Part) -> float:
    return median(error for error, _ in part.ratios())


def _width_ratio(part: Part) -> float:
    return median(width for _, width in part.ratios())


LINES: list[Line] = [
    ("coverage of all cells", lambda part: percent(part.coverage())),
    ("coverage, mean of questions", lambda part: percent(float(np.mean([*part.each_coverage().values()])))),
    ("coverage of the truth of rows that have a unit", lambda part: percent(part.coverage(OWNED))),
    ("questions with a coverage of at least 90 %", _enough),
    ("least coverage of a question", _least),
    ("cells with an open side", lambda part: percent(part.open())),
    ("of these, cells without a number", lambda part: percent(share(np.isnan(part.cells[:, VALUE])))),
    (
        "closed cells off by more than 3 widths",
        lambda part: percent(share(relative_errors(part.cells) > FAR_OFF)),
    ),
    ("answers with a warning", lambda part: percent(share(np.array([a.warned for a in part.answers], bool)))),
    ("coverage of cells with a warning", lambda part: percent(part.only(lambda a: a.warned).coverage())),
    ("coverage of cells without one", lambda part: percent(part.only(lambda a: not a.warned).coverage())),
    (
        "median error × best, of answers with a warning",
        lambda part: short(_error_ratio(part.only(lambda a: a.warned))),
    ),
    (
        "median error × best, of answers without one",
        lambda part: short(_error_ratio(part.only(lambda a: not a.warned))),
    ),
    ("median error × best, of all measures", lambda part: short(_error_ratio(part))),
    ("median width × honest width of the best", lambda part: short(_width_ratio(part))),
    ("private groups that are left out", lambda part: percent(median(a.left_out for a in part.answers))),
    ("CPU seconds of an answer, median", lambda part: short(median(a.seconds for a in part.answers))),
]


def summary(whole: Part, epsilons: Sequence[float]) -> str:
    """Return the table of all questions, by ε."""
    parts = [Part([a for a in whole.answers if a.epsilon == epsilon], whole.baseline) for epsilon in epsilons]
    head = ["", *(f"ε = {epsilon:g}" for epsilon in epsilons), "all"]
    return table(head, [[name, *(said(part) for part in (*parts, whole))] for name, said in LINES])


def by_kind(whole: Part) -> str:
    """Return the table by how groups are known, and by source."""
    kinds: list[tuple[str, Callable[[Answer], bool]]] = [
        *((f"groups: {kind}", lambda a, k=kind: a.question.groups == k) for kind in KINDS),
        *((f"source: {name}", lambda a, s=name: a.question.source == s) for name in SOURCES),
    ]
    rows = []
    for name, keep in kinds:
        part = whole.only(keep)
        if part.answers:
            rows.append(
                [
                    name,
                    f"{len(part.questions)}",
                    f"{len(part.cells):,}",
                    percent(part.coverage()),
                    _least(part),
                    percent(part.open()),
                    short(_error_ratio(part)),
                    short(_width_ratio(part)),
                ]
            )
    head = [
        "",
        "questions",
        "cells",
        "coverage",
        "least of a question",
        "open",
        "error × best",
        "width × best",
    ]
    return table(head, rows)


KINDS = ("one", "few", "many", "empty", "private")


def by_question(whole: Part, epsilons: Sequence[float]) -> str:
    """Return the table of every measure of every question; figures of each ε stand beside each other."""
    rows = []
    for part in whole.questions.values():
        rows += [_measure_row(part, name, epsilons) for name in _measures(part)]
    head = [
        "question: measure", "groups", "coverage", "open", "warned", "median width", "median error",
        "worst error / width", "error × best", "width × best", "best rows", "CPU s",
    ]  # fmt: skip
    return table(head, rows)


def _measures(part: Part) -> list[str]:
    return list(dict.fromkeys(name for each in part.answers for name in each.cells))


def _measure_row(part: Part, name: str, epsilons: Sequence[float]) -> list[str]:
    question = part.answers[0].question
    places = [(question.name, epsilon, name) for epsilon in epsilons]
    only = {place: best for place, best in part.baseline.items() if place in places}
    parts = [
        Part([_of_measure(a, name) for a in part.answers if a.epsilon == epsilon and name in a.cells], only)
        for epsilon in epsilons
    ]
    bests = [only.get(place) for place in places]

    def said(figure: Callable[[Part], float], form: Callable[[float], str] = short) -> str:
        return " / ".join(form(figure(each)) for each in parts)

    return [
        f"{question.name}: {name}",
        question.groups,
        said(lambda each: each.coverage(), lambda p: "–" if math.isnan(p) else f"{100 * p:.0f}") + " %",
        said(lambda each: each.open(), lambda p: "–" if math.isnan(p) else f"{100 * p:.0f}") + " %",
        said(
            lambda each: share(np.array([a.warned for a in each.answers], bool)),
            lambda p: "–" if math.isnan(p) else f"{100 * p:.0f}",
        )
        + " %",
        said(lambda each: _median_width(each, name)),
        said(lambda each: median_error(each.answers, name)),
        said(lambda each: each.far_off()),
        said(_error_ratio),
        said(_width_ratio),
        " / ".join("–" if best is None else f"{best.rows}" for best in bests),
        short(median(a.seconds for each in parts for a in each.answers)),
    ]


def _median_width(part: Part, name: str) -> float:
    rows = filled_cells(part.answers, name)
    return median((rows[:, HIGH] - rows[:, LOW]).tolist())


def _of_measure(answer: Answer, name: str) -> Answer:
    cells, keys = {name: answer.cells[name]}, {name: answer.keys[name]}
    return Answer(
        answer.question, answer.epsilon, cells, keys, answer.warned, answer.seconds, answer.left_out
    )


def commit() -> str:
    """Return the last commit of the library, and whether it was changed since."""
    library = str(HERE.parent / "dalenius")
    try:
        last, changed = (
            subprocess.run(["git", "-C", library, *words], capture_output=True, text=True, check=True).stdout
            for words in (["log", "-1", "--format=%h", "--", "."], ["status", "--porcelain", "--", "."])
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{last.strip()}{' with changes' if changed else ''}"


def report(
    asked: Asked, baseline: Baseline, questions: Sequence[Question], options: argparse.Namespace
) -> str:
    """Return the whole report."""
    whole = Part(asked.answers, baseline)
    answered = len(whole.questions)
    learned = options.profile is not None and hasattr(Table, "learn")
    profile = f"a profile of ε = {options.profile:g} first" if learned else "no profile"
    refused = [
        [each.name, f"`{each.sql}`", asked.refused[each.name]]
        for each in questions
        if each.name in asked.refused
    ]
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in options.epsilon)
    epsilons = ", ".join(f"{epsilon:g}" for epsilon in options.epsilon)
    said = [
        "# Do intervals contain the truth?\n",
        f"Library of commit {commit()}, DuckDB {version('duckdb')}, {processor()}. {options.runs} runs of "
        f"{len(questions)} questions at ε = {epsilons}, default settings, {profile}. {answered} questions "
        f"answered, {len(refused)} refused. {len(whole.cells):,} cells.\n",
        "The truth is that of the whole table, by DuckDB. “Best” are the fixed bounds with the least median "
        "error, chosen with sight of the data, with their honest width; see tables_truth.py. The questions "
        "are in tables_truth.sql.\n",
        "## All questions\n",
        summary(whole, options.epsilon),
        "## By kind of groups, and by table\n",
        by_kind(whole),
        "## Refused\n",
        table(["question", "SQL", "refusal"], refused),
        "## Every measure\n",
        f"Figures of ε = {' / '.join(f'{e:g}' for e in options.epsilon)} stand beside each other.\n",
        by_question(whole, options.epsilon),
    ]
    return "\n".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of the intervals of private answers.")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--questions", default="", help="a pattern of names")
    parser.add_argument("--profile", type=float, help="learn a profile of this ε first")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="where the best bounds are kept")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    questions = read_questions(options.questions)
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder))
        bench = Bench(Path(folder))
        asked = ask_all(bench, questions, options.epsilon, options.runs, options.profile)
        answered = [each for each in questions if any(a.question is each for a in asked.answers)]
        baseline = Oracle(bench, options.baseline).baseline(answered, options.epsilon)
    text = report(asked, baseline, questions, options)
    print(text)
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
