"""A census asked in SQL: an answer, its error bars, its budget, a refusal, and what an attacker sees."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
from rich.console import Console

import dalenius as dp
from dalenius.figures import Figure, Series
from dalenius.ledger import Account
from dalenius.ledger.picture import burn_down
from dalenius.losses import Gaussian, compare

DATA = Path(__file__).parent / "data" / "adult.csv.gz"
PICTURES = Path("build")
WORK = """SELECT education, COUNT(*) AS people, AVG(hours_per_week) AS hours
FROM adult GROUP BY education ORDER BY people DESC"""
RICH = "SELECT COUNT(*) AS rich FROM adult WHERE income = '>50K'"
PEOPLE, EPSILON = 20, 0.1
"""How many people are attacked, and the ε of each answer the attacker gets."""

console = Console(highlight=False)


def shell(folder: str, *words: str, most: int = 100) -> None:
    """Run the command line in a folder, and show the line and what it prints."""
    quoted = " ".join(f'"{" ".join(word.split())}"' if " " in word else word for word in words)
    console.print(f"\n[bold]$ dalenius {quoted}[/bold]", soft_wrap=True)
    command = [sys.executable, "-m", "dalenius", *words]
    done = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    lines = done.stdout.splitlines()
    cut = [f"… {len(lines) - most} more lines"] if len(lines) > most else []
    console.print("\n".join([*lines[:most], *cut]), markup=False, soft_wrap=True)
    if done.returncode:
        console.print(f"{done.stderr.rstrip()}\n(exit code {done.returncode})", markup=False, style="red")


def answers(folder: str) -> None:
    """One shell line, the same again, and one question too many."""
    one = ("query", DATA.name, WORK, "--unit", "person", "--range", "hours_per_week=0:100", "--epsilon", "1")
    shell(folder, *one, "--budget", "2", "--delta", "1e-9")
    console.print("\nThe same question again is answered from what was released, and costs nothing:")
    shell(folder, *one, "--csv", most=4)
    console.print("\nA question that does not fit is refused, and told what would:")
    shell(folder, "query", DATA.name, RICH, "--unit", "person", "--epsilon", "1.9")


def targets(census: duckdb.DuckDBPyConnection) -> list[tuple[str, bool]]:
    """People whom what is known of them tells apart: as a condition, and whether they earn much."""
    names = ("age", "education", "occupation", "native_country", "sex")
    known = ", ".join(names)
    rows = census.sql(
        f"""SELECT {known}, bool_or(income = '>50K') FROM adult GROUP BY {known}
        HAVING count(*) = 1 AND native_country <> 'United-States' ORDER BY hash(({known})) LIMIT {PEOPLE}"""
    ).fetchall()
    return [
        (" AND ".join(f"{name} = {value!r}" for name, value in zip(names, row[:-1], strict=True)), row[-1])
        for row in rows
    ]


def belief(difference: float, prior: float) -> float:
    """How likely it is, by Bayes' rule, that the person left out earns much, after a noisy difference.

    The difference of two Laplace noises of scale s has density proportional to (1 + |x|/s) exp(−|x|/s).
    """

    def density(x: float) -> float:
        return (1 + abs(x) * EPSILON) * math.exp(-abs(x) * EPSILON)

    yes, no = prior * density(difference - 1), (1 - prior) * density(difference)
    return yes / (yes + no)


def attack(folder: str) -> Figure:
    """The same question with and without one person: exact answers tell the income, private ones do not."""
    source = f"{folder}/adult.parquet"
    exact = duckdb.connect()
    exact.execute(f"CREATE TABLE adult AS FROM '{DATA}'; COPY adult TO '{source}'")
    private = dp.table(
        source,
        unit=dp.Unit("person"),
        budget=dp.Budget(epsilon=EPSILON * (PEOPLE + 1)),
        ledger=dp.Ledger.memory(),
    )

    def number(question: str) -> int:
        ((found,),) = exact.sql(question).fetchall()
        return int(found)

    people, all_rich = targets(exact), number(RICH)
    prior = all_rich / number("SELECT COUNT(*) FROM adult")
    sure, beliefs = [], []
    for condition, _ in people:
        without = f"{RICH} AND NOT ({condition})"
        sure.append(float(all_rich - number(without)))
        # The first question is the same each time, so it is charged once.
        both = [private.sql(question, epsilon=EPSILON).value for question in (RICH, without)]
        beliefs.append(belief(both[0] - both[1], prior))
    tell(people, sure, beliefs, prior, private.account)
    return picture(sure, beliefs, prior)


def tell(
    people: list[tuple[str, bool]], sure: list[float], beliefs: list[float], prior: float, account: Account
) -> None:
    """The picture in words."""
    told = sum(bool(one) == earns for one, (_, earns) in zip(sure, people, strict=True))
    console.print(f"exact answers tell for {told} of {PEOPLE} people whether they earn more than $50,000")
    console.print(
        f"private answers leave the attacker between {min(beliefs):.0%} and {max(beliefs):.0%} sure of it, "
        f"who was {prior:.0%} sure before\nand then the account is empty: {account.spent}"
    )


def picture(sure: list[float], beliefs: list[float], prior: float) -> Figure:
    """What the attacker believes of each person, after exact and after private answers."""
    order = [float(i + 1) for i in range(PEOPLE)]
    return Figure(
        "Does this person earn more than $50,000?",
        "person",
        "what the attacker believes",
        series=[
            Series("after exact answers", order, sure, style="points"),
            Series("after private answers", order, beliefs, style="points"),
            Series("before", [1, PEOPLE], [prior, prior], style="dashed"),
        ],
        notes=[
            "Each is the only one with their age, education, occupation, country and sex. "
            "The attacker asks how many people earn that much, with and without the one."
        ],
    )


def main() -> None:
    """Answers, a refusal, an attack, a training run, and two pictures."""
    console.print("[bold]32,561 people of a census[/bold], one row for each (examples/data/README.md)")
    with TemporaryDirectory() as folder:
        shutil.copy(DATA, folder)
        answers(folder)
        spent = burn_down([dp.Ledger(f"{folder}/adult.ledger").account("adult")], against="entries")
        console.print("\n[bold]What an attacker does[/bold]: the same question with and without one person")
        attacked = attack(folder)
    console.print("\n[bold]One ledger for models too[/bold]: 10,000 steps of private training")
    console.print(compare(Gaussian(noise_multiplier=4).poisson(0.01) * 10_000, delta=1e-5))
    PICTURES.mkdir(exist_ok=True)
    for name, drawn in (("attack", attacked), ("burn", spent)):
        console.print(f"saved {drawn.save(PICTURES / f'{name}.svg')}")


if __name__ == "__main__":
    main()
