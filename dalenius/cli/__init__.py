"""The command line: parse, call a layer below, print. No formula of its own."""

from __future__ import annotations

from dalenius.cli.app import main

__all__ = ["main"]
