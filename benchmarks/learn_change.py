"""Private training: what a step costs in this tree over what it costs in another checkout.

    git worktree add build/base COMMIT
    python benchmarks/learn_change.py build/base [--turns 24] [--steps 8] [--models mlp gpt …] [--out FILE]

Two processes, one for each tree, take turns: some steps in one, then as many in the other. Each turn gives a
ratio, so that what else the machine does changes both. On a GPU the models are those of `learn_gpu.py` and
times are those of its events; elsewhere they are those of `learn_cpu.py` and CPU time of one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WARM = 4
SAID = """\
Time of an eager step of `PrivateOptimizer`, forward, backward, clipping, noise and optimizer, over that of
the same step at commit {base}: the median and the quartiles of {turns} turns of {steps} steps in each of two
processes, which take turns. {machine}.
"""


def maker(name: str) -> tuple[Callable[[], None], Callable[[], float]]:
    """Return a private step of a model, and a clock that waits until the step is done."""
    import torch

    torch.manual_seed(7)
    gpu = torch.cuda.is_available()
    if gpu:
        from learn_gpu_models import WORKLOADS
    else:
        torch.set_num_threads(1)
        from learn_models import WORKLOADS  # type: ignore[assignment]
    from dalenius.learn.optimizer import PrivateOptimizer

    workload = WORKLOADS[name]
    model = workload.model().to("cuda" if gpu else "cpu")
    x, y = (one.to("cuda" if gpu else "cpu") for one in workload.batch(workload.size))
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = getattr(workload, "optimizer", partial(torch.optim.SGD, lr=0.01))(trained)
    private = PrivateOptimizer(model, optimizer, clip=1.0, noise_multiplier=1.0, batch_size=workload.size)
    criterion = workload.criterion()

    def step() -> None:
        private.zero_grad()
        half = gpu and getattr(workload, "half", False)
        with torch.autocast("cuda", torch.bfloat16) if half else nullcontext():
            loss = criterion(private.model(x), y)
        loss.backward()
        private.step()

    def clock() -> float:
        if not gpu:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    return step, clock


def work(tree: str, name: str) -> None:
    """Make as many steps as each line of the input says, and print the seconds they took."""
    sys.path[:0] = [tree, f"{tree}/benchmarks"]
    step, clock = maker(name)
    for _ in range(WARM):
        step()
    print("ready", flush=True)
    for line in sys.stdin:
        start = clock()
        for _ in range(int(line)):
            step()
        print(clock() - start, flush=True)


def compared(base: Path, name: str, turns: int, steps: int) -> tuple[float, float, list[float]]:
    """Return milliseconds of a step in the base and in this tree, and the ratio of each turn."""
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--work", str(tree), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tree)},
        )
        for tree in (base, ROOT)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline().strip() == "ready"
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns):
        for which in (0, 1) if turn % 2 else (1, 0):
            process = processes[which]
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
            seconds[which].append(float(process.stdout.readline()) / steps)
    for process in processes:
        process.communicate()
    before, after = (1e3 * statistics.median(some) for some in seconds)
    return before, after, [new / old for old, new in zip(*seconds, strict=True)]


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("base", type=Path)
    reader.add_argument("--turns", type=int, default=24)
    reader.add_argument("--steps", type=int, default=8)
    reader.add_argument("--models", nargs="*")
    reader.add_argument("--commit", default="")
    reader.add_argument("--out", type=Path)
    given = reader.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    import torch
    from measure import processor, table

    gpu = torch.cuda.is_available()
    names = given.models or (
        ["gpt2", "lora", "vit", "resnet", "wrn"] if gpu else ["mlp", "cnn", "embedding", "gpt", "resnet"]
    )
    rows = []
    for name in names:
        before, after, ratios = compared(given.base.resolve(), name, given.turns, given.steps)
        low, middle, high = statistics.quantiles(ratios, n=4)
        rows.append([name, f"{before:.3g}", f"{after:.3g}", f"{middle:.3f}", f"{low:.3f}–{high:.3f}"])
        print(*rows[-1], flush=True)
    machine = f"{torch.cuda.get_device_name() if gpu else processor()}, torch {torch.__version__}"
    said = SAID.format(base=given.commit or given.base, turns=given.turns, steps=given.steps, machine=machine)
    text = f"{said}\n{table(['model', 'ms before', 'ms now', 'ratio', 'quartiles'], rows)}"
    print(text)
    if given.out:
        given.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(*sys.argv[2:4])
    else:
        main()
