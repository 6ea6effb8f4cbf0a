"""Copies of files that DuckDB does not read as they are: other encodings than UTF-8, and Excel.

A copy is text in UTF-8, in the folder of the engine, which only this user can read and which goes with it. It
is made anew where the file has changed since. Every byte gives a letter: what an encoding does not know
becomes U+FFFD, so that no record of one person makes a file unreadable, as DuckDB's own decoders do. What is
raised where a file cannot be read at all speaks of no data.
"""

from __future__ import annotations

import codecs
import csv
import os
import threading
import warnings
from datetime import date, datetime, time
from typing import Any
from uuid import uuid4

from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.tables.sources.forms import WINDOWS, opened

EXCEL = (".xlsx", ".xlsm")
_PIECE = 1 << 20
_LOCK = threading.Lock()
codecs.register_error("dalenius-as-it-is", lambda error: _as_it_is(error))


class Copies:
    """The copies of one source's files, by what a file's state was when its copy was made."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._made: dict[tuple[object, ...], str] = {}

    def of(self, path: str, encoding: str, sheet: str | None) -> str:
        """Return a path that DuckDB reads as UTF-8: the file's own where it is that."""
        if not path.lower().endswith(EXCEL) and encoding in ("utf-8", "utf-8-sig", "ascii"):
            return path
        found = os.stat(path)
        state = path, encoding, sheet, found.st_size, found.st_mtime_ns, found.st_ino
        with _LOCK:
            if state not in self._made:
                self._made[state] = self._copied(path, encoding, sheet)
            return self._made[state]

    def _copied(self, path: str, encoding: str, sheet: str | None) -> str:
        copy = os.path.join(self._folder, f"{uuid4().hex}.csv")
        with open(
            os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8", newline=""
        ) as out:
            if path.lower().endswith(EXCEL):
                csv.writer(out).writerows(_rows(path, sheet))
            else:
                _decoded(path, encoding, out)
        return copy


def _decoded(path: str, encoding: str, out: Any) -> None:
    with opened(path) as file:
        piece = file.read(_PIECE)
        if encoding == "utf-16" and not piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            # Python refuses what has no mark at its beginning.
            encoding = "utf-16-le"
        odd = "dalenius-as-it-is" if encoding == WINDOWS else "replace"
        decoder = codecs.getincrementaldecoder(encoding)(odd)
        while piece:
            out.write(_plain(decoder.decode(piece)))
            piece = file.read(_PIECE)
        out.write(_plain(decoder.decode(b"", final=True)))


def _plain(text: str) -> str:
    """Return a text that UTF-8 can hold, and no NUL, which ends a text in some libraries."""
    text = text.replace("\0", "\ufffd")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _as_it_is(error: UnicodeError) -> tuple[str, int]:
    """Read the few bytes that windows-1252 does not know as Latin-1 does."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


def sheets(path: str) -> list[str]:
    """Return the names of the sheets of a workbook."""
    book = _book(path)
    try:
        return list(book.sheetnames)
    finally:
        book.close()


def _book(path: str) -> Any:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingExtra("Excel files need openpyxl.", remedy="pip install 'dalenius[excel]'") from None
    try:
        with warnings.catch_warnings():
            # They may repeat what is in a cell.
            warnings.simplefilter("ignore")
            return load_workbook(path, read_only=True, data_only=True)
    except Exception:
        pass
    raise InvalidArgument(
        "The workbook cannot be opened; nothing was charged.",
        remedy="See that it is an .xlsx file, that it is whole, and that no password protects it.",
    )


def _rows(path: str, sheet: str | None) -> Any:
    """The rows of a sheet as texts, as many cells in each as the first has names."""
    book = _book(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            width = 0
            for number, row in enumerate(book[sheet or book.sheetnames[0]].iter_rows(values_only=True)):
                cells = [_cell(value) for value in row]
                if number == 0:
                    named = [place for place, cell in enumerate(cells) if cell]
                    width = named[-1] + 1 if named else 0
                held = (cells + [""] * width)[:width]
                yield held
    finally:
        book.close()


def _cell(value: object) -> str:
    """The text of a cell, in the forms that are read everywhere: whole numbers without a point, ISO dates."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None)
        return plain.date().isoformat() if plain.time() == time() else plain.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return _plain(str(value))
