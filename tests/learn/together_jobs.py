"""What processes do together, in trouble and out of it. As a script it runs all of it, in forks.

python -m tests.learn.together_jobs FOLDER [more]       writes FOLDER/results.pt
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

from dalenius.errors import BudgetExceeded
from dalenius.learn.adaptive import Quantile
from dalenius.learn.averaging import Average
from dalenius.learn.optimizer import PrivateOptimizer
from dalenius.learn.private import Private
from dalenius.learn.several import Processes
from dalenius.learn.sharded import is_sharded
from dalenius.noise import addressed

from . import shardable
from .together import (
    EVERY,
    KEY,
    RULES,
    Rows,
    arguments,
    begun,
    charges,
    ddp,
    error_of,
    forked,
    fsdp,
    network,
    people,
    shard,
    train,
    watch,
    weights,
)

# Jobs: each gives what one process saw.


def trained(
    rank: int,
    count: int,
    folder: Path,
    *,
    wrap: Any = None,
    own: bool = False,
    paid: bool = True,
    **more: Any,
) -> Any:
    """A whole run; the first process, or each, has the account, and the first the weights to begin with."""
    model = network(seed=rank if own else 0)
    model = model if wrap is None else wrap(model)
    account = people(folder) if paid and distributed.get_rank(more.get("group")) == 0 else None
    distributed.barrier(more.get("group"))
    if paid and wrap is not None:
        account = people(folder)
    private = begun(model, account=account, **more)
    steps, asked = watch(private), private.supply._dataset.asked
    train(private)
    assert all(is_sharded(one) == is_sharded(one.grad) == (wrap is fsdp) for one in private.model.names)
    return {
        "weights": weights(private.model.inner),
        "steps": steps,
        "rows": asked,
        "clip": private._sum.clip,
        "loss": private.spent,
        "charges": None if account is None else charges(account),
        "bits": private._sum.plan.numerics.bits,
        "within": private._sum.plan.numerics.within(1.0),
    }


def stepped(rank: int, count: int, folder: Path) -> Any:
    """A loop of one's own: each process has every so many-th row."""
    model = network(seed=rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    private = PrivateOptimizer(model, optimizer, clip=1, noise_multiplier=1, batch_size=10)
    private._key, rows = KEY, Rows()
    for step in range(3):
        private.zero_grad()
        own = range(10 * step, 10 * step + 10)[rank::count]
        nn.functional.cross_entropy(private.model(rows.x[own]), rows.y[own]).backward()
        private.step()
    return {"weights": weights(private.model.inner), "caveats": private.caveats}


def refused_at_once(rank: int, count: int, folder: Path) -> Any:
    data, account = Rows(), people(folder, epsilon=0.1) if rank == 0 else None
    return error_of(lambda: begun(network(), account=account, data=data)), data.asked


def refused_later(rank: int, count: int, folder: Path) -> Any:
    """What was left when the run was made is spent when it begins."""
    model, data = network(), Rows()
    account = people(folder, epsilon=4) if rank == 0 else None
    private = begun(model, account=account, data=data)
    before = weights(model)
    if account is not None:
        private._payment._charge_here(private.cost)
        # What would fit is looked for at length.
        account._refusal = lambda *_: BudgetExceeded("Too little is left.", remedy="")  # type: ignore[method-assign]
    found = error_of(lambda: train(private))
    same = all(torch.equal(one, before[name]) for name, one in weights(model).items())
    return found, data.asked, same, private.steps


def given_another(rank: int, count: int, folder: Path) -> Any:
    others: list[dict[str, Any]] = [
        {"clip": 1 + rank},
        {"noise_multiplier": 1 + rank},
        {"batch_size": 10 + rank},
        {"data": (torch.randn(60 + rank, 4).double(), torch.zeros(60 + rank).long())},
        {"account": people(folder) if rank else None},
    ]
    return [error_of(partial(begun, network(), **more)) for more in others]


def correlated(rank: int, count: int, folder: Path) -> Any:
    return error_of(lambda: begun(network(), sampling="cyclic", bands=3))


def closures(rank: int, count: int, folder: Path) -> Any:
    model = network()
    return error_of(lambda: begun(model, optimizer=torch.optim.LBFGS(model.parameters())))


def not_together(rank: int, count: int, folder: Path) -> Any:
    """Exchanges of different names, and errors of one process; and the key that all have."""
    group = Processes.of()

    def fail() -> None:
        raise ValueError("one fails")

    return [
        error_of(lambda: group.each(f"place {rank}", lambda: 1)),
        error_of(lambda: group.first(f"place {rank}", lambda: 1)),
        error_of(lambda: group.each("place", fail if rank else int)),
        error_of(lambda: group.first("place", fail)),
        error_of(lambda: group.first("place", lambda: 1 if rank else fail())),
        Private(**arguments(network()))._key.secret,
        PrivateOptimizer(
            model := network(),
            torch.optim.SGD(model.parameters()),
            clip=1,
            noise_multiplier=1,
            batch_size=1,
        )._key.secret,
    ]


def seals(rank: int, count: int, folder: Path) -> Any:
    """Of sums as they are, and with one entry of one process changed; those of the first process again."""
    private, found = begun(network(), steps=1), list[bytes]()

    def use(step: int, seal: Callable[[], bytes]) -> bool:
        (own,) = private._sum.exact()
        for who in (None, 0, 1, None):
            before = own[-1].clone()
            own[-1] += 1e-9 if who == rank else 0.0
            found.append(seal())
            own[-1] = before
        return True

    private._attempts.use = use  # type: ignore[method-assign]
    train(private)
    return found


def spread(rank: int, count: int, folder: Path) -> Any:
    """Tensors of the first process, of all kinds."""
    bits = torch.Generator().manual_seed(rank)
    whole_ = torch.randn(4, 3, 5, 5, generator=bits)
    given = [whole_, whole_.to(memory_format=torch.channels_last), whole_[0, 0].t(), whole_ > 0]
    given += [whole_.bfloat16(), torch.tensor(rank), torch.randn(3, generator=bits, dtype=torch.complex64)]
    given = [one.clone() for one in given]
    layouts = [one.stride() for one in given]
    Processes.of().spread(given)
    assert layouts == [one.stride() for one in given]
    return given


def by_themselves(rank: int, count: int, folder: Path) -> Any:
    """A run of two of three processes, and one of its own in each."""
    both = distributed.new_group([1, 2])
    shared = trained(rank, count, folder, group=both) if rank else error_of(lambda: Processes.of(both))
    mine = distributed.new_group([rank], use_local_synchronization=True)
    private = begun(network(), clip=1 + rank, group=mine)
    train(private)
    return shared, private._sum.plan.clipping.clip


def out_of_step(rank: int, count: int, folder: Path) -> Any:
    """One process believes that it is at another step, or drew another batch."""
    found = []
    for name in ("steps", "_batch"):
        private = begun(network())
        before = weights(private.model.inner)
        meet = private._sum.meet

        def astray(key: Any, *where: int, name: str = name, meet: Any = meet) -> None:
            place = ("steps", "attempt", "_batch").index(name)
            meet(key, *(one + (rank if number == place else 0) for number, one in enumerate(where)))

        private._sum.meet = astray  # type: ignore[method-assign]
        error = error_of(partial(train, private))
        now = weights(private.model.inner)
        found.append((error, all(torch.equal(before[one], now[one]) for one in before), private.steps))
    return found


def mixing(rank: int, count: int, folder: Path) -> Any:
    """Loops that exchange something between processes: how many rows each has, and what is in one."""

    def counted(private: Private, x: Any, y: Any) -> Any:
        number = torch.ones_like(y, dtype=torch.float64).sum()
        distributed.all_reduce(number)
        losses = nn.functional.cross_entropy(private.model(x), y, reduction="none")
        return losses.sum() * count / number

    def scaled(private: Private, x: Any, y: Any) -> Any:
        other = x[0].clone()
        distributed.broadcast(other, 1)
        return nn.functional.cross_entropy(private.model(x), y) * (1 + other.abs().sum())

    found = []
    for loss in (counted, scaled):
        private = begun(network())

        def loop(private: Private = private, loss: Any = loss) -> None:
            for x, y in private.loader:
                private.zero_grad()
                loss(private, x, y).backward()
                private.step()

        found.append((*error_of(loop), private.steps))
    return found


def other_order(rank: int, count: int, folder: Path) -> Any:
    """The same rows, the other way round in one process."""
    data = Rows()
    if rank:
        data.x, data.y = data.x.flip(0), data.y.flip(0)
    private = begun(network(), data=data)
    return (*error_of(partial(train, private)), private.steps)


def other_runs(rank: int, count: int, folder: Path) -> Any:
    """Two runs whose steps processes make in another order; one whose settings are not the same."""
    models = [network(), network()]
    both = [
        PrivateOptimizer(
            model,
            torch.optim.SGD(model.parameters(), lr=0.1),
            clip=clip,
            noise_multiplier=1,
            batch_size=4,
        )
        for model, clip in zip(models, (1, 100), strict=True)
    ]

    def steps() -> None:
        for one in both[:: 1 if rank else -1]:
            one.step()

    private = begun(network())
    private.optimizer.param_groups[0]["lr"] = 0.1 + rank
    return error_of(steps), error_of(partial(train, private))


def other_ledgers(rank: int, count: int, folder: Path) -> Any:
    own = folder / str(rank)
    own.mkdir()
    return error_of(lambda: begun(network(), account=people(own)))


def kinds(rank: int, count: int, folder: Path) -> Any:
    return shardable.sharded_or_not(KEY, shard(), folder)


def refused_shards(rank: int, count: int, folder: Path) -> Any:
    """Ways that are not known."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

    mesh, one = (
        init_device_mesh("cpu", (count,)),
        init_device_mesh("cpu", (1, count), mesh_dim_names=("a", "b")),
    )
    ways: list[dict[str, Any]] = [
        {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16)},
        {"mesh": mesh, "offload_policy": CPUOffloadPolicy(pin_memory=False)},
        {"mesh": one},
    ]
    found = [error_of(lambda way=way: begun(fully_shard(network(), **way))) for way in ways]
    private = begun(fsdp(network()))

    def mixing() -> None:
        for x, y in private.loader:
            private.zero_grad()
            nn.functional.cross_entropy(private.model(x - x.mean(0) / 2), y).backward()
            private.step()

    return [*found, error_of(mixing)]


# Deaths.


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(owner: Any, name: str, number: int) -> None:
    """Where `owner.name` is called for the so many-th time, before anything happens."""
    original, calls = getattr(owner, name), [0]

    def called(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            die()
        return original(*args, **kwargs)

    setattr(owner, name, called)


POINTS: dict[str, Callable[[Private], None]] = {
    "before sums meet": lambda private: dying(private._sum, "meet", 4),
    "before a line": lambda private: dying(private._attempts, "use", 4),
    "after a line": lambda private: dying(private._sum, "release", 4),
    "after noise": lambda private: dying(private.processes.__class__, "gathered", 4),
    "after a move": lambda private: dying(private._attempts, "done", 4),
}
DEATHS = (("before a line", 0), ("after a line", 1))
"""Where which process dies in the ordinary run."""
MORE_DEATHS = (("before sums meet", 1), ("after a line", 0), ("after noise", 1), ("after a move", 0))
"""Where which process dies in the slow suite."""


def killed(
    rank: int,
    count: int,
    folder: Path,
    *,
    point: str | None = None,
    who: int = -1,
    wrap: Any = None,
    moved: float = 0.0,
) -> Any:
    """Begin or resume a run, which is saved after every second step; `who` dies at a point."""
    path = folder / "run.state"
    model = network(dropout=0.5)
    model = model if wrap is None else wrap(model)
    average = Average(model, decay=0.5)
    account = people(folder) if rank == 0 else None
    more = {"account": account, "clip": Quantile(0.1), "steps": 6, "average": average, "data": Rows(moved)}
    given = arguments(model, **more)
    private = Private.resume(path, **given) if path.exists() else begun(model, **more)
    if point is not None and rank == who:
        POINTS[point](private)
    train(private, after=lambda one: one.save(path) if one.steps % EVERY == 0 else None)
    private.export(folder / "model.safetensors")
    return {
        "weights": weights(private.model.inner),
        "averages": average.published(private.model.inner.state_dict(keep_vars=True)),
        "charges": None if account is None else charges(account),
        "more": private._attempts.more,
        "clip": private._sum.clip,
    }


# The script.


def died(folder: Path, where: tuple[tuple[str, int], ...]) -> dict[str, Any]:
    found: dict[str, Any] = {"whole": forked(killed, 2, folder / "whole")}
    for number, (point, who) in enumerate(where):
        own = folder / str(number)
        first = forked(partial(killed, point=point, who=who), 2, own)
        found[f"{point}, {who}"] = first, forked(killed, 2, own)
    return found


def deaths(folder: Path) -> Any:
    found = died(folder, DEATHS)
    for name, count, moved in (("fewer", 1, 0), ("more", 3, 0), ("others", 2, 1)):
        own = folder / name
        first = forked(partial(killed, point="after a line", who=1), 2, own)
        found[name] = first, forked(partial(killed, moved=moved), count, own)
    return found


def sharded_deaths(folder: Path) -> Any:
    """In shards; and what two had in shards is gone on with by two, or by one that has it whole."""
    by_two = partial(killed, wrap=fsdp)
    found: dict[str, Any] = {"whole": forked(by_two, 2, folder / "whole")}
    for name, job, count in (("two", by_two, 2), ("one", killed, 1)):
        own = folder / name
        first = forked(partial(by_two, point="after a line", who=1), 2, own)
        found[name] = first, forked(job, count, own)
    return found


def clips(folder: Path) -> Any:
    return {
        name: [
            forked(partial(trained, clip=rule, paid=name == "quantile"), count, folder / f"{name}{count}")
            for count in (1, 2)
        ]
        for name, rule in RULES.items()
    }


PARTS: dict[str, Callable[[Path], Any]] = {
    "one": lambda folder: forked(trained, 1, folder),
    "two": lambda folder: forked(partial(trained, own=True), 2, folder),
    "three": lambda folder: forked(trained, 3, folder),
    "wrapped": lambda folder: forked(partial(trained, wrap=ddp), 2, folder),
    "sharded": lambda folder: forked(partial(trained, wrap=fsdp), 2, folder),
    "kinds": lambda folder: forked(kinds, 2, folder),
    "refused shards": lambda folder: forked(refused_shards, 2, folder),
    "spread": lambda folder: forked(spread, 2, folder),
    "by themselves": lambda folder: forked(by_themselves, 3, folder),
    "seals": lambda folder: forked(seals, 2, folder),
    "not together": lambda folder: forked(not_together, 2, folder),
    "clips": clips,
    "stepped": lambda folder: [forked(stepped, count, folder / str(count)) for count in (1, 2)],
    "refused at once": lambda folder: forked(refused_at_once, 2, folder),
    "refused later": lambda folder: forked(refused_later, 2, folder),
    "given another": lambda folder: forked(given_another, 2, folder),
    "correlated": lambda folder: forked(correlated, 2, folder),
    "closures": lambda folder: forked(closures, 2, folder),
    "out of step": lambda folder: forked(out_of_step, 2, folder),
    "mixing": lambda folder: forked(mixing, 2, folder),
    "other order": lambda folder: forked(other_order, 2, folder),
    "other runs": lambda folder: forked(other_runs, 2, folder),
    "other ledgers": lambda folder: forked(other_ledgers, 2, folder),
    "deaths": deaths,
    "sharded deaths": sharded_deaths,
}
MORE_PARTS: dict[str, Callable[[Path], Any]] = {
    "one": PARTS["one"],
    "sharded three": lambda folder: forked(partial(trained, wrap=fsdp), 3, folder),
    "deaths": lambda folder: died(folder, MORE_DEATHS),
}
"""What the slow suite does beside."""


def warm() -> None:
    """What is imported and computed once is there before anything is forked."""
    torch.set_num_threads(1)
    import_module("torch.distributed.fsdp")
    for rule in (0.1, *RULES.values()):
        private = Private(**arguments(network(), steps=1, clip=rule))
        train(private)
        if private._sum.plan.clipping.norm == "l2":
            addressed.rounded_gaussian(private._sum.plan.scale)


def main(folder: Path, parts: dict[str, Callable[[Path], Any]]) -> None:
    warm()
    results = {}
    for name in parts:
        own = folder / name.replace(" ", "-")
        own.mkdir()
        results[name] = parts[name](own)
    torch.save(results, folder / "results.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]), MORE_PARTS if sys.argv[2:] == ["more"] else PARTS)
