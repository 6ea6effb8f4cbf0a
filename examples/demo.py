"""What one training run costs in privacy: the theorems side by side, and the best attack against it."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

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


def main() -> None:
    """Show the comparison and the attacks, and save the trade-off picture."""
    console = Console()
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
