"""What privacy costs in accuracy, and for whom: one model with and without it, on one's own data.

    from dalenius.report import study
    found = study.run(study.read("people.npz"), epsilons=(1, 8), delta=1e-5)
    print(found.table())
    found.save("folder")                            # study.json, pictures, index.html

    data, reading, columns, images   rows from an npz, a Parquet file or a folder of images
    splitting, models, training      rows to train on and to test on, a model, its runs
    measuring, paying                accuracy by class and group: counted, or under noise and paid for
    shadowing                        a stronger membership attack, by models that are trained for it
    trials, running                  the study; owning and charging are its two ways
    result, pictures, page, meanings what is found, as a value, figures and one page

It is an experiment for whoever owns the data: what it finds is NOT PRIVATE, and says so, unless an account
pays for every run and every number.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from dalenius._lazy import lazy_names
from dalenius.errors import MissingExtra

if TYPE_CHECKING:
    from dalenius.report.study.data import Data
    from dalenius.report.study.paying import Payment
    from dalenius.report.study.reading import read
    from dalenius.report.study.result import Run, Study
    from dalenius.report.study.running import run
else:
    _HOMES = {
        "Data": "dalenius.report.study.data",
        "Payment": "dalenius.report.study.paying",
        "Run": "dalenius.report.study.result",
        "Study": "dalenius.report.study.result",
        "read": "dalenius.report.study.reading",
        "run": "dalenius.report.study.running",
    }
    _get, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> object:
        if name == "run" and find_spec("torch") is None:
            raise MissingExtra(
                "A study trains models with PyTorch, which is not installed.",
                remedy="Run pip install 'dalenius[learn]'.",
            )
        return _get(name)


__all__ = ["Data", "Payment", "Run", "Study", "read", "run"]
