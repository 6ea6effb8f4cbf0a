"""Independent uniform bits: what a sampler needs of the source, or of a stream that can be made again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Word = TypeVar("Word", bound=np.unsignedinteger[Any])


class Bits(ABC):
    """Bits that are handed out in order, each once."""

    tainted: bool
    """Whether they follow from a seed, and so protect nobody."""

    @abstractmethod
    def fill(self, words: NDArray[Word]) -> None:
        """Overwrite a contiguous array with fresh bits."""

    def words(self, count: int, kind: type[Word]) -> NDArray[Word]:
        """`count` fresh words of 8, 16, 32 or 64 bits."""
        words = np.empty(count, kind)
        self.fill(words)
        return words

    def integer(self, bits: int) -> int:
        """A uniform integer below 2^bits."""
        words = self.words(-(-bits // 16), np.uint16)
        return int.from_bytes(words.tobytes(), "little") & ((1 << bits) - 1)
