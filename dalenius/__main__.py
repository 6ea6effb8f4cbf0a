"""`python -m dalenius` is the command line."""

from __future__ import annotations

from dalenius.cli import main

if __name__ == "__main__":
    main()
