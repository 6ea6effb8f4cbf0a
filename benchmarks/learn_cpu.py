"""Private training on a CPU: what a step costs, in time and memory, over the same step without privacy.

    python3 -m venv build/bench-learn
    build/bench-learn/bin/pip install -r benchmarks/requirements-learn.txt -e .
    build/bench-learn/bin/python benchmarks/learn_cpu.py

writes benchmarks/results/learn_cpu.md. A step is all of it: gradients set to none, forward, loss, backward,
clipping, noise on every parameter, and the optimizer. fastDP is not on the package index, so that it is not
compared.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from measure import milliseconds, one_thread, processor, table, version

if TYPE_CHECKING:
    from learn_models import Workload

RESULTS = Path(__file__).parent / "results" / "learn_cpu.md"
CLIP, NOISE = 1.0, 1.0
WARM = 2
"""Steps of each contender that are not counted."""
STEPS = 4
"""Steps of which the peak of memory is taken: the second has what the first leaves behind."""
MODELS = ("mlp", "cnn", "embedding", "gpt", "resnet")
SAID = """\
One thread. CPU time of a whole step, the median of {repeats} after {warm} that are not counted; all
contenders in one process, one step each in turn, and each ratio is the median of those of one turn, so that
it need not be that of the medians beside it. Memory: the peak of resident memory over {steps} steps above
that before the first, in a process of its own, code that a first step loads included; the model and the batch
are in neither. L2 clipping at {clip:g} over all parameters, noise multiplier {noise:g}; Opacus by
`make_private`, without its sampler. Dalenius draws exact noise by AES, Opacus floating-point noise from
torch's generator (`secure_mode` off).

What a model's name leaves open was chosen, of 19 settings of the embedding classifier and 5 of the GPT, as
that where the ratios of Opacus come near to those it was first measured with: 65 and 2.51 for the classifier,
1.77 and 2.24 for the GPT. The choice matters most for the classifier, of which the step without privacy is
cheap: with SGD in place of Adam and 256 texts of 256 words, three steps gave Opacus 470 and 10.8.
"""
PARTS_SAID = """\
The step without privacy: CPU ms of its parts, and a tenth of their sum, in ns a parameter.
"""

Step = Callable[[], None]


class Missing(Exception):
    """A contender that is not installed."""


@dataclass
class Measured:
    """Of one contender: CPU seconds of each step, or why there are none, and MiB at the peak."""

    seconds: list[float] = field(default_factory=list)
    note: str = ""
    peak: float = float("nan")


def made(workload: Workload) -> tuple[object, ...]:
    """Model, optimizer, criterion, inputs and what is wanted, all from one seed."""
    import torch

    torch.manual_seed(7)
    model = workload.model()
    return (
        model,
        workload.optimizer(model.parameters()),
        workload.criterion(),
        *workload.batch(workload.size),
    )


def plain(workload: Workload) -> Step:
    model, optimizer, criterion, x, y = made(workload)

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    return step


def dalenius(workload: Workload) -> Step:
    """Where the engine is plugged in."""
    private_optimizer = imported("dalenius.learn", "PrivateOptimizer")
    model, optimizer, criterion, x, y = made(workload)
    private = private_optimizer(model, optimizer, clip=CLIP, noise_multiplier=NOISE, batch_size=workload.size)

    def step() -> None:
        private.zero_grad()
        criterion(private.model(x), y).backward()
        private.step()

    return step


def opacus(workload: Workload, mode: str) -> Step:
    engine = imported("opacus", "PrivacyEngine")
    from torch.utils.data import DataLoader, TensorDataset

    model, optimizer, criterion, x, y = made(workload)
    model, optimizer, *wrapped, _ = engine().make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=DataLoader(TensorDataset(x, y), batch_size=workload.size),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    criterion = wrapped[0] if wrapped else criterion

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        criterion(model(x), y).backward()
        optimizer.step()

    return step


def imported(module: str, name: str) -> Callable[..., object]:
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise Missing(str(error)) from error


CONTENDERS: dict[str, Callable[[Workload], Step]] = {
    "without privacy": plain,
    "Dalenius": dalenius,
    "Opacus, hooks": lambda workload: opacus(workload, "hooks"),
    "Opacus, ghost": lambda workload: opacus(workload, "ghost"),
}


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def timed(workload: Workload, repeats: int, found: dict[str, Measured]) -> None:
    """All contenders in turn; in another order each time, so that none always follows the same."""
    steps = {name: step for name in CONTENDERS if (step := ready(name, workload, found[name]))}
    names = list(steps)
    gc.collect()
    for i in range(WARM + repeats):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            seconds = cpu(steps[name])
            if i >= WARM:
                found[name].seconds.append(seconds)


def ready(name: str, workload: Workload, one: Measured) -> Step | None:
    """A contender after one step, or None, and why."""
    try:
        step = CONTENDERS[name](workload)
        step()
    except Missing as error:
        one.note = f"not here: {error}"
    except Exception as error:  # A contender that fails is a result, and the run goes on.
        one.note = f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
    else:
        return step
    print(f"{workload.name}, {name}: {one.note}", file=sys.stderr)
    return None


def remembered(key: str, name: str) -> float:
    """MiB at the peak of a few steps above what there was before them, in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--models", key, "--peak", name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"{key}, {name}, memory: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return float("nan")
    return float(json.loads(done.stdout.splitlines()[-1]))


def peak(workload: Workload, name: str) -> float:
    step = CONTENDERS[name](workload)
    gc.collect()
    # The most so far is forgotten: only what comes now is counted.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = resident("VmRSS")
    for _ in range(STEPS):
        step()
    return (resident("VmHWM") - before) / 1024


def resident(what: str) -> int:
    """KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:"))


def parts(workload: Workload, repeats: int) -> list[str]:
    """A line of the second table: parameters, and the parts of a step without privacy."""
    model, optimizer, criterion, x, y = made(workload)
    kept: dict[str, list[float]] = {"forward": [], "backward": [], "optimizer": []}
    for _ in range(WARM + repeats):
        optimizer.zero_grad()
        start = time.process_time()
        loss = criterion(model(x), y)
        forward = time.process_time()
        kept["forward"].append(forward - start)
        kept["backward"].append(cpu(loss.backward))
        kept["optimizer"].append(cpu(optimizer.step))
    count = sum(parameter.numel() for parameter in model.parameters())
    medians = [statistics.median(times[WARM:]) for times in kept.values()]
    cells = [milliseconds(1e3 * seconds) for seconds in medians]
    kind = type(optimizer).__name__
    return [
        workload.name,
        f"{workload.size}",
        kind,
        f"{count:,}",
        *cells,
        f"{1e8 * sum(medians) / count:.2f}",
    ]


def lines(workload: Workload, found: dict[str, Measured]) -> list[list[str]]:
    """The lines of one model: the ratio that is asked stands beside that of Dalenius."""
    base = found["without privacy"]
    said = []
    for name, one in found.items():
        if one.note:
            said.append([workload.name, name, one.note, *["–"] * 4])
            continue
        ratio = statistics.median(a / b for a, b in zip(one.seconds, base.seconds, strict=True))
        cells = [milliseconds(1e3 * statistics.median(one.seconds)), f"{ratio:.2f}"]
        cells += [f"{workload.goal:g}" if name == "Dalenius" else "–"]
        said.append([workload.name, name, *cells, f"{one.peak:,.0f}", f"{one.peak / base.peak:.2f}"])
    return said


def report(keys: list[str], repeats: int) -> str:
    from learn_models import WORKLOADS

    rows, pieces = [], []
    for key in keys:
        workload = WORKLOADS[key]
        found = {name: Measured() for name in CONTENDERS}
        pieces.append(parts(workload, repeats))
        timed(workload, repeats, found)
        gc.collect()
        for name, one in found.items():
            one.peak = float("nan") if one.note else remembered(key, name)
        rows += lines(workload, found)
        print(table(["model", "", "CPU ms", "×", "asked", "MiB", "×"], rows[-len(found) :]), file=sys.stderr)
    said = SAID.format(repeats=repeats, warm=WARM + 1, steps=STEPS, clip=CLIP, noise=NOISE)
    head = ["model", "", "CPU ms", "× without privacy", "at most", "MiB", "× without privacy"]
    first = f"## A step\n\n{said}\n{table(head, rows)}"
    head = [
        "model",
        "batch",
        "optimizer",
        "parameters",
        "forward",
        "backward",
        "optimizer",
        "a tenth, ns a parameter",
    ]
    return f"{first}\n## Its parts\n\n{PARTS_SAID}\n{table(head, pieces)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure private training steps on one thread.")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--repeats", type=int, default=9, help="steps of each contender")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the report is written")
    parser.add_argument("--peak", choices=CONTENDERS, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    one_thread()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    if chosen.peak:
        from learn_models import WORKLOADS

        print(json.dumps(peak(WORKLOADS[chosen.models[0]], chosen.peak)))
        return
    names = ", ".join(f"{name} {version(name)}" for name in ("dalenius", "torch", "opacus", "numpy"))
    page = f"# Private training on a CPU\n\n{processor()}, Python {platform.python_version()}; {names}.\n\n"
    page += report(chosen.models, chosen.repeats)
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(page, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
