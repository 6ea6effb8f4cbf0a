"""The notebook of the docs runs, and all that it shows can be shown; its picture is there and small."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOK = ROOT / "docs" / "notebooks" / "first_answers.ipynb"


def shown(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does: what its last expression gives."""
    *body, last = ast.parse(source).body
    exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), names)
    assert isinstance(last, ast.Expr), "each cell ends in what it shows"
    return eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


def test_the_notebook_runs_and_shows_pages_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    names: dict[str, Any] = {"__name__": "notebook"}
    kinds: list[str] = []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == [], "the picture shows them"
        value = shown("".join(cell["source"]), names)
        page, picture = (getattr(value, name, lambda: None)() for name in ("_repr_html_", "_repr_svg_"))
        assert page or picture
        kinds.append("picture" if picture else "page")
    assert kinds.count("picture") == 2 and kinds.count("page") >= 5
    assert sorted(tmp_path.rglob("*")) == before, "no ledger is left behind"


def test_the_picture_of_the_notebook_is_small() -> None:
    assert NOTEBOOK.with_suffix(".png").stat().st_size < 300_000
