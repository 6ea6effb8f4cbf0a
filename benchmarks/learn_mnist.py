"""Private training on real images: accuracy and time of two models at three levels of privacy.

    python benchmarks/learn_mnist.py --data path/to/mnist

The folder holds the four files of MNIST, or of data in the same form, as they are distributed (gzipped idx).
Logistic regression and the small CNN of Papernot et al. 2020, without private training and with it. Settings
were chosen once by hand for all ε alike, so nothing is paid for choosing them; the test set is public here.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import measure

measure.one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from learn_models import cnn  # noqa: E402
from torch import Tensor, nn  # noqa: E402

import dalenius as dp  # noqa: E402

DELTA = 1e-5
EPSILONS = (1, 3, 8)
RESULTS = Path(__file__).parent / "results" / "learn_mnist.md"


@dataclass(frozen=True)
class Model:
    """What is trained, and how."""

    name: str
    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    batch_size: int
    epochs: int
    clip: float
    lr: float
    momentum: float


MODELS = (
    Model("logistic regression", lambda: nn.Linear(784, 10), (784,), 1024, 15, 1.0, 2.0, 0.0),
    Model("CNN", cnn, (1, 28, 28), 1024, 12, 1.0, 0.25, 0.9),
)


def images(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    pixels, labels = (
        np.frombuffer(
            gzip.decompress((folder / f"{part}-{kind}-ubyte.gz").read_bytes()), np.uint8, offset=skip
        )
        for kind, skip in (("images-idx3", 16), ("labels-idx1", 8))
    )
    return torch.tensor(pixels).view(-1, 784).float() / 255 - 0.1307, torch.tensor(labels).long()


def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def plain(model: Model, x: Tensor, y: Tensor) -> nn.Module:
    """The same steps without privacy, on shuffled batches of the same size."""
    net = model.build()
    optimizer = torch.optim.SGD(net.parameters(), lr=model.lr / 4, momentum=model.momentum)
    for _ in range(model.epochs):
        for rows in torch.randperm(len(x)).split(model.batch_size):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
    return net


def private(model: Model, x: Tensor, y: Tensor, epsilon: float) -> tuple[nn.Module, dp.learn.Private]:
    net = model.build()
    run = dp.learn.Private(
        net,
        torch.optim.SGD(net.parameters(), lr=model.lr, momentum=model.momentum),
        (x, y),
        batch_size=model.batch_size,
        epochs=model.epochs,
        clip=model.clip,
        epsilon=epsilon,
        delta=DELTA,
        public_size=len(x),
    )
    for inputs, labels in run.batches():
        run.zero_grad()
        nn.functional.cross_entropy(run.model(inputs), labels).backward()
        run.step()
    return net, run


def measured(model: Model, train: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> list[list[str]]:
    (x, y), (x_test, y_test) = ((part.view(-1, *model.shape), labels) for part, labels in (train, test))
    torch.manual_seed(0)
    start = time.process_time()
    net = plain(model, x, y)
    base = time.process_time() - start
    rows = [[model.name, "none", "", f"{accuracy(net, x_test, y_test):.2%}", f"{base:.0f}", "1.00"]]
    for epsilon in EPSILONS:
        torch.manual_seed(0)
        start = time.process_time()
        net, run = private(model, x, y, epsilon)
        took = time.process_time() - start
        noise, score = f"{float(run.noise_multiplier):.3f}", f"{accuracy(net, x_test, y_test):.2%}"
        rows.append([model.name, f"{epsilon}", noise, score, f"{took:.0f}", f"{took / base:.2f}"])
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--output", type=Path, default=RESULTS)
    asked = arguments.parse_args()
    torch.set_num_threads(1)
    train, test = images(asked.data, "train"), images(asked.data, "t10k")
    head = ["model", "ε", "noise multiplier", "test accuracy", "CPU s", "× plain"]
    rows = [row for model in MODELS for row in measured(model, train, test)]
    settings = "\n".join(
        f"- {one.name}: batch {one.batch_size}, {one.epochs} epochs, clip {one.clip:g}, "
        f"SGD with learning rate {one.lr:g}, momentum {one.momentum:g}"
        for one in MODELS
    )
    how = f"δ = {DELTA:g}; 60,000 images, Poisson samples; one thread, CPU time of a whole run."
    about = f"# Training on MNIST\n\n{how} {measure.processor()}, torch {measure.version('torch')}."
    asked.output.write_text(f"{about}\n\n{settings}\n\n{measure.table(head, rows)}\n")


if __name__ == "__main__":
    main()
