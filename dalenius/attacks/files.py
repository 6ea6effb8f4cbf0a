"""Columns of a CSV or Parquet file, as text: so values that are written alike agree, in whatever file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument


def read_columns(path: str | Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The named columns of a file."""
    import duckdb

    file = Path(path)
    if not file.exists():
        raise InvalidArgument(f"There is no file {file}.", remedy="Check the path.")
    try:
        with duckdb.connect() as engine:
            table = _opened(engine, file)
            _check(file, names, table.columns)
            quoted = ['CAST("{}" AS VARCHAR)'.format(name.replace('"', '""')) for name in names]
            rows = table.project(", ".join(quoted)).fetchall()
    except duckdb.Error:
        raise InvalidArgument(
            f"{file} cannot be read as a table.", remedy="Pass a CSV file with a header, or a Parquet file."
        ) from None
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: np.array(column, dtype=object) for name, column in zip(names, columns, strict=True)}


def _opened(engine: Any, file: Path) -> Any:
    if file.suffix == ".parquet":
        return engine.read_parquet(str(file))
    return engine.read_csv(str(file), all_varchar=True, header=True)


def _check(file: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    for name in names:
        if name not in columns:
            raise InvalidArgument(f"{file} has no column {name!r}.", remedy=f"It has: {', '.join(columns)}.")
