"""Imports point down only; noise has one source; nothing silences the checkers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "dalenius").rglob("*.py"))
SLOW_TO_LOAD = {"scipy", "matplotlib", "sklearn"}
RANDOMNESS = {"random", "secrets", "numpy.random"}


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_imports_point_down_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_quick_to_load_and_draws_no_noise(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert {name.split(".")[0] for name in imported(iter(tree.body))} & SLOW_TO_LOAD == set()
    # An adversary protects nobody with its coins.
    if path.relative_to(ROOT).parts[1] not in ("attacks", "audits"):
        # States of other people's generators are compared in one place, and never drawn from.
        watched = {"random"} if path.name == "python_state.py" else set()
        assert set(imported(ast.walk(tree))) & RANDOMNESS <= watched
        # Sown for other people's models, and never drawn from, in one place.
        assert path.name == "quiet.py" or '"numpy.random"' not in path.read_text()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_checker_is_silenced(path: Path) -> None:
    text = path.read_text()
    assert [word for word in ("type: ignore", "noqa", "pragma: no cover") if word in text] == []
