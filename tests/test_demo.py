"""`make demo` tells its story: an answer, the same for free, a refusal, an attack, and two pictures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def test_the_demo_runs(tmp_path: Path) -> None:
    before = sorted(DEMO.parent.rglob("*"))
    done = subprocess.run([sys.executable, DEMO], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for said in ("HS-grad", "±", "% left", "Try --epsilon", "(exit code 3)", "for 20 of 20 people", "empty"):
        assert said in done.stdout, said
    assert {path.name for path in (tmp_path / "build").iterdir()} == {"attack.svg", "burn.svg"}
    assert sorted(DEMO.parent.rglob("*")) == before, "no ledger is left beside the shipped data"
