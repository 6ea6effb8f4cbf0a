"""Models by name, or by a function of one's own from the shape of a row and the number of classes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from math import prod
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from dalenius.errors import DaleniusError, InvalidArgument
from dalenius.report.study.data import Data

Maker = Callable[[tuple[int, ...], int], nn.Module]
WIDTH, COLORS = 64, 16
"""Of the hidden layer, and of the first convolution."""


def logistic(shape: tuple[int, ...], classes: int) -> nn.Module:
    """A linear model."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), classes))


def mlp(shape: tuple[int, ...], classes: int) -> nn.Module:
    """One hidden layer; tanh rather than ReLU, whose bounded answers go well with clipping."""
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), WIDTH), nn.Tanh(), nn.Linear(WIDTH, classes))


def cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Two convolutions, for images of colors, height and width."""
    if len(shape) != 3:
        raise InvalidArgument("A cnn is for images.", remedy="Choose the model mlp or logistic.")
    side = 4
    return nn.Sequential(
        nn.Conv2d(shape[0], COLORS, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(COLORS, 2 * COLORS, 3, padding=1),
        nn.Tanh(),
        nn.AdaptiveAvgPool2d(side),
        nn.Flatten(),
        nn.Linear(2 * COLORS * side * side, classes),
    )


MODELS: dict[str, Maker] = {"logistic": logistic, "mlp": mlp, "cnn": cnn}


def chosen(model: str | Maker | None, data: Data) -> tuple[str, Maker]:
    """The name of a model, and what makes it: by default a cnn for images, an mlp for other rows."""
    if model is None:
        model = "cnn" if len(data.shape) == 3 else "mlp"
    if not isinstance(model, str):
        return getattr(model, "__name__", "model"), model
    if model in MODELS:
        return model, MODELS[model]
    if ":" in model:
        return model, _found(model)
    raise InvalidArgument(
        f"There is no model {model}.",
        remedy=f"Choose one of {', '.join(MODELS)}, or module:function, or file.py:function.",
    )


def made(maker: Maker, data: Data, seed: int) -> nn.Module:
    """A new model, the same for the same seed; it must give a number for each class."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            model = maker(data.shape, len(data.classes))
            fits = isinstance(model, nn.Module) and _answers(model, data)
        except DaleniusError:
            raise
        except Exception as error:
            raise InvalidArgument(
                f"The model could not be made: {type(error).__name__}.",
                remedy="Its function takes the shape of a row and the number of classes; try it by itself.",
            ) from None
    if not fits:
        raise InvalidArgument(
            "The model does not give one number for each class.",
            remedy=f"Return a torch module from rows of shape {data.shape} to {len(data.classes)} numbers.",
        )
    return model


def _answers(model: nn.Module, data: Data) -> bool:
    """Asked with zeros, in place of anybody's row."""
    was = model.training
    model.eval()
    with torch.no_grad():
        found = model(torch.zeros((2, *data.shape)))
    model.train(was)
    return isinstance(found, torch.Tensor) and tuple(found.shape) == (2, len(data.classes))


def _found(text: str) -> Maker:
    place, _, name = text.rpartition(":")
    try:
        maker = getattr(_loaded(place), name)
    except (ImportError, AttributeError, OSError, SyntaxError, ValueError):
        raise InvalidArgument(
            f"{text} cannot be imported.", remedy="Write module:function, or path/to/file.py:function."
        ) from None
    if not callable(maker):
        raise InvalidArgument(f"{text} is no function.", remedy="Name a function that makes a model.")
    found: Maker = maker
    return found


def _loaded(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return import_module(place)
    spec = spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None:
        raise ImportError(place)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
