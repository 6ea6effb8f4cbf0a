"""Expressions for losses, parsed and never evaluated as Python.

    gaussian(4).poisson(0.01) * 10000 + laplace(scale=2) + pure(1/10).group(3)

A kind takes what its class takes, the first argument without its name if one likes. `+` composes, `*`
repeats a whole number of times, `.poisson(q)`, `.group(k)` and others (`METHODS`) are the methods of a loss.
A `?` stands for the unknown of `dalenius calibrate`. Text that starts with `{` is a loss's JSON.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from fractions import Fraction

from dalenius.cli.grammar import Call, Items, Joined, Node, Number, Parser, Word
from dalenius.cli.tokens import pointed, suggestion
from dalenius.errors import BadExpression, InvalidArgument
from dalenius.losses.loss import Loss
from dalenius.privacy import numbers

KINDS = {
    "approximate": "Approximate",
    "bounded_range": "BoundedRange",
    "correlated_gaussian": "CorrelatedGaussian",
    "discrete_gaussian": "DiscreteGaussian",
    "discrete_laplace": "DiscreteLaplace",
    "discrete_pair": "DiscretePair",
    "gaussian": "Gaussian",
    "gaussian_dp": "GaussianDP",
    "gaussian_mixture": "GaussianMixture",
    "gnmax": "GNMax",
    "joint": "Joint",
    "laplace": "Laplace",
    "last_iterate": "LastIterate",
    "lnmax": "LNMax",
    "local_randomizer": "LocalRandomizer",
    "mean_concentrated": "MeanConcentrated",
    "mixture": "Mixture",
    "privacy_loss_distribution": "PrivacyLossDistribution",
    "pure": "Pure",
    "randomized_response": "RandomizedResponse",
    "renyi": "Renyi",
    "skellam": "Skellam",
    "smooth_gaussian": "SmoothGaussian",
    "tradeoff_curve": "TradeoffCurve",
    "zero_concentrated": "ZeroConcentrated",
}
"""The kinds an expression may name, and their classes in `dalenius.losses`."""
METHODS = (
    "group",
    "poisson",
    "random_allocation",
    "selected",
    "shuffled",
    "truncated_poisson",
    "without_replacement",
)
"""The methods of a loss."""
NOWHERE: Mapping[str, Node] = {}

Value = Loss | Fraction | str | list["Value"]


def parse(text: str) -> Loss:
    """The loss that `text` describes."""
    if text.lstrip().startswith("{"):
        return Loss.from_json(text)
    return _Builder(text, None).loss(Parser(text).tree())


def family(text: str) -> Callable[[Fraction], Loss]:
    """The losses that `text` describes, one for each value of its `?`."""
    tree = Parser(text).tree()
    if "?" not in text:
        raise BadExpression("Nothing is unknown in the expression.", remedy="Put a ? for the number to find.")
    return lambda unknown: _Builder(text, unknown).loss(tree)


class _Builder:
    """Turns the tree of one text into a loss; errors point into the text."""

    def __init__(self, text: str, unknown: Fraction | None) -> None:
        self.text, self.unknown = text, unknown

    def loss(self, node: Node) -> Loss:
        """The node as a loss."""
        value = self._value(node)
        if not isinstance(value, Loss):
            name = node.text if isinstance(node, Word) and node.text in KINDS else "gaussian"
            raise self._error(node, "A loss belongs here.", f"Write one, such as {name}(4).")
        return value

    def _value(self, node: Node) -> Value:
        match node:
            case Number():
                return self._number(node)
            case Word():
                return node.text
            case Items():
                return [self._value(item) for item in node.items]
            case Joined(mark="+"):
                left, right = self.loss(node.left), self.loss(node.right)
                return self._made(node.right, lambda: left + right)
            case Joined():
                return self._product(node)
            case Call(subject=None):
                return self._kind(node)
            case Call():
                return self._method(node)
        raise self._error(node, "This has no meaning.", "Remove it.")

    def _number(self, node: Number) -> Fraction:
        if node.value is not None:
            return node.value
        if self.unknown is None:
            raise self._error(node, "A ? stands for the unknown of calibrate only.", "Write a number.")
        return self.unknown

    def _product(self, node: Joined) -> Value:
        left, right = self._value(node.left), self._value(node.right)
        if isinstance(left, Fraction) and isinstance(right, Fraction):
            return left * right
        if isinstance(left, Fraction):
            times, place, repeated = left, node.left, self.loss(node.right)
        elif isinstance(right, Fraction):
            times, place, repeated = right, node.right, self.loss(node.left)
        else:
            raise self._error(node.right, "A loss is repeated a whole number of times.", "Join losses by +.")
        return self._made(place, lambda: repeated * numbers.count(times, "count"))

    def _kind(self, node: Call) -> Loss:
        if node.name not in KINDS:
            raise self._error(node, f"No kind of loss is named {node.name}.", suggestion(node.name, KINDS))
        return self._called(node, getattr(importlib.import_module("dalenius.losses"), KINDS[node.name]))

    def _method(self, node: Call) -> Loss:
        if node.subject is None or node.name not in METHODS:
            raise self._error(node, f"A loss has no method {node.name}.", suggestion(node.name, METHODS))
        return self._called(node, getattr(self.loss(node.subject), node.name))

    def _called(self, node: Call, make: Callable[..., Loss]) -> Loss:
        parameters = inspect.signature(make).parameters
        first = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
        given = self._given(node, first, list(parameters))
        for name, one in parameters.items():
            if one.default is one.empty and name not in given:
                raise self._error(node, f"{node.name} needs {name}.", f"Write {node.name}({name}=…).")
        places = dict(zip(given, node.arguments, strict=True))
        return self._made(node, lambda: make(**given), {name: one.value for name, one in places.items()})

    def _given(self, node: Call, first: list[str], known: list[str]) -> dict[str, Value]:
        given: dict[str, Value] = {}
        for index, argument in enumerate(node.arguments):
            name = argument.name
            if name is None:
                if index >= len(first):
                    raise self._error(
                        argument, "This argument needs its name.", f"Names: {', '.join(known)}."
                    )
                name = first[index]
            if name in given:
                raise self._error(argument, f"{name} is given twice.", "Remove one.")
            if name not in known:
                raise self._error(argument, f"{node.name} has no argument {name}.", suggestion(name, known))
            given[name] = self._value(argument.value)
        return given

    def _made(self, node: Node, make: Callable[[], Loss], places: Mapping[str, Node] = NOWHERE) -> Loss:
        try:
            return make()
        except InvalidArgument as error:
            # A message that opens with an argument's name is about that argument.
            place = places.get(error.problem.partition(" ")[0], node)
            raise self._error(place, error.problem, error.remedy) from error

    def _error(self, node: Node, problem: str, remedy: str) -> BadExpression:
        return pointed(self.text, node.place, problem, remedy)
