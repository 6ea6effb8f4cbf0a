"""Texts that callers write into entries, and how long they may be.

Every entry is read whole wherever it is checked or shown, so a long text in one would slow others down. What
an earlier version let through is still read, and shown up to the same length.
"""

from __future__ import annotations

from dalenius.errors import InvalidArgument

LONGEST_NAME = 255
"""Characters that the name of an account, an analyst, a purpose, a division or a cell may have."""
LONGEST_SOURCE = 5000
"""Characters that the label of the data of an account may have, which may be a path."""
LONGEST_NOTE = 2000
"""Characters that a note or a reason may have."""
LONGEST_PROFILE = 4_000_000
"""Characters that what an account keeps about its data may have."""


def check_text(name: str, value: object, longest: int) -> None:
    """Refuse what is not a text, or one that is too long.

    Args:
        name: The argument, as the caller knows it.
        value: What was passed.
        longest: How many characters it may have.
    """
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be a text.", remedy=f'Pass {name}="…".')
    if len(value) > longest:
        raise InvalidArgument(
            f"{name} has {len(value)} characters; at most {longest} are kept.",
            remedy="Shorten it, and keep the whole elsewhere under a name that the ledger can mention.",
        )


def shortened(text: str, longest: int) -> str:
    """Return a text, cut to a length; where anything is left out it ends in dots."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
