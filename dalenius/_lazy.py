"""Names that are imported when first used (PEP 562), so that `import dalenius` stays cheap.

A package lists its public names with the module each lives in. Nothing is loaded before a name is
asked for; once it is, the object is bound in the package and Python never calls back here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

Getter = Callable[[str], object]
Lister = Callable[[], list[str]]


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Getter, Lister]:
    """`__getattr__` and `__dir__` for a package whose names live in the modules of `homes`, or are them."""

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(homes[name])
        value: object = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
