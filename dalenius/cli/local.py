"""`dalenius local`: private reports from a column, what they add up to, and what they would."""

from __future__ import annotations

import csv
import json as texts
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from dalenius.cli.output import emit_json, exact
from dalenius.display import harmless
from dalenius.errors import InvalidArgument
from dalenius.privacy import numbers

if TYPE_CHECKING:
    from dalenius.local import FrequencyOracle, Randomizer
    from dalenius.release import Release

OTHER = "(other)"
"""The item of whatever is not in the list."""
ENCODING = "utf-8-sig"
"""Of all files: a mark at their beginning, as some programs write it, is no part of the text."""
LONGEST = 2**31 - 1
"""Of a value: none is so long that the file is refused for it."""
MOST_DIGITS = 100
"""Of a number of people."""
PROTOCOLS = {
    "kary": "k-ary randomized response",
    "hadamard": "Hadamard response",
    "projective": "projective geometry response",
    "hashing": "local hashing",
    "optimized": "optimized unary encoding",
    "symmetric": "symmetric unary encoding",
    "subset": "subset selection",
}

Epsilon = Annotated[str, typer.Option(help="The ε of one report, such as 1.")]
Items = Annotated[
    Path | None, typer.Option(help="A text file of all items, one a line; all else is (other).")
]
Domain = Annotated[int | None, typer.Option(help="Instead of items: values are numbers below this.")]
Name = Annotated[str, typer.Option("--protocol", help=f"best, or one of {', '.join(PROTOCOLS)}.")]
Bits = Annotated[int | None, typer.Option(help="With best: the most bits of a report.")]
Top = Annotated[int, typer.Option(min=1, help="Print so many items, the most frequent first.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]

app = typer.Typer(no_args_is_help=True, help="Private reports without a trusted curator.")


@app.command()
def encode(
    source: Annotated[Path, typer.Argument(help="A CSV file, or a text with a value on each line.")],
    epsilon: Epsilon,
    out: Annotated[Path, typer.Option(help="The file of reports to write.")],
    column: Annotated[str | None, typer.Option(help="The column of the CSV file.")] = None,
    items: Items = None,
    domain: Domain = None,
    protocol: Name = "best",
    bits: Bits = None,
    json: Json = False,
) -> None:
    """Make a private report of each value of a column."""
    names = _names(items)
    oracle = _oracle(names, domain, epsilon, protocol, bits)
    reports = oracle.encode(_values(source, column, names))
    out.write_bytes(reports.to_bytes())
    told = {
        "reports": len(reports),
        "bits": oracle.bits,
        "file": str(out),
        "mechanism": texts.loads(oracle.to_json()),
    }
    if json:
        emit_json(told)
    else:
        typer.echo(
            f"{len(reports)} reports of {oracle.bits} bits, {type(oracle).__name__}: {harmless(str(out))}"
        )


@app.command()
def estimate(
    reports: Annotated[list[Path], typer.Argument(help="Files of reports.")],
    epsilon: Epsilon,
    items: Items = None,
    domain: Domain = None,
    protocol: Name = "best",
    bits: Bits = None,
    charge: Annotated[
        tuple[str, str] | None, typer.Option(help="A ledger, and its account that pays for one report each.")
    ] = None,
    by: Annotated[str, typer.Option(help="With --charge: who asks.")] = "",
    forged: Annotated[
        str, typer.Option(help="The most that a fraction of forged reports may be, such as 0.01.")
    ] = "0",
    top: Top = 20,
    json: Json = False,
) -> None:
    """Add reports up, and print the share of each item with its error bar."""
    from dalenius.cli.ledger import existing

    # Read before anything is charged.
    part = numbers.probability(exact(forged, "forged"), "forged")
    names = _names(items)
    oracle = _oracle(names, domain, epsilon, protocol, bits)
    collected = oracle.estimator()
    for path in _different(reports):
        collected.add(path.read_bytes())
    if not collected.count:
        raise InvalidArgument("There are no reports in these files.", remedy="Pass a file that has some.")
    with ExitStack() as still_open:
        if charge is not None:
            account = still_open.enter_context(existing(charge[0])).account(charge[1])
            collected = oracle.estimator(account, by=by, purpose="local estimate").merge(collected)
        _show(collected.estimate(forged=part), names, top, json)


@app.command()
def simulate(
    counts: Annotated[
        Path, typer.Argument(help="A CSV file of items, strings or numbers, and how many people have each.")
    ],
    epsilon: Annotated[str | None, typer.Option(help="The ε of one report, such as 1.")] = None,
    protocol: Name = "best",
    bits: Bits = None,
    mechanism: Annotated[
        Path | None,
        typer.Option(
            help="Instead of these: a file of JSON, as to_json() writes it, of any that can be drawn."
        ),
    ] = None,
    top: Top = 20,
    json: Json = False,
) -> None:
    """Draw the estimates that so many people's reports would give, up to a billion and more."""
    from dalenius.local import FrequencyOracle
    from dalenius.local import simulate as drawn

    names, true = _counted(counts)
    if (mechanism is None) == (epsilon is None) or (mechanism and (protocol, bits) != ("best", None)):
        raise InvalidArgument(
            "A protocol is chosen by --epsilon, or read from a file.",
            remedy="Pass one of --epsilon 1 and --mechanism FILE; --protocol and --bits go with the first.",
        )
    if mechanism is None:
        _show(drawn(_oracle(None, len(names), epsilon or "", protocol, bits), true), names, top, json)
        return
    randomizer = _randomizer(mechanism)
    listed = isinstance(randomizer, FrequencyOracle)
    found = drawn(randomizer, true if listed else _crowd(randomizer, names, true))
    _show(found, names if listed else None, top, json)


@app.command()
def plan(
    domain: Annotated[int, typer.Option(help="How many items there are.")],
    users: Annotated[int, typer.Option(help="How many people report.")],
    epsilon: Epsilon,
    bits: Bits = None,
    plot: Annotated[Path | None, typer.Option(help="Draw errors into this file: .svg or .png.")] = None,
    json: Json = False,
) -> None:
    """Say what error each protocol would have, and which to take."""
    from rich.console import Console
    from rich.table import Table

    from dalenius.local import plan as planned

    found = planned(domain, users, exact(epsilon, "epsilon"), bits=bits)
    file = None if plot is None else str(found.figure.save(plot))
    if json:
        rows = [{"protocol": one.name, "error": one.error, "bits": one.bits} for one in found.lines]
        emit_json({"rows": rows, "choice": found.choice.why, "file": file})
        return
    table = Table("protocol", "error (95 %)", "bits", box=None, pad_edge=False)
    for one in found.lines:
        table.add_row(one.name, f"{one.error:.3g}", f"{one.bits:,}")
    Console().print(table)
    typer.echo(f"\nTake {found.choice.why}.")
    if file is not None:
        typer.echo(harmless(file))


def _different(paths: list[Path]) -> list[Path]:
    """Files of which none is there twice, by a link neither."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidArgument(
            "A file of reports is named twice: its people would count twice.", remedy="Name each file once."
        )
    return paths


def _names(items: Path | None) -> list[str] | None:
    """Items by their numbers, the first of them for all that is not listed."""
    if items is None:
        return None
    listed = [line.strip() for line in items.read_text(encoding=ENCODING).splitlines() if line.strip()]
    return list(dict.fromkeys([OTHER, *listed]))


def _oracle(
    names: list[str] | None, domain: int | None, epsilon: str, protocol: str, bits: int | None
) -> FrequencyOracle:
    from dalenius.local import FrequencyOracle
    from dalenius.local.planning import oracle_named

    if (names is None) == (domain is None):
        raise InvalidArgument(
            "Items are either listed or numbered.", remedy="Pass one of --items FILE and --domain 100."
        )
    many, limit = len(names or ()) if domain is None else domain, exact(epsilon, "epsilon")
    if protocol == "best":
        return FrequencyOracle.best(many, limit, bits=bits)
    if protocol not in PROTOCOLS or bits is not None:
        raise InvalidArgument(
            "A protocol is best, which may be given --bits, or one by its name.",
            remedy=f"Pass one of: best, {', '.join(PROTOCOLS)}.",
        )
    return oracle_named(PROTOCOLS[protocol], many, limit)


def _randomizer(file: Path) -> Randomizer:
    from dalenius.local import Randomizer
    from dalenius.mechanisms.mechanism import Mechanism

    found = Mechanism.from_json(file.read_text(encoding="utf-8"))
    if not isinstance(found, Randomizer):
        raise InvalidArgument(
            "This mechanism makes no reports on devices.",
            remedy="Pass the file of one of dalenius.local, such as Rappor(...).to_json().",
        )
    return found


def _crowd(randomizer: Randomizer, names: list[str], people: list[int]) -> dict[Any, int]:
    """Strings, or numbers, and how many people have each."""
    from dalenius.local import SquareWave
    from dalenius.local.reals import NumberRandomizer

    numbers, found = isinstance(randomizer, NumberRandomizer | SquareWave), dict[Any, int]()
    try:
        for name, many in zip(names, people, strict=True):
            value = float(name) if numbers else name
            found[value] = found.get(value, 0) + many
    except ValueError:
        raise InvalidArgument(
            "These reports are of numbers.", remedy="Write lines such as: 3.5,700"
        ) from None
    return found


def _values(source: Path, column: str | None, names: list[str] | None) -> list[Any]:
    """Numbers of items; whatever is none of them is item 0."""
    if column is None and source.suffix.lower() in (".csv", ".tsv"):
        raise InvalidArgument(
            "This is a CSV file, whose header would count as a person.",
            remedy="Name its column, --column city; or pass a .txt file with a value on each line.",
        )
    with source.open(encoding=ENCODING, errors="replace", newline="") as file:
        found = [line.strip() for line in file] if column is None else _column(file, column)
    if names is None:
        return [
            int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0 for value in found
        ]
    number = {name: place for place, name in enumerate(names)}
    return [number.get(value, 0) for value in found]


def _column(file: TextIO, column: str) -> list[str]:
    """Texts of a column; a row cut short has an empty one, and an empty line is a row."""
    before = csv.field_size_limit(LONGEST)
    try:
        rows = csv.reader(file)
        header = next(rows, [])
        if column not in header:
            raise InvalidArgument(f"There is no column {column!r}.", remedy="Name one of the header.")
        place = header.index(column)
        return [row[place].strip() if place < len(row) else "" for row in rows]
    except csv.Error:
        raise InvalidArgument("The file is not a CSV file.", remedy="Quote its texts.") from None
    finally:
        csv.field_size_limit(before)


def _counted(counts: Path) -> tuple[list[str], list[int]]:
    """Items and how many people have each: public, so what is wrong is said."""
    with counts.open(encoding=ENCODING, newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    body = rows if rows and _is_whole(rows[0][-1]) else rows[1:]
    if not body or not all(len(row) == 2 and _is_whole(row[1]) for row in body):
        raise InvalidArgument(
            "The counts are not lines of an item and a number.", remedy="Write lines such as: Berlin,3700000"
        )
    return [row[0].strip() for row in body], [int(row[1]) for row in body]


def _is_whole(text: str) -> bool:
    """Whether it is written in the digits 0 to 9, and not in others that int does not read."""
    return text.strip().isascii() and text.strip().isdigit() and len(text) < MOST_DIGITS


def _show(found: Release, names: list[str] | None, top: int, as_json: bool) -> None:
    """The most frequent items, by their names; or what there is, where it is no shares of items."""
    shown = found
    if "item" in found.columns:
        order = found["share"].argsort()[::-1][:top].tolist()
        columns: dict[str, Any] = {name: [cells[i] for i in order] for name, cells in found.columns.items()}
        if names is not None:
            columns["item"] = [names[number] for number in columns["item"]]
        shown = found.postprocess(f"the {len(order)} largest of {len(found)} shares", columns)
    if as_json:
        emit_json(texts.loads(shown.to_json()))
        return
    typer.echo(str(shown))
    for note in (*shown.receipt.bounds, *shown.receipt.postprocessing):
        typer.echo(harmless(note))
