"""`Form`: how the texts of a file are read — encoding, decimal mark, dates, null strings, types of columns.

What is declared is taken as it is. The rest is found by looking at the data once, counts as public from then
on and is kept with the account, so that no later row changes it:

    encoding    the mark at the file's beginning, or NULs between the letters of its first line, for UTF-16;
                else UTF-8, unless most stretches of other letters than ASCII's are none: then windows-1252
    decimal     "," where more columns are numbers by that mark only than are by "."
    dates       ISO 8601, or the one of `DATES` by which most columns that are no ISO dates are dates
    types       what nine in ten of the first cells can be read as; cells like "NA" count for none

Nothing here raises because of what a file holds.
"""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any, cast

from dalenius.errors import Argument, InvalidArgument, Message

WINDOWS = "cp1252"
WIDE = ("utf-16", "utf-16-le", "utf-16-be")
_ASCII = bytes(range(128)).decode("ascii")
ISO = "YYYY-MM-DD"
DATES = (ISO, "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY")
"""Forms of dates that are looked for; others of the kind may be declared."""
ABSENT = ("NA", "N/A", "n/a", "NULL", "null", "None", "NaN", "nan", "-", "--", ".", "?", "#N/A")
"""Cells that count for no type; they are NULL in columns of numbers and dates, and texts in columns of text
unless they are declared with `null=`."""
_PIECE = 1 << 20
_LOOKED_AT, _PACKED = 256, 48
"""Pieces of a file that are looked at for its encoding; of one that is packed."""
_ENOUGH = 1000
"""Stretches of other letters than ASCII's by which an encoding is told."""
_OTHER = re.compile(rb"[\x80-\xff]+")
_DATE = re.compile(r"(DD|MM|YYYY)([./ -]?)(DD|MM|YYYY)\2(DD|MM|YYYY)")


@dataclass(frozen=True)
class Form:
    """How a file's texts are read; None and no entry where that is still to be found."""

    encoding: str | None = None
    decimal: str | None = None
    dates: str | None = None
    null: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    def over(self, other: Form) -> Form:
        """Return this form with what it does not say taken from another."""
        return Form(
            self.encoding or other.encoding,
            self.decimal or other.decimal,
            self.dates or other.dates,
            self.null or other.null,
            {**other.types, **self.types},
        )

    def less(self, other: Form) -> Form:
        """Return what this form says and another does not."""
        return Form(
            None if other.encoding else self.encoding,
            None if other.decimal else self.decimal,
            None if other.dates else self.dates,
            () if other.null else self.null,
            {name: kind for name, kind in self.types.items() if name not in other.types},
        )

    def lines(self) -> list[str]:
        """Return what the form says, in words."""
        said = [
            ("encoding", self.encoding),
            ("decimal mark", self.decimal and f'"{self.decimal}"'),
            ("dates", self.dates),
        ]
        shown = [f"{name} {value}" for name, value in said if value is not None]
        shown += [f"null strings {', '.join(self.null)}"] if self.null else []
        return shown + [f"{name} {kind}" for name, kind in self.types.items()]

    def plain(self) -> dict[str, Any]:
        """Return the form as JSON values, without what it does not say."""
        fields = {"encoding": self.encoding, "decimal": self.decimal, "dates": self.dates}
        lists = {"null": list(self.null), "types": dict(self.types)}
        return {name: value for name, value in (fields | lists).items() if value}

    @staticmethod
    def read(plain: Mapping[str, Any]) -> Form:
        """Return the form that `plain` gave."""
        return Form(
            plain.get("encoding"),
            plain.get("decimal"),
            plain.get("dates"),
            tuple(plain.get("null", ())),
            dict(plain.get("types", {})),
        )


def declared(
    *,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    dates: str | None = None,
    null: Iterable[str] | None = None,
) -> Form:
    """Return the form that an owner declares; refused where it is none.

    Args:
        types: Types of columns, as DuckDB names them.
        encoding: The encoding of a file, as Python names it: "utf-8", "windows-1252", "utf-16", "latin-1".
        decimal: The decimal mark, "." or ",".
        dates: How dates are written, such as "DD.MM.YYYY".
        null: Cells that stand for no value.
    """
    if decimal not in (None, ".", ","):
        raise InvalidArgument(
            'decimal must be "." or ",".',
            remedy=Message("Pass ", Argument.of("decimal", ","), ", or leave it out."),
        )
    if dates is not None and not _is_date(dates):
        raise InvalidArgument(
            "dates must be a form of dates, made of DD, MM and YYYY.",
            remedy=Message("Pass ", Argument.of("dates", "DD.MM.YYYY"), "."),
        )
    if isinstance(null, str) or not all(isinstance(text, str) for text in null or ()):
        raise InvalidArgument(
            "null must be a list of texts.",
            remedy=Message("Pass ", Argument("null", 'null=["NA", "-"]', ("NA",)), "."),
        )
    known = None if encoding is None else _encoding(encoding)
    return Form(known, decimal, dates, tuple(dict.fromkeys(null or ())), dict(types or {}))


def _is_date(text: object) -> bool:
    found = _DATE.fullmatch(text) if isinstance(text, str) else None
    return found is not None and len({found[1], found[3], found[4]}) == 3


def _encoding(name: object) -> str:
    with suppress(LookupError, TypeError, ValueError):
        codec = codecs.lookup(cast("str", name))
        # In others the first line might not end where it does, and records be taken for names of columns.
        if codec.name in WIDE or bytes(range(128)).decode(codec.name) == _ASCII:
            # What calls itself Latin-1 is nearly always its superset, which differs in control letters only.
            return WINDOWS if codec.name == "iso8859-1" else codec.name
    raise InvalidArgument(
        "encoding must be the name of an encoding that agrees with ASCII, or of UTF-16.",
        remedy='Pass "utf-8", "windows-1252", "utf-16" or another one that Python knows.',
    )


def opened(path: str) -> IO[bytes]:
    """Open a file for its bytes, unpacked."""
    return cast("IO[bytes]", gzip.open(path)) if path.endswith(".gz") else open(path, "rb")


def find_encoding(path: str) -> str:
    """Return the encoding that a file most likely has; "utf-8" where it cannot be read."""
    with suppress(Exception), opened(path) as file:
        first = file.read(_PIECE)
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        begin = first[:200].split(b"\n")[0]
        for offset, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if len(begin) >= 4 and not any(begin[offset : len(begin) // 2 * 2 : 2]):
                return name
        return _eight_bits(first, file, _PACKED if path.endswith(".gz") else _LOOKED_AT)
    return "utf-8"


def _eight_bits(piece: bytes, file: IO[bytes], most: int) -> str:
    """Tell UTF-8 from windows-1252 by what most stretches of other letters are."""
    right = wrong = 0
    for _ in range(most):
        for stretch in () if piece.isascii() else _OTHER.findall(piece):
            try:
                stretch.decode()
                right += 1
            except UnicodeDecodeError:
                wrong += 1
            if right + wrong >= _ENOUGH:
                break
        if right + wrong >= _ENOUGH or not (piece := file.read(_PIECE)):
            break
    return WINDOWS if wrong > right else "utf-8"


def formats(dates: str) -> tuple[str, ...]:
    """Return what `strptime` calls a form of dates: alone, and with a time of day."""
    plain = dates.replace("YYYY", "%Y").replace("MM", "%m").replace("DD", "%d")
    return plain, f"{plain} %H:%M", f"{plain} %H:%M:%S", f"{plain} %H:%M:%S.%f"


def settled(form: Form, types: Mapping[str, str], decimal: str, dates: str) -> Form:
    """Return a form with all that was found in what it leaves open."""
    return replace(form.over(Form("utf-8", decimal, dates)), types={**types, **form.types})
