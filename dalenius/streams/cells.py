"""The cells of what is handed to a stream: read one by one, by the rules of `privacy.records`."""

from __future__ import annotations

from dalenius.privacy.records import ALONE, cells

__all__ = ["ALONE", "cells"]
