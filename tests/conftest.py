"""Settings shared by all tests."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a duration: a slow machine is not a failure.
settings.register_profile("dalenius", deadline=None)
settings.load_profile("dalenius")
