"""Pictures as frozen values, which every layer can return; drawing them needs matplotlib, imported lazily."""

from dalenius.figures.figure import Figure, Scale, Series, Style, check_drawing

__all__ = ["Figure", "Scale", "Series", "Style", "check_drawing"]
