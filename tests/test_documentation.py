"""Every code block of the README and the docs runs, and shows what it says it shows.

    python    executed, all blocks of a page in one namespace
    pycon     executed as a doctest in that namespace
    console   lines after `$ ` run as commands, in a scratch folder; text below them is compared
    sh        commands without their output
    output    what the block before it printed

Other blocks (text, json, …) are not code. A page that shows a command other than `dalenius` names
one of the Makefile's targets, or sets up the shell.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from postgres_server import Server

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SHELL = ("pip install", "git clone", "cd ", "python -m venv")
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(text)]


def printed_by_python(block: Block, page: Path, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
    return printed.getvalue()


def check_session(block: Block, page: Path, names: dict[str, object]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
    report = io.StringIO()
    failed = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(
        test, out=report.write, clear_globs=False
    )
    assert failed.failed == 0, report.getvalue()
    names.update(test.globs)


def printed_by_command(line: str) -> str:
    """What one shell line prints; only this project's own command is run."""
    if line.startswith("make "):
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert line.split()[1] in targets, f"no such target: {line}"
        return ""
    if line.startswith(SHELL):
        return ""
    words = shlex.split(line, comments=True)
    assert words[:1] == ["dalenius"], f"not a command of this project: {line}"
    return run_cli(words[1:])


def run_cli(arguments: list[str]) -> str:
    from dalenius.cli import main

    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setattr(sys, "argv", ["dalenius", *arguments])
        patch.setenv("COLUMNS", "100")
        try:
            main()
        except SystemExit as end:
            assert end.code in (0, None), f"dalenius {shlex.join(arguments)} ended with {end.code}"
    return printed.getvalue()


def check_console(block: Block) -> str:
    """Run each `$ ` line; compare with the lines below it where there are any."""
    printed = ""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        printed = printed_by_command(command)
        if shown.strip():
            assert settled(printed) == settled(shown), f"$ {command}"
    return printed


def settled(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


VISITS = """
    CREATE TABLE visits AS
    SELECT i * 7919 % 2000 AS patient_id, 18 + i * 31 % 70 AS age, substr('ABC', 1 + i % 3, 1) AS ward
    FROM generate_series(1, 10000) AS i
"""


@pytest.fixture
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page about engines expects: a database, and Java."""
    if "engines.md" not in request.node.name:
        return
    import psycopg

    if shutil.which("java") is None:
        pytest.skip("Java is not installed: apt-get install openjdk-17-jre-headless")
    server: Server = request.getfixturevalue("postgres")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("DATABASE_URL", server.url("public"))
    with psycopg.connect(server.url("public"), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute(VISITS)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A copy, as a ledger is kept beside data.
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    names: dict[str, object] = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        if block.language == "python" and ">>>" not in block.text:
            printed = printed_by_python(block, page, names)
        elif block.language in ("python", "pycon"):
            check_session(block, page, names)
        elif block.language == "console":
            printed = check_console(block)
        elif block.language in ("sh", "bash", "shell"):
            commands = [line for line in block.text.splitlines() if line.strip() and line[0] != "#"]
            printed = "".join(printed_by_command(line.removeprefix("$ ")) for line in commands)
        elif block.language == "output":
            assert settled(printed) == settled(block.text), f"{page.name}, line {block.line}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            assert "://" in link or (page.parent / link).exists(), f"{page.name} links to {link}"
