"""Private training on a GPU: checks, and what a step costs in time and memory over one without privacy.

    python benchmarks/learn_gpu.py [--out FILE] [--models gpt2 vit …] [--profile FOLDER] [--largest]

Runs from source wherever torch, triton, numpy and scipy are; Opacus is measured where it can be imported.
Prints the table last, and writes it to benchmarks/results/learn_gpu.md; learn_gpu_profile.md beside it says
where the time of a compiled step goes.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import torch  # noqa: E402
from learn_gpu_models import WORKLOADS, Workload  # noqa: E402
from measure import table  # noqa: E402

CLIP, NOISE = 1.0, 1.0
WARM, REPEATS = 4, 15
SAID = """\
Time of a whole step, forward, backward, clipping, noise and SGD, by events of the device: the median of
{repeats} after {warm}, with the device waited for after each. Memory: the peak that torch has allocated, the
model included, and all that a recording holds. Flat L2 clipping at 1, noise multiplier 1, made-up batches.
bfloat16 is autocast's; convolutions and products in single precision do without TF32. GPT-2 has its head tied
to the symbols, save for Opacus, which takes no tied weights. Opacus by `make_private`, without its sampler,
with floating-point noise.

Recorded: forward and backward pass as one graph of CUDA (`private.recorded(…)`, and by hand without privacy).
Compiled: by torch's compiler (`private.recorded(…, compile=True)`, and `torch.compile` of model and criterion
without privacy). "× plain" is over the plain step, run operation by operation, "× its like" over the step
without privacy that is recorded or compiled as well; memory is over the like.
"""
Step = Callable[[], None]


def precision(workload: Workload) -> AbstractContextManager[object]:
    return torch.autocast("cuda", torch.bfloat16) if workload.half else nullcontext()


def made(workload: Workload, *, untied: bool = False):
    torch.manual_seed(7)
    make = workload.untied if untied and workload.untied else workload.model
    model = make().cuda()
    trained = [one for one in model.parameters() if one.requires_grad]
    x, y = workload.batch(workload.size)
    return model, torch.optim.SGD(trained, lr=0.01), workload.criterion(), x.cuda(), y.cuda()


def plain(workload: Workload) -> Step:
    model, optimizer, criterion, x, y = made(workload)

    def step() -> None:
        optimizer.zero_grad()
        with precision(workload):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    return step


def plain_recorded(workload: Workload) -> Step:
    """Forward and backward pass as a graph of CUDA."""
    model, optimizer, criterion, x, y = made(workload)

    def both() -> None:
        optimizer.zero_grad()
        with precision(workload):
            loss = criterion(model(x), y)
        loss.backward()

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            both()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad()
    with torch.cuda.graph(graph):
        both()

    def step() -> None:
        graph.replay()
        optimizer.step()

    return step


def plain_compiled(workload: Workload) -> Step:
    model, optimizer, criterion, x, y = made(workload)
    compiled = torch.compile(lambda x, y: criterion(model(x), y))

    def step() -> None:
        optimizer.zero_grad()
        with precision(workload):
            loss = compiled(x, y)
        loss.backward()
        optimizer.step()

    return step


def dalenius(workload: Workload) -> Step:
    from dalenius.learn.optimizer import PrivateOptimizer

    model, optimizer, criterion, x, y = made(workload)
    private = PrivateOptimizer(model, optimizer, clip=CLIP, noise_multiplier=NOISE, batch_size=workload.size)

    def step() -> None:
        private.zero_grad()
        with precision(workload):
            loss = criterion(private.model(x), y)
        loss.backward()
        private.step()

    return step


def recorded(*, compile: bool) -> Callable[[Workload], Step]:
    def make(workload: Workload) -> Step:
        from dalenius.learn.optimizer import PrivateOptimizer

        model, optimizer, criterion, x, y = made(workload)
        private = PrivateOptimizer(
            model, optimizer, clip=CLIP, noise_multiplier=NOISE, batch_size=workload.size
        )
        learn = private.recorded(lambda x, y: criterion(private.model(x), y), compile=compile)

        def step() -> None:
            private.zero_grad()
            with precision(workload):
                learn(x, y)
            private.step()

        return step

    return make


def opacus(mode: str) -> Callable[[Workload], Step]:
    def make(workload: Workload) -> Step:
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        model, optimizer, criterion, x, y = made(workload, untied=True)
        model.train()
        model, optimizer, *wrapped, _ = PrivacyEngine().make_private(
            module=model, optimizer=optimizer, data_loader=DataLoader(TensorDataset(x, y), len(x)),
            noise_multiplier=NOISE, max_grad_norm=CLIP, poisson_sampling=False, grad_sample_mode=mode,
            **({"criterion": criterion} if mode == "ghost" else {}),
        )  # fmt: skip
        criterion = wrapped[0] if mode == "ghost" else criterion

        def step() -> None:
            optimizer.zero_grad()
            with precision(workload):
                loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()

        return step

    return make


CONTENDERS = {
    "without privacy": plain,
    "Dalenius": dalenius,
    "without privacy, recorded": plain_recorded,
    "Dalenius, recorded": recorded(compile=False),
    "without privacy, compiled": plain_compiled,
    "Dalenius, compiled": recorded(compile=True),
    "Opacus, hooks": opacus("hooks"),
    "Opacus, ghost": opacus("ghost"),
}


def measured(make: Callable[[Workload], Step], workload: Workload, into: Path | None) -> tuple[float, float]:
    """Milliseconds of a step, and MiB at its peak: a recording's memory counts in full."""
    gc.collect()
    torch.cuda.empty_cache()
    step = make(workload)
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(REPEATS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        step()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last))
    pools = [one for one in torch.cuda.memory_snapshot() if tuple(one["segment_pool_id"]) != (0, 0)]
    unseen = sum(one["total_size"] - one["allocated_size"] for one in pools)
    if into is not None:
        profiled(step, into)
    return statistics.median(times), (torch.cuda.max_memory_allocated() + unseen) / 2**20


def rows(workload: Workload, contenders: list[str], profile: Path | None) -> list[list[str]]:
    found: list[list[str]] = []
    bases: dict[str, tuple[float, float]] = {}
    for name in contenders:
        torch._dynamo.reset()
        into = profile and profile / "".join(c if c.isalnum() else "-" for c in f"{workload.name} {name}")
        try:
            ms, peak = measured(CONTENDERS[name], workload, into)
        except Exception as reason:
            said = f"{type(reason).__name__}: {str(reason)[:300]}"
            found.append([workload.name, name, said, "", "", "", "", ""])
            print(found[-1], flush=True)
            continue
        who, _, how = name.partition(", ")
        if who == "without privacy":
            bases[how] = ms, peak
        eager = bases.get("", (float("nan"),) * 2)
        same = bases.get(how, (float("nan"),) * 2)
        asked = f"{workload.time:g} ({workload.memory:g})" if who == "Dalenius" else "–"
        own = who != "Opacus" and how
        found.append(
            [
                workload.name,
                name,
                f"{ms:.1f}",
                f"{ms / eager[0]:.2f}",
                f"{ms / same[0]:.2f}" if own else "–",
                f"{peak:,.0f}",
                f"{peak / (same if own else eager)[1]:.2f}",
                asked,
            ]
        )
        print(found[-1], flush=True)
    return found


def off(workload: Workload, size: int = 4) -> float:
    """How far the clipped sum is from that of a loop over examples, as a share of it."""
    from dalenius.learn.gradients import Watched

    model, _, criterion, x, y = made(workload)
    x, y = x[:size], y[:size]
    trained = [one for one in model.parameters() if one.requires_grad]
    wanted = [torch.zeros_like(one) for one in trained]
    for i in range(size):
        with precision(workload):
            loss = criterion(model(x[i : i + 1]), y[i : i + 1])
        own = torch.autograd.grad(loss, trained)
        norm = torch.stack([one.double().square().sum() for one in own]).sum().sqrt()
        for total, one in zip(wanted, own, strict=True):
            total += one * float(min(1.0, CLIP / norm))
    watched = Watched(model)
    with precision(workload):
        loss = criterion(watched(x), y)
    (loss * size).backward()
    shares = watched.shares()
    norms = torch.stack(list(shares.norms().values())).double().sum(0).sqrt()
    totals = {one: torch.zeros_like(one) for one in watched.names}
    shares.add((CLIP / norms).clamp(max=1.0).float() / watched.gain, totals)
    apart = sum(float((totals[a] - b).double().square().sum()) for a, b in zip(trained, wanted, strict=True))
    return (apart / sum(float(b.double().square().sum()) for b in wanted)) ** 0.5


def noise(size: int = 124_000_000) -> str:
    """Whether a GPU draws what a processor does, and how long it takes."""
    from dalenius.learn.gpu.noise import DeviceNoise
    from dalenius.noise import addressed, kernel
    from dalenius.noise.kernel import Grid
    from dalenius.noise.stream import StreamKey

    said = []
    for scale in (2**10, 2**20, 3 * 2**23):
        sampler, grid = addressed.rounded_gaussian(scale), Grid(2.0**-12, 2.0**29, 2.0**-12)
        stream, drawn = StreamKey.fresh().addressed(1), DeviceNoise(sampler, torch.device("cuda"))
        for start, kind in ((0, torch.float32), (12345, torch.float64)):
            here = torch.randn(1_000_001, dtype=kind)
            there = here.cuda()
            drawn.add(there, stream, grid, start=start)
            wanted = here.numpy()
            kernel.loops.add(wanted, sampler.draw(stream, start, start + wanted.size), grid)
            apart = int((there.cpu().numpy() != wanted).sum())
            said.append(f"- scale {scale}, {kind}: {apart} of {wanted.size:,} differ")
        total, times = torch.randn(size, device="cuda"), []
        for i in range(8):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            drawn.add(total, StreamKey.fresh().addressed(i), grid)
            last.record()
            torch.cuda.synchronize()
            times.append(first.elapsed_time(last))
        said.append(f"- scale {scale}: {statistics.median(times):.2f} ms for {size:,} entries")
    return "\n".join(said)


def largest(logical: int = 8192) -> str:
    """A step on a logical batch that no memory holds, in chunks that do."""
    from dalenius.learn.private import Private

    workload = WORKLOADS["gpt2"]
    model, optimizer, criterion, *_ = made(workload)
    x, y = workload.batch(2 * logical)
    private = Private(
        model, optimizer, (x, y), batch_size=logical, steps=1, clip=CLIP, noise_multiplier=NOISE,
        public_size=len(x),
    )  # fmt: skip
    learn = private.recorded(lambda x, y: criterion(private.model(x), y))
    passes, start = 0, time.perf_counter()
    for x, y in private.loader:
        private.zero_grad()
        with precision(workload):
            learn(x.cuda(), y.cuda())
        private.step()
        passes += 1
    seconds, peak = time.perf_counter() - start, torch.cuda.max_memory_reserved() / 2**30
    # Of the passes, five were rehearsals.
    return (
        f"One step of {workload.name} on {logical:,} sequences expected, from a first look at the model to "
        f"moved weights: {seconds:.0f} s, {private.steps} step, {passes - 5} passes over at most "
        f"{private.chunk} sequences as chosen to fit memory, {peak:.0f} GiB reserved at most."
    )


def profiled(step: Step, into: Path) -> None:
    """What the device did in three steps."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as found:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
    averages = found.key_averages()
    busy = averages.table(sort_by="self_cuda_time_total", row_limit=40, max_name_column_width=70)
    into.with_suffix(".txt").write_text(f"{idle(found)}\n{busy}")


def idle(found: torch.profiler.profile) -> str:
    """The longest times in which the device had nothing to do, and what came before and after."""
    there = [one for one in found.events() if one.device_type == torch.autograd.DeviceType.CUDA]
    there = sorted((one for one in there if "step" not in one.name), key=lambda one: one.time_range.start)
    gaps, last = [], there[0]
    for one in there:
        gaps.append((one.time_range.start - last.time_range.end, last.name[:50], one.name[:50]))
        last = max(last, one, key=lambda one: one.time_range.end)
    total = sum(gap for gap, *_ in gaps if gap > 0)
    longest = "\n".join(f"{gap:8.0f} us  {a} -> {b}" for gap, a, b in sorted(gaps, reverse=True)[:25])
    return f"idle for {total:.0f} us in all\n{longest}\n"


def page(lines: list[list[str]], errors: list[list[str]], drawn: str) -> str:
    """What is kept as the result."""
    device = torch.cuda.get_device_name()
    head = ["model", "", "ms", "× plain", "× its like", "MiB", "× its like", "at most"]
    return "\n".join(
        [
            f"# Private training on a GPU\n\n{device}; torch {torch.__version__}, one process.\n",
            SAID.format(warm=WARM, repeats=REPEATS),
            table(head, lines),
            "How far the clipped sum of 4 examples is from that of a loop over examples, as a share of it:\n",
            table(["model", "in single precision", "as it is trained"], errors),
            f"Noise by address, drawn on the GPU and held against the processor's:\n\n{drawn}"
            if drawn
            else "",
        ]
    )


def errors_of(workload: Workload) -> list[str]:
    found = []
    for half in (False, True):
        if half and not workload.half:
            found.append("–")
            continue
        try:
            found.append(f"{off(replace(workload, half=half)):.1e}")
        except Exception as reason:
            found.append(f"{type(reason).__name__}: {str(reason)[:80]}")
    print(workload.name, found, flush=True)
    return [workload.name, *found]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/learn_gpu.md")
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--compiled", nargs="*", default=list(WORKLOADS), help="models to compile as well")
    parser.add_argument("--largest", action="store_true", help="a step on 8,192 sequences as well")
    given = parser.parse_args()
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    drawn = noise()
    print(drawn, flush=True)
    lines, errors = [], []
    for key in given.models:
        errors.append(errors_of(WORKLOADS[key]))
        some = [one for one in given.contenders if "compiled" not in one or key in given.compiled]
        lines += rows(WORKLOADS[key], some, given.profile)
        given.out.write_text(page(lines, errors, drawn))
    found = page(lines, errors, drawn)
    if given.largest:
        gc.collect()
        torch.cuda.empty_cache()
        found += f"\n{largest()}\n"
    given.out.write_text(found)
    print(found)


if __name__ == "__main__":
    main()
