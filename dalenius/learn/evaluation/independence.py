"""Which models answer each row from that row alone, established by what they are made of.

The sensitivity of an evaluation (`tables`) needs a row's answer to be a function of that row. A trial on some
rows does not show that: a model may mix rows only where they have certain values, or keep something from one
call to the next. So it is established by the structure of the model, or it is an assumption that the receipt
names.

Theorem. Let a torch module be a `Sequential` of layers from `RULES`, nested or not, of exactly these classes,
in evaluation mode, without hooks; and let each layer get a batch of the dimensions that its rule asks for.
Then row i of the output is a function of row i of the input and of the weights, and a call changes nothing.
Proof: each of these layers is defined entry by entry along the first dimension, provided that it is the batch
dimension: a convolution takes a batch of one dimension less for a single row, a softmax along the first
dimension or a normalization over all dimensions would mix rows, and rules refuse these. Compositions of such
functions are such functions. Dimensions follow from the shape of the input alone, so that they are seen on
made-up rows. ∎

Of scikit-learn, `PREDICTORS` are classes whose predictions are defined row by row: linear models, naive Bayes
and single trees. That a kernel of fixed shape computes each place from its own row, in floating point, is
part of the numerical model on the receipt (`passes`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

    Rule = Callable[[Any, Tensor], bool]

ESTABLISHED = "established: each layer of the model answers a row from that row alone"
PREDICTS = "established: this class of scikit-learn predicts each row from that row alone"
ASSUMED = (
    "assumed, not checked: the model answers each row from that row alone, and keeps nothing from one row "
    "to the next"
)
PREDICTORS = frozenset(
    [
        "LogisticRegression",
        "LinearRegression",
        "Ridge",
        "RidgeClassifier",
        "Lasso",
        "ElasticNet",
        "SGDClassifier",
        "SGDRegressor",
        "Perceptron",
        "LinearSVC",
        "LinearSVR",
        "GaussianNB",
        "BernoulliNB",
        "MultinomialNB",
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
    ]
)
"""Classes of scikit-learn, by name."""


def independence(model: Any, inputs: Any) -> str:
    """Return what a receipt says of whether the model answers each row from that row alone.

    Args:
        model: The model, in evaluation mode.
        inputs: A made-up batch of the form of private ones; None where there is none.
    """
    import sys

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        return ESTABLISHED if _is_layered(model, inputs) else ASSUMED
    kind = type(model)
    known = kind.__module__.startswith("sklearn.") and kind.__name__ in PREDICTORS
    plain = not {"predict", "predict_proba"} & set(getattr(model, "__dict__", {}))
    matrix = isinstance(inputs, np.ndarray) and inputs.ndim == 2
    return PREDICTS if known and plain and matrix else ASSUMED


def _is_layered(model: nn.Module, inputs: Any) -> bool:
    """Whether the theorem holds for a module and a made-up batch."""
    import torch
    from torch.nn.modules import module as modules

    watched = (
        modules._global_forward_hooks,
        modules._global_forward_pre_hooks,
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
    )
    if any(watched) or not hasattr(inputs, "__array__"):
        return False
    first = next(iter(model.parameters()), None)
    batch = torch.as_tensor(inputs).to("cpu" if first is None else first.device)
    try:
        with torch.inference_mode():
            return batch.ndim > 0 and _after(model, batch) is not None
    except Exception:
        # Layers that do not fit together, or numbers that an embedding does not have.
        return False


def _after(layer: nn.Module, batch: Tensor) -> Tensor | None:
    """Return what a layer makes of a made-up batch; None where it is not known to keep rows apart."""
    from torch import Tensor, nn

    if not _is_plain(layer):
        return None
    if type(layer) is nn.Sequential:
        passed: Tensor | None = batch
        for child in layer:
            passed = None if passed is None else _after(child, passed)
        return passed
    rule = _rules().get(type(layer).__name__)
    if rule is None or type(layer) is not getattr(nn, type(layer).__name__, None) or not rule(layer, batch):
        return None
    made = layer(batch)
    return made if type(made) is Tensor and made.shape[:1] == batch.shape[:1] else None


def _is_plain(layer: nn.Module) -> bool:
    """Whether a layer does what its class does: in evaluation mode, without hooks, on plain tensors."""
    from torch import Tensor, nn

    hooks = (layer._forward_hooks, layer._forward_pre_hooks, getattr(layer, "parametrizations", ()))
    tensors = (*layer._parameters.values(), *layer._buffers.values())
    plain = all(one is None or type(one) in (Tensor, nn.Parameter) for one in tensors)
    return plain and not layer.training and not any(hooks) and "forward" not in vars(layer)


def _rules() -> dict[str, Rule]:
    """Return, by the name of a layer, whether it keeps the rows of a batch apart."""
    pointwise = [
        "CELU",
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "ELU",
        "GELU",
        "Hardshrink",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "Identity",
        "LeakyReLU",
        "LogSigmoid",
        "Mish",
        "ReLU",
        "ReLU6",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softplus",
        "Softshrink",
        "Softsign",
        "Tanh",
        "Tanhshrink",
        "Threshold",
    ]
    rules: dict[str, Rule] = {name: lambda layer, batch: True for name in pointwise}
    for size in (1, 2, 3):
        rules[f"Conv{size}d"] = rules[f"ConvTranspose{size}d"] = _dimensions(size + 2)
        rules[f"BatchNorm{size}d"] = _is_normalized_by_statistics
        for pool in ("MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool"):
            rules[f"{pool}{size}d"] = _dimensions(size + 2)
    return rules | {
        "Linear": lambda layer, batch: batch.ndim >= 2,
        "Embedding": lambda layer, batch: layer.max_norm is None,
        "Flatten": lambda layer, batch: batch.ndim == 1 or layer.start_dim % batch.ndim >= 1,
        "GroupNorm": lambda layer, batch: batch.ndim >= 2,
        "LayerNorm": lambda layer, batch: batch.ndim > len(layer.normalized_shape),
        "PReLU": lambda layer, batch: batch.ndim >= 2,
        "Softmax": _is_within_rows,
        "LogSoftmax": _is_within_rows,
    }


def _dimensions(number: int) -> Rule:
    return lambda layer, batch: batch.ndim == number


def _is_normalized_by_statistics(layer: Any, batch: Tensor) -> bool:
    """Batch normalization by running statistics, and not by those of the batch."""
    return batch.ndim >= 2 and layer.running_mean is not None and layer.running_var is not None


def _is_within_rows(layer: Any, batch: Tensor) -> bool:
    return isinstance(layer.dim, int) and layer.dim % batch.ndim >= 1
