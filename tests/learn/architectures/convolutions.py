"""Single convolutions of every option, each between a nonlinearity and a pooled head."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .architecture import Architecture
from .data import Quiet, classification, features, given, integers

KINDS: dict[str, type[nn.Module]] = {
    "Conv1d": nn.Conv1d,
    "Conv2d": nn.Conv2d,
    "Conv3d": nn.Conv3d,
    "ConvTranspose1d": nn.ConvTranspose1d,
    "ConvTranspose2d": nn.ConvTranspose2d,
}


class Convolution(nn.Module):
    """x → conv → tanh → conv → positions' mean of squares → head: both convolutions have the options."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.first = KINDS[kind](4, 8, **options)
        self.second = KINDS[kind](8, 8, **options)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.first(x).tanh())
        return self.head(y.flatten(2).square().mean(2))


# An even kernel pads one side more than the other.
UNEVEN = "conv2d, same and uneven"
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "conv1d": ("Conv1d", {"kernel_size": 3}),
    "conv1d, strided and padded": ("Conv1d", {"kernel_size": 3, "stride": 2, "padding": 1}),
    "conv1d, dilated": ("Conv1d", {"kernel_size": 3, "dilation": 2}),
    "conv1d, grouped": ("Conv1d", {"kernel_size": 3, "groups": 2}),
    "conv1d, circular": ("Conv1d", {"kernel_size": 3, "padding": 1, "padding_mode": "circular"}),
    "conv2d": ("Conv2d", {"kernel_size": 3}),
    "conv2d, strided": ("Conv2d", {"kernel_size": 3, "stride": (2, 1), "padding": 1}),
    # Stride 2 on the odd side leaves a row that no window reads.
    "conv2d, stride with a remainder": ("Conv2d", {"kernel_size": 2, "stride": 2, "padding": (0, 1)}),
    "conv2d, dilated": ("Conv2d", {"kernel_size": 3, "dilation": (2, 1), "padding": (2, 1)}),
    "conv2d, grouped": ("Conv2d", {"kernel_size": 3, "groups": 4, "stride": 2, "padding": 1}),
    "conv2d, reflect": ("Conv2d", {"kernel_size": 3, "padding": 1, "padding_mode": "reflect"}),
    "conv2d, circular": ("Conv2d", {"kernel_size": 3, "padding": (1, 0), "padding_mode": "circular"}),
    "conv2d, replicate": ("Conv2d", {"kernel_size": 3, "padding": 1, "padding_mode": "replicate"}),
    "conv2d, same": ("Conv2d", {"kernel_size": (3, 5), "padding": "same", "dilation": (2, 1)}),
    UNEVEN: ("Conv2d", {"kernel_size": (3, 2), "padding": "same"}),
    "conv2d, 1×1": ("Conv2d", {"kernel_size": 1}),
    "conv2d, oblong without bias": ("Conv2d", {"kernel_size": (1, 5), "padding": (0, 2), "bias": False}),
    "conv3d": ("Conv3d", {"kernel_size": (2, 3, 3), "padding": 1}),
    "conv3d, strided, dilated, grouped": (
        "Conv3d",
        {"kernel_size": 2, "stride": (1, 2, 1), "dilation": (1, 1, 2), "padding": 1, "groups": 2},
    ),
    "transposed conv1d": ("ConvTranspose1d", {"kernel_size": 3, "stride": 2, "padding": 1}),
    "transposed conv2d": ("ConvTranspose2d", {"kernel_size": 3, "stride": 2, "output_padding": 1}),
    "transposed conv2d, grouped": ("ConvTranspose2d", {"kernel_size": 2, "groups": 2, "dilation": 2}),
}
SHAPES = {"1": (4, 9), "2": (4, 7, 6), "3": (4, 4, 5, 6)}


def entry(name: str) -> Architecture:
    kind, options = OPTIONS[name]
    return Architecture(
        name,
        lambda: Quiet(Convolution(kind, **options)) if name == UNEVEN else Convolution(kind, **options),
        given(features(*SHAPES[kind[-2]]), integers(3)),
        classification,
    )


def depthwise() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, groups=4),
        nn.Tanh(),
        nn.Conv2d(8, 8, 3, groups=8, bias=False),
        nn.Flatten(),
        nn.Linear(48, 3),
    )


def separable() -> nn.Module:
    """Depthwise, then 1×1 over the channels."""
    return nn.Sequential(
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Conv2d(4, 9, 1),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 3),
    )


def causal() -> nn.Module:
    """Dilated causal convolutions over time, as in WaveNet: padded on the left alone."""
    return nn.Sequential(
        nn.ConstantPad1d((1, 0), 0.0),
        nn.Conv1d(4, 8, 2),
        nn.Tanh(),
        nn.ConstantPad1d((2, 0), 0.0),
        nn.Conv1d(8, 8, 2, dilation=2),
        nn.AdaptiveMaxPool1d(2),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


IMAGES = given(features(4, 7, 6), integers(3))

ARCHITECTURES = (
    *(entry(name) for name in OPTIONS),
    Architecture("depthwise", depthwise, IMAGES, classification),
    Architecture("depthwise separable", separable, IMAGES, classification),
    Architecture("causal", causal, given(features(4, 9), integers(3)), classification),
)
