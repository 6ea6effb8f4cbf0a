"""A study as one page of HTML that is well formed and loads nothing: pictures are part of it, styles too."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from dalenius.attacks.roc import Rate
from dalenius.display import harmless
from dalenius.figures import Figure
from dalenius.report.study.meanings import explained
from dalenius.report.study.result import Run, Study, difference, percent

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 }
dt { font-weight: bold }
dd { margin: 0 0 .5rem 1.5rem }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .8rem; text-align: left }
img { max-width: 100%; border: 1px solid #eee }
pre { overflow-x: auto; background: #f6f6f6; padding: .8rem; font-size: 13px }
.alarm { border: 3px solid #b00020; background: #fdecef; padding: 1rem; font-weight: bold }
.paid { border: 3px solid #006b4f; background: #eaf7f2; padding: 1rem; font-weight: bold }
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""A browser that shows the page asks nobody for anything."""


def page(study: Study, figures: Mapping[str, Figure], ink: Mapping[str, bytes]) -> str:
    """The whole page; `ink` has the PNG of each figure."""
    title = f"What privacy costs: {study.data}"
    parts = [
        _tag("h1", title),
        _tag("p", study.statement, kind="paid" if study.charged else "alarm", role="alert"),
        _tag("h2", "How to read this page"),
        _meanings(explained(study)),
        *([] if not study.left_out else [_tag("h2", "Left out"), _list(study.left_out)]),
        _tag("h2", "All runs"),
        _table(*study.rows()),
        *(_picture(figure, ink[name]) for name, figure in figures.items()),
        *_by_name(study, "class", study.classes),
        *_by_name(study, "group", study.groups),
        _tag("h2", "Settings"),
        _table(["setting", "value"], [[k.replace("_", " "), _said(v)] for k, v in study.settings.items()]),
        *_receipts(study.runs),
    ]
    head = (
        f'<meta charset="utf-8" /><meta http-equiv="Content-Security-Policy" content="{POLICY}" />'
        f'<meta name="viewport" content="width=device-width" />{_tag("title", title)}<style>{STYLE}</style>'
    )
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _by_name(study: Study, word: str, names: Sequence[str]) -> list[str]:
    """Accuracy and difference to the plain run, of each class or group in each run by ε."""
    if not names:
        return []
    runs = [*([] if study.plain is None else [study.plain]), *study.private]
    rows, counts = [], study.settings.get(f"test_rows_by_{word}")
    for place, name in enumerate(names):
        base = None if study.plain is None else _shares(study.plain, word)[place]
        many = [] if counts is None else [f"{counts[place]}"]
        rows.append([name, *many, *(_cell(_shares(run, word)[place], base, run) for run in runs)])
    said = "" if study.plain is None else " In brackets: points above or below the run without privacy."
    return [
        _tag("h2", f"Accuracy by {word}"),
        _tag("p", f"Who pays for privacy.{said}"),
        _table([word, *([] if counts is None else ["test rows"]), *(run.name for run in runs)], rows),
    ]


def _cell(share: Rate | None, base: Rate | None, run: Run) -> str:
    apart = "" if run.kind == "plain" else difference(share, base)
    return percent(share) + (f" ({apart})" if apart else "")


def _shares(run: Run, word: str) -> tuple[Rate | None, ...]:
    return run.scores.by_class if word == "class" else run.scores.by_group


def _receipts(runs: Iterable[Run]) -> list[str]:
    found = [_tag("h2", "Receipts")]
    for run in runs:
        if run.receipt is not None:
            found += [_tag("h3", f"The weights of {run.name}"), _tag("pre", str(run.receipt), lines=True)]
        if run.released is not None:
            receipt = str(run.released.receipt)
            found += [_tag("h3", f"The table of {run.name}"), _tag("pre", receipt, lines=True)]
    return found if len(found) > 1 else []


def _picture(figure: Figure, ink: bytes) -> str:
    source = f"data:image/png;base64,{b64encode(ink).decode()}"
    return f'{_tag("h2", figure.title)}\n<p><img alt="{_text(figure.title)}" src="{source}" /></p>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(_tag("th", cell) for cell in head)
    body = "\n".join(f"<tr>{''.join(_tag('td', cell) for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>\n{body}\n</tbody></table>"


def _meanings(words: Mapping[str, str]) -> str:
    parts = "".join(_tag("dt", word) + _tag("dd", meaning) for word, meaning in words.items())
    return f"<dl>{parts}</dl>"


def _list(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(_tag('li', line) for line in lines)}</ul>"


def _said(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"


def _tag(name: str, text: str, *, kind: str = "", role: str = "", lines: bool = False) -> str:
    more = (f' class="{kind}"' if kind else "") + (f' role="{role}"' if role else "")
    shown = "\n".join(map(_text, text.split("\n"))) if lines else _text(text)
    return f"<{name}{more}>{shown}</{name}>"


def _text(text: str) -> str:
    return escape(harmless(text))
