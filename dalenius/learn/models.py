"""What a model gives for a batch of inputs, whatever it is made with: torch, scikit-learn, or a function.

    logits          one number for each class, of which a softmax makes probabilities: torch modules
    probabilities   one for each class: what has `predict_proba`, its columns in the order of its `classes_`
    labels          one class for each row: what has `predict`, and functions
    numbers         one number for each row: regression

What is no probability, no class or no number is no answer: −1 or NaN, whatever other rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InvalidArgument
from dalenius.learn.quiet import alone
from dalenius.mechanisms.categories import find, read_categories
from dalenius.privacy import numbers
from dalenius.release import Cell

Outputs = Literal["logits", "probabilities", "labels", "numbers"]
Floats = NDArray[np.float64]
MOST_CLASSES = 1000


@dataclass(frozen=True, eq=False)
class Answers:
    """For each row the number of the class that was chosen, the chances of all classes, or one number."""

    chosen: NDArray[np.int64]
    chances: Floats
    values: Floats

    @staticmethod
    def none(rows: int, classes: int) -> Answers:
        """No answer for any row."""
        return Answers(np.full(rows, -1), np.full((rows, classes), np.nan), np.full(rows, np.nan))

    def put(self, rows: NDArray[np.int64], other: Answers, places: NDArray[np.int64]) -> None:
        """Answers of other places for these rows."""
        for own, given in zip(self.parts, other.parts, strict=True):
            own[rows] = given[places]

    @property
    def parts(self) -> tuple[NDArray[Any], ...]:
        """All three."""
        return self.chosen, self.chances, self.values


class Answering:
    """A model as a function from a batch of inputs to answers."""

    def __init__(self, model: Any, outputs: Outputs | None, classes: Sequence[Cell]) -> None:
        self.model, self.classes = unwatched(model), list(classes)
        self.outputs = outputs or _usual(self.model, bool(self.classes))
        if self.outputs not in get_args(Outputs):
            raise InvalidArgument(
                "outputs must be logits, probabilities, labels or numbers.", remedy="Pass one of these names."
            )
        self._places = {label: i for i, label in enumerate(self.classes)}
        self._call = _called(self.model, self.outputs)

    @property
    def graded(self) -> bool:
        """Whether it gives chances, and not only its choice."""
        return self.outputs in ("logits", "probabilities")

    def __call__(self, inputs: Any) -> Answers:
        """The answers for a batch."""
        given = self._call(inputs)
        if self.outputs == "labels":
            labels = given.tolist() if hasattr(given, "tolist") else list(given)
            found = Answers.none(len(labels), len(self.classes))
            found.chosen[:] = [find(self._places, label, -1) for label in labels]
            return found
        given = np.asarray(given, dtype=np.float64)
        if self.outputs == "numbers":
            found = Answers.none(len(given), 0)
            found.values[:] = given.reshape(len(given))
            return found
        return self._graded(given)

    def _graded(self, given: Floats) -> Answers:
        if given.ndim != 2 or given.shape[1] != self._width:
            raise InvalidArgument(
                f"The model does not give one number for each of {self._width} classes.",
                remedy="Pass all its classes, or say by outputs=… what it gives.",
            )
        found = Answers.none(len(given), len(self.classes))
        with np.errstate(all="ignore"):
            found.chances[:] = _softmax(given) if self.outputs == "logits" else self._ordered(given)
        right = np.isfinite(found.chances).all(axis=1)
        found.chances[~right] = np.nan
        found.chosen[right] = np.argmax(found.chances[right], axis=1) if right.any() else -1
        return found

    @property
    def _width(self) -> int:
        known = getattr(self.model, "classes_", None) if self.outputs == "probabilities" else None
        return len(self.classes) if known is None else len(known)

    def _ordered(self, given: Floats) -> Floats:
        """Columns in the order of the classes asked for; one that the model does not know has chance 0."""
        known = getattr(self.model, "classes_", None)
        if known is None:
            return given
        at = {label: i for i, label in enumerate(np.asarray(known).tolist())}
        columns = [given[:, at[label]] if label in at else 0 * given[:, 0] for label in self.classes]
        return np.stack(columns, axis=1)


def read_classes(classes: Any) -> list[Cell]:
    """Public classes, or so many, numbered from 0."""
    if classes is None:
        return []
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        return list(range(numbers.count(classes, "classes", least=2, most=MOST_CLASSES)))
    listed = list(classes)
    read_categories(listed, "classes")
    if not 2 <= len(listed) <= MOST_CLASSES:
        raise InvalidArgument("classes must be 2 to 1000.", remedy="List every class once.")
    return listed


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return cast(Floats, powers / powers.sum(axis=1, keepdims=True))


def unwatched(model: Any) -> Any:
    """The model in `private.model`; any other as it is."""
    return model.inner if type(model).__name__ == "Watched" and _is_module(model) else model


def _usual(model: Any, classifies: bool) -> Outputs:
    """What such a model gives."""
    if _is_module(model):
        return "logits" if classifies else "numbers"
    if not classifies:
        return "numbers"
    return "probabilities" if hasattr(model, "predict_proba") else "labels"


def _is_module(model: Any) -> bool:
    import sys

    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _called(model: Any, outputs: Outputs) -> Callable[[Any], Any]:
    if _is_module(model):
        return lambda inputs: _of_module(model, inputs, outputs)
    name = "predict_proba" if outputs == "probabilities" else "predict"
    method = getattr(model, name, model)
    if not callable(method):
        raise InvalidArgument(
            "This is no model.", remedy="Pass a torch module, what has a predict method, or a function."
        )
    return cast(Callable[[Any], Any], method)


def _of_module(module: Any, inputs: Any, outputs: Outputs) -> Any:
    import torch

    from dalenius.learn.model_snapshot import unchanged

    first = next(iter(module.parameters()), None)
    device = torch.device("cpu") if first is None else first.device

    def there(one: Any) -> Any:
        return torch.as_tensor(one).to(device) if hasattr(one, "__array__") else one

    with unchanged(module), torch.inference_mode():
        if isinstance(inputs, Mapping):
            given = module(**{name: there(one) for name, one in inputs.items()})
        elif isinstance(inputs, tuple | list):
            given = module(*map(there, inputs))
        else:
            given = module(there(inputs))
        given = getattr(given, "logits", given)
        return given.double().cpu().numpy() if given.is_floating_point() else given.cpu().numpy()


@contextmanager
def at_rest(model: Any) -> Iterator[None]:
    """A torch module in evaluation mode, and as it was afterwards; one thread at a time."""
    with alone():
        modules = list(model.modules()) if _is_module(model) else []
        modes = [one.training for one in modules]
        for one in modules:
            one.training = False
        try:
            yield
        finally:
            for one, mode in zip(modules, modes, strict=True):
                one.training = mode
