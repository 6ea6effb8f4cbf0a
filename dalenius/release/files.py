"""A release as a file for others: CSV for programs, Excel for people."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.display import harmless
from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.release.cells import Cell

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

    from dalenius.release.release import Release

MOST_ROWS, LONGEST = 1_048_575, 32_767
"""Rows below the head, and letters of a cell, that a sheet of Excel holds."""
_WIDEST, _EXACT = 60, 1 << 53


def csv_text(columns: Mapping[str, Sequence[Cell]]) -> str:
    """Return all columns as CSV; an empty cell is missing, and an end that is inf is open."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*columns.values(), strict=True))
    return written.getvalue()


def write_excel(release: Release, path: Path) -> None:
    """Write two sheets: the table, counts not below 0, and what the receipt states."""
    if len(release) > MOST_ROWS:
        raise InvalidArgument(
            f"A sheet of Excel holds {MOST_ROWS:,} rows; this release has {len(release):,}.",
            remedy="Write it with to_csv.",
        )
    try:
        from openpyxl import Workbook
    except ImportError as absent:
        raise MissingExtra(
            "Writing a file of Excel needs openpyxl.", remedy="Run: pip install 'dalenius[excel]'"
        ) from absent
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "release"
    columns = release.shown.columns
    _fill(sheet, [list(columns), *map(list, zip(*columns.values(), strict=True))])
    stated = [
        ("error bars", "none" if release.confidence is None else f"{float(100 * release.confidence):g} %")
    ]
    _fill(
        book.create_sheet("receipt"),
        [["stated", "what"], *map(list, [*stated, *release.shown.receipt.lines()])],
    )
    book.save(path)


def _fill(sheet: Worksheet, rows: Sequence[Sequence[Cell]]) -> None:
    """Write rows under a head that stays in view; texts stay texts, also those that look like formulas."""
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    widths = [0] * len(rows[0])
    for i, row in enumerate(rows, 1):
        for j, value in enumerate(row, 1):
            written = _written(value)
            cell = sheet.cell(i, j, written)
            if isinstance(written, str):
                cell.data_type = "s"
            cell.font = Font(bold=i == 1)
            if isinstance(value, int) and not isinstance(value, bool):
                cell.number_format = (
                    "#,##0" if sheet.title == "release" and not _is_key(rows[0][j - 1], rows[0]) else "0"
                )
            if isinstance(written, str) and i > 1:
                cell.alignment = Alignment(wrap_text=True, vertical="top")
            widths[j - 1] = max(widths[j - 1], min(_WIDEST, len(str(written or ""))))
    for j, width in enumerate(widths, 1):
        sheet.column_dimensions[get_column_letter(j)].width = width + 2
    sheet.freeze_panes = "A2"


def _is_key(name: Cell, head: Sequence[Cell]) -> bool:
    """Whether a column is not a measure or an end of one: keys such as years have no thousands set apart."""
    text = str(name)
    stem = next((text.removesuffix(end) for end in ("_low", "_high") if text.endswith(end)), text)
    return f"{stem}_low" not in map(str, head)


def _written(value: Cell) -> Any:
    """Return a cell as Excel holds it: numbers beyond its own, and infinities, as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return str(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return harmless(value)[:LONGEST] if isinstance(value, str) else value
