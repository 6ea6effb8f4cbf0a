"""The shuffle model: local reports that leave as an unordered collection."""

from dalenius.losses.shuffling.randomizer import LocalRandomizer
from dalenius.losses.shuffling.shuffled import SameOthers, Shuffled, shuffle

__all__ = ["LocalRandomizer", "SameOthers", "Shuffled", "shuffle"]
