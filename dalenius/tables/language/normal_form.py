"""The normal form of a question: what the answers to it hang on, and not what people call inner things."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import date

from dalenius.errors import InvalidArgument
from dalenius.tables.question import Question
from dalenius.tables.schema import is_unicode


def with_text(question: Question) -> Question:
    """The question with its normal form: everything in it but for what users call inner things."""
    keys = None if question.keys is None else [[_plain(part) for part in key] for key in question.keys]
    form: dict[str, object] = {
        "rows": question.rows.sql,
        "key_names": question.key_names,
        "keys": keys if keys is None or len(keys) <= 100 else _digest(keys),
        "intervals": [
            None if each is None else [str(each.lower), str(each.upper)] for each in question.intervals
        ],
        "aggregates": [[each.kind, each.column, _plain(each.fraction)] for each in question.aggregates],
        "outputs": [[each.name, str(each.formula)] for each in question.outputs],
        "bounds": [question.rows_per_unit, question.groups_per_unit, question.never_null],
        "having": None if question.having is None else str(question.having),
        "order": [[str(by), descending, first] for by, descending, first in question.order],
        "limit": [question.limit, question.offset],
    }
    if question.sets:
        form["sets"] = question.sets
    if question.after is not None:
        form["after"] = repr(question.after)
    text = json.dumps(form, ensure_ascii=False, separators=(",", ":"))
    if not is_unicode(text):
        raise InvalidArgument(
            "A name in the question is not made of whole characters.", remedy="Leave out lone surrogates."
        )
    return replace(question, text=text)


def _plain(part: object) -> object:
    if isinstance(part, date):
        return {type(part).__name__: part.isoformat()}
    return part if isinstance(part, bool | int | float | str | None) else str(part)


def _digest(keys: object) -> str:
    return hashlib.sha256(json.dumps(keys, ensure_ascii=False).encode()).hexdigest()
