"""Importing the package loads nothing heavy: each dependency arrives with the first use of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

THIRD_PARTY = {
    "click",
    "cryptography",
    "duckdb",
    "flint",
    "matplotlib",
    "numpy",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "rich",
    "scipy",
    "sqlglot",
    "torch",
    "sklearn",
    "typer",
}


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "statement",
    [
        "import dalenius",
        "import dalenius.learn",
        "import dalenius.learn.tabular",
        "import dalenius.local",
        "import dalenius.losses",
        "import dalenius.privacy",
        "import dalenius.noise",
        "import dalenius.mechanisms",
        "import dalenius.errors",
        "import dalenius.figures",
        "import dalenius.privacy.unit",
        "import dalenius.report.study",
        "import dalenius.tables",
        "import dalenius as dp; dp.Unit('person')",
        "import dalenius as dp; dir(dp), dp.__version__",
    ],
)
def test_nothing_but_the_interpreter_is_loaded(statement: str) -> None:
    assert loaded_by(statement) & THIRD_PARTY == set()


def test_describing_a_loss_loads_no_more_than_numpy_and_flint() -> None:
    described = loaded_by("from dalenius.losses import Gaussian; Gaussian(noise_multiplier=4)")
    assert described & THIRD_PARTY <= {"numpy", "flint"}


def test_the_command_line_loads_no_engine_before_a_query() -> None:
    assert (
        loaded_by("import dalenius.cli.app") & {"duckdb", "sqlglot", "pandas", "polars", "pyarrow"} == set()
    )
