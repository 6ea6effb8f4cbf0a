"""Private answers about a column, and what one training run costs: theorems side by side, the best attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import dalenius as dp
from dalenius.figures import Figure, Series
from dalenius.losses import Gaussian, Loss, compare

DELTA = 1e-5
PICTURES = Path("build")


def tradeoff_figure(loss: Loss, title: str) -> Figure:
    """The errors of the best membership test, certified, beside those of guessing."""
    fprs = [i / 60 for i in range(61)]
    return Figure(
        title,
        "false-positive rate",
        "false-negative rate",
        series=[
            Series("best test anyone can make", fprs, [float(loss.tradeoff(fpr)) for fpr in fprs]),
            Series("guessing", [0, 1], [1, 0], style="dashed"),
        ],
        notes=["No test of whether a person's record was used lies below the line, whatever it knows."],
    )


def attacks(loss: Loss) -> Table:
    """How many members the best test finds when it may accuse few others."""
    table = Table(title="The best membership test, at most", title_justify="left")
    for column in ("accuses wrongly", "finds", ""):
        table.add_column(column, justify="left" if not column else "right")
    for fpr in (0.001, 0.01, 0.05, 0.1, 0.25, 0.5):
        found = 1 - float(loss.tradeoff(fpr))
        table.add_row(f"{fpr:.1%}", f"{found:.1%}", "█" * round(40 * found))
    return table


def answers() -> Table:
    """Four releases about five thousand ages, each with what it is worth and what it costs."""
    ages = (np.arange(5000) * 37 % 1000 / 11).astype(int)
    table = Table(title="5,000 ages, four private releases", title_justify="left")
    for column in ("asked", "released", "without privacy"):
        table.add_column(column)
    table.add_row("how many", str(dp.count(ages, epsilon=0.5)), f"{len(ages)}")
    table.add_row("mean", str(dp.mean(ages, lower=0, upper=100, epsilon=0.5)), f"{ages.mean():.2f}")
    table.add_row("median", str(dp.median(ages, lower=0, upper=100, epsilon=0.5)), f"{np.median(ages):g}")
    table.add_row("sum", str(dp.sum(ages, lower=0, upper=100, epsilon=0.5)), f"{ages.sum()}")
    return table


def main() -> None:
    """Show private answers, the comparison and the attacks, and save the trade-off picture."""
    console = Console()
    console.print(answers())
    loss = Gaussian(noise_multiplier=4).poisson(0.01) * 10_000
    console.print("\n[bold]10,000 steps of private training[/bold]: noise multiplier 4, sampling rate 0.01")
    console.print(compare(loss, delta=DELTA))
    console.print(attacks(loss))
    PICTURES.mkdir(exist_ok=True)
    figure = tradeoff_figure(loss, "Can anyone tell whether you were in the data?")
    for ending in ("svg", "png"):
        console.print(f"saved {figure.save(PICTURES / f'tradeoff.{ending}')}")


if __name__ == "__main__":
    main()
