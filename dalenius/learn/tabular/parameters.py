"""Parameters as scikit-learn reads them, and what becomes of the account where a model is copied or written.

A clone or a copy charges the same account. An account is no part of a model and is not written with it
(`pickle`, joblib, other processes): a model that was read again predicts, and is fitted once it was given an
account, or told that there is none.
"""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from inspect import signature
from typing import Any, ClassVar, Self

from dalenius.errors import InvalidArgument

SUPERVISED = ("classifier", "regressor")


class LeftOut:
    """Instead of the account of a model that was written and read again; there is one of it."""

    def __reduce__(self) -> str:
        return "LEFT_OUT"

    def __repr__(self) -> str:
        return "<left out>"


LEFT_OUT = LeftOut()


class Parameters:
    """What was given when it was made, under the same names; what a fit finds ends in an underscore."""

    account: Any
    kind: ClassVar[str]

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Change what it was made with."""
        for name, value in params.items():
            if name not in self._names():
                raise InvalidArgument(
                    f"{type(self).__name__} has no parameter {name!r}.",
                    remedy=f"Pass one of {', '.join(self._names())}.",
                )
            setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params())

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **({} if self.account is None else {"account": LEFT_OUT})}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "receipt_")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator, in its own words."""
        tags = import_module("sklearn.utils")
        found = tags.Tags(
            estimator_type=self.kind, target_tags=tags.TargetTags(required=self.kind in SUPERVISED)
        )
        found.input_tags.allow_nan = True
        found.non_deterministic = True
        if self.kind == "classifier":
            found.classifier_tags = tags.ClassifierTags(poor_score=True)
        if self.kind == "regressor":
            found.regressor_tags = tags.RegressorTags(poor_score=True)
        if hasattr(self, "transform"):
            found.transformer_tags = tags.TransformerTags()
        return found

    def __repr__(self) -> str:
        default = signature(type(self)).parameters
        stated = {k: v for k, v in self.get_params().items() if v is not default[k].default}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in stated.items())})"
