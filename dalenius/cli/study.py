"""`dalenius study`: what privacy costs in accuracy, and for whom, on one's own data."""

from __future__ import annotations

import re
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from dalenius.cli.output import emit_json, exact
from dalenius.cli.query_options import read_range
from dalenius.display import harmless
from dalenius.errors import InvalidArgument, MissingExtra

if TYPE_CHECKING:
    from dalenius.report.study import Payment, Study

SEVERAL = ("--epsilon", "--clips")
"""Options that take numbers as long as numbers follow."""
NUMBER = re.compile(r"[0-9.][0-9./e+-]*", re.IGNORECASE)


class Spread(TyperCommand):
    """A command whose options may be given several numbers in a row."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As if the option stood before each of its numbers."""
        return super().parse_args(ctx, spread(args))


def spread(words: list[str]) -> list[str]:
    """Words with the option repeated before each further number."""
    found: list[str] = []
    for word in words:
        option = next((one for one in found[-2:-1] if one in SEVERAL), None)
        if option is not None and NUMBER.fullmatch(word):
            found.append(option)
        found.append(word)
    return found


def study(
    data: Annotated[Path, typer.Argument(help="An .npz, a .parquet, or a folder of images for each class.")],
    epsilon: Annotated[list[str], typer.Option(help="Values of ε, such as 0.5 1 3 8.")],
    delta: Annotated[str, typer.Option(help="The δ of each run, such as 1e-5.")],
    out: Annotated[Path, typer.Option(help="The folder to make: study.json, pictures, index.html.")],
    label: Annotated[str | None, typer.Option(help="The column of labels; y in an .npz.")] = None,
    group: Annotated[str | None, typer.Option(help="The column of groups to compare.")] = None,
    features: Annotated[str | None, typer.Option(help="Columns to learn from, such as age,sex.")] = None,
    classes: Annotated[str | None, typer.Option(help="All classes, where they are public: a,b.")] = None,
    groups: Annotated[str | None, typer.Option(help="All groups, where they are public: a,b.")] = None,
    ranges: Annotated[
        list[str] | None, typer.Option("--range", help="Where a column lies, such as age=0:120.")
    ] = None,
    size: Annotated[int, typer.Option(help="Images are made so wide and high.")] = 32,
    model: Annotated[
        str | None, typer.Option(help="logistic, mlp, cnn, module:function or file.py:function.")
    ] = None,
    epochs: Annotated[str, typer.Option(help="Passes over the training rows.")] = "10",
    batch_size: Annotated[int | None, typer.Option(help="Rows expected in a batch.")] = None,
    clip: Annotated[str, typer.Option(help="The bound on the norm of a gradient.")] = "1",
    clips: Annotated[list[str] | None, typer.Option(help="Bounds to compare, such as 0.1 1 10.")] = None,
    rate: Annotated[str, typer.Option(help="The learning rate of Adam.")] = "0.005",
    test_share: Annotated[str, typer.Option(help="The share of rows to test on.")] = "0.2",
    seed: Annotated[int, typer.Option(min=0, help="Of split and weights; noise is never fixed.")] = 0,
    shadows: Annotated[
        int, typer.Option(min=0, help="Models of each setting for a stronger attack (LiRA), such as 16.")
    ] = 0,
    charge: Annotated[
        tuple[str, str] | None, typer.Option(help="A ledger, and its account that pays for all.")
    ] = None,
    public_size: Annotated[
        int | None, typer.Option(help="With --charge: a number of rows that may be published.")
    ] = None,
    metrics_epsilon: Annotated[
        str | None, typer.Option(help="With --charge: the ε of each run's table of answers.")
    ] = None,
    by: Annotated[str, typer.Option(help="With --charge: who asks.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")] = False,
) -> None:
    """Train a model with and without privacy, and say what privacy costs, and whom."""
    from dalenius.report import study as studies
    from dalenius.report.study.paying import unstated

    _check(out)
    with ExitStack() as still_open:
        payment = _payment(still_open, charge, public_size, metrics_epsilon, by)
        if payment is not None and classes is None:
            raise unstated()
        rows = studies.read(
            data,
            label=label,
            group=group,
            features=_names(features),
            classes=_names(classes),
            groups=_names(groups),
            ranges=_ranges(ranges),
            size=size,
        )
        out.mkdir(parents=True)
        try:
            found = studies.run(
                rows,
                epsilons=[exact(one, "epsilon") for one in epsilon],
                delta=exact(delta, "delta"),
                model=model,
                epochs=exact(epochs, "epochs"),
                batch_size=batch_size,
                clip=exact(clip, "clip"),
                clips=None if not clips else [exact(one, "clips") for one in clips],
                rate=exact(rate, "rate"),
                test_share=exact(test_share, "test_share"),
                seed=seed,
                shadows=shadows,
                payment=payment,
                told=None if json else lambda line: typer.echo(f"training: {line}", err=True),
            )
            found.save(out)
        except BaseException:
            if not any(out.iterdir()):
                out.rmdir()
            raise
    _show(found, out, json)


def _check(out: Path) -> None:
    """What would be missed only after everything was trained, and paid for."""
    from dalenius.report.study.result import taken

    if out.exists():
        raise taken(out)
    if find_spec("matplotlib") is None:
        raise MissingExtra("Drawing a figure needs matplotlib.", remedy="Run: pip install 'dalenius[plot]'")


def _payment(
    still_open: ExitStack,
    charge: tuple[str, str] | None,
    public_size: int | None,
    metrics_epsilon: str | None,
    by: str,
) -> Payment | None:
    from dalenius.cli.ledger import existing
    from dalenius.report.study import Payment

    if charge is None:
        if public_size is not None or metrics_epsilon is not None:
            raise InvalidArgument(
                "--public-size and --metrics-epsilon are for a study that an account pays for.",
                remedy="Add --charge LEDGER ACCOUNT, or leave them out.",
            )
        return None
    if public_size is None or metrics_epsilon is None:
        raise InvalidArgument(
            "A study that an account pays for needs --public-size and --metrics-epsilon.",
            remedy="Add --public-size 10000, rows that you are ready to publish, and --metrics-epsilon 0.5.",
        )
    ledger = still_open.enter_context(existing(charge[0]))
    return Payment(ledger.account(charge[1]), exact(metrics_epsilon, "metrics_epsilon"), public_size, by)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _ranges(texts: list[str] | None) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for text in texts or ():
        column, (low, high) = read_range(text)
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            raise InvalidArgument("A range goes from number to number.", remedy="Write --range age=0:120.")
        found[column] = float(low), float(high)
    return found


def _show(found: Study, out: Path, as_json: bool) -> None:
    files = {"page": str(out / "index.html"), "json": str(out / "study.json")}
    files |= {name: str(out / f"{name}.png") for name in found.figures}
    if as_json:
        emit_json({**found.to_dict(), "files": files})
        return
    typer.echo(found.table())
    if found.settings.get("rows_left_out"):
        typer.echo(f"\nLeft out: {found.settings['rows_left_out']} rows of none of the classes.")
    typer.echo("")
    for name in files.values():
        typer.echo(harmless(name))
