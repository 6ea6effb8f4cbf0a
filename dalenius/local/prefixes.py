"""Prefix extending (PEM): frequent strings over any alphabet, found byte by byte.

Group r reports on the first r bytes of its strings (Wang, Li and Jha 2019). A prefix of a frequent string
is at least as frequent, so the server extends the prefixes that survived one group by every byte, asks the
next group about these, and lists the strings that survive the last one. Each person reports once.

A string of share f mostly survives where f is above about (z + 2)·√(g·v/n), v = ((e^ε + 1)/(e^ε − 1))² the
n·variance of the sketch, g = `length` groups, and z ≈ 4 to 5 by the number of candidates, plus what bars
allow for hashes. What is listed wrongly, and how often: `grouped`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.local.grouped import Ask, GroupedSketch

BYTES = [bytes([one]) for one in range(256)]


@dataclass(frozen=True)
class PrefixExtending(GroupedSketch, kind="prefix_extending"):
    """A group for each length of a prefix."""

    @property
    def groups(self) -> int:
        """One for each byte."""
        return self.length

    def parts(self, text: bytes) -> list[bytes]:
        """Prefixes, the shortest first."""
        return [text[: end + 1] for end in range(self.length)]

    def hitters(self, ask: Ask) -> list[bytes]:
        """Survivors, extended until they are whole; what ended is extended by zeros alone."""
        found = [b""]
        for group in range(self.groups):
            longer = [
                prefix + one for prefix in found for one in (BYTES[:1] if prefix.endswith(b"\0") else BYTES)
            ]
            found = ask.surviving(group, longer)
        return found
