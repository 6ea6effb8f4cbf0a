"""Pictures as frozen values, which every layer can return; drawing them needs matplotlib, imported lazily."""

from dalenius.figures.figure import Figure, Series, check_drawing

__all__ = ["Figure", "Series", "check_drawing"]
