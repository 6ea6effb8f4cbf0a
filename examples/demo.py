"""Private answers about a column, an account that keeps count, and what one training run costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import dalenius as dp
from dalenius.errors import BudgetExceeded
from dalenius.figures import Figure, Series
from dalenius.ledger import Account
from dalenius.ledger.overview import overview
from dalenius.ledger.picture import burn_down
from dalenius.losses import Gaussian, Laplace, Loss, Pure, compare
from dalenius.mechanisms import BoundedMean, Quantile

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


def account(training: Loss) -> Account:
    """Releases by three analysts about the same people, on one budget."""
    ages, wards = np.arange(5000) % 90, np.arange(5000) % 7
    people = dp.Ledger.memory().open(
        "people", unit=dp.Unit("person", column="person_id"), budget=dp.Budget(epsilon=3, delta=DELTA)
    )
    mean = BoundedMean.calibrate(epsilon=0.2, lower=0, upper=100)
    for ward, name in enumerate(("north", "south", "west")):
        people.cell("ward", name).spend(mean, ages[wards == ward], by="ana", purpose="wards")
    people.spend(Quantile.calibrate(epsilon=0.3, lower=0, upper=100), ages, by="ana", purpose="ages")
    with people.reserve(training, by="bo", purpose="model"):
        pass  # the run broke off: it stays charged, and nothing is released
    people.record(Laplace(scale=4) * 2, by="cy", purpose="survey", note="made with another tool")
    return people


def refused(people: Account) -> str:
    """What one release too many is told."""
    try:
        people.record(Pure(2), by="cy", purpose="survey")
    except BudgetExceeded as error:
        return str(error)
    return "accepted"


def main() -> None:
    """Show private answers, an account, the comparison and the attacks, and save two pictures."""
    console = Console()
    console.print(answers())
    loss = Gaussian(noise_multiplier=4).poisson(0.01) * 10_000
    people = account(loss)
    console.print(
        "\n[bold]The same people, one account[/bold]: queries, a training run, another tool's table\n"
    )
    console.print(overview(people, newest=3))
    console.print(f"\nrefused: {refused(people)}", style="bold", highlight=False)
    console.print("\n[bold]10,000 steps of private training[/bold]: noise multiplier 4, sampling rate 0.01")
    console.print(compare(loss, delta=DELTA))
    console.print(attacks(loss))
    PICTURES.mkdir(exist_ok=True)
    figure = tradeoff_figure(loss, "Can anyone tell whether you were in the data?")
    for name, picture in (("tradeoff", figure), ("burn", burn_down([people], against="entries"))):
        for ending in ("svg", "png"):
            console.print(f"saved {picture.save(PICTURES / f'{name}.{ending}')}")


if __name__ == "__main__":
    main()
