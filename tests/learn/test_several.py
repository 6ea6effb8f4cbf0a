"""Several processes train as one: one sample, one sum, one noise, one charge. A death frees nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dalenius.errors import InvalidArgument, NotSound
from dalenius.learn.adding import ADDRESSED
from dalenius.learn.export import read_receipt
from dalenius.learn.numerics import Numerics
from dalenius.learn.several import Processes, plain
from dalenius.learn.shared import add_here
from dalenius.noise.addressed import rounded_gaussian

from . import together
from .shardable import MODELS
from .together import EXPECTED, KEY, STEPS, Rows, network
from .together_jobs import DEATHS, MORE_DEATHS

CLIP = 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("together")


def done(folder: Path, *which: str) -> dict[str, Any]:
    """Return the results of all jobs, done in one process that forks the others."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.learn.together_jobs", str(folder), *which]
    settings = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=settings, cwd=root, timeout=3600)
    results: dict[str, Any] = torch.load(folder / "results.pt", weights_only=False)
    return results


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    return done(folder)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of what the slow suite does beside."""
    return done(tmp_path_factory.mktemp("more"), "more")


def apart(one: dict[str, Tensor], two: dict[str, Tensor]) -> float:
    assert one.keys() == two.keys()
    return max(float((one[name] - two[name]).abs().max()) for name in one)


def same(one: dict[str, Tensor], two: dict[str, Tensor]) -> bool:
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


# One run.


@pytest.mark.parametrize("how", ["two", "three", "wrapped", "sharded"])
def test_processes_end_with_the_weights_of_one_process(found: dict[str, Any], how: str) -> None:
    check_weights(found, how)


@pytest.mark.slow
def test_three_processes_with_shards_end_with_the_weights_of_one_process(more: dict[str, Any]) -> None:
    check_weights(more, "sharded three")
    assert [one["charges"] for one in more["sharded three"]] == [1, 1, 1]


def check_weights(found: dict[str, Any], how: str) -> None:
    (alone,) = found["one"]
    first, *others = found[how]
    assert apart(first["weights"], alone["weights"]) < 1e-9
    assert all(same(first["weights"], other["weights"]) for other in others)
    assert all(one["loss"] == alone["loss"] for one in found[how])
    assert apart(first["weights"], dict(network().state_dict())) > 0.1


@pytest.mark.parametrize("how", ["two", "wrapped", "sharded"])
def test_a_run_of_processes_is_charged_once(found: dict[str, Any], how: str) -> None:
    # The account is that of the first, or all have it.
    other = None if how == "two" else 1
    assert [one["charges"] for one in found[how]] == [1] + [other] * (len(found[how]) - 1)


@pytest.mark.parametrize("how", ["two", "three", "sharded"])
def test_processes_share_the_rows_that_one_process_draws(found: dict[str, Any], how: str) -> None:
    # The first that is asked for is the one whose form made-up rows have.
    asked = [one["rows"][1:] for one in found[how]]
    together_ = sorted(row for rows in asked for row in rows)
    assert together_ == sorted(found["one"][0]["rows"][1:])
    assert all(len(rows) < len(together_) for rows in asked)


def whole_noise(step: int, size: int, bits: int) -> np.ndarray[Any, Any]:
    """By address, for all entries at once."""
    return rounded_gaussian(1 << bits).draw(KEY.addressed(ADDRESSED, step, 0, 0), 0, size)


@pytest.mark.parametrize("how", ["one", "two", "three", "wrapped"])
def test_parts_have_together_the_noise_of_the_whole_once(found: dict[str, Any], how: str) -> None:
    processes = found[how]
    for step in range(STEPS):
        drawn = []
        for one in processes:
            grid = CLIP / 2 ** one["bits"]
            before, after = one["steps"][step]["before"], one["steps"][step]["after"]
            drawn.append((after * EXPECTED / grid).round() - (before / grid).trunc())
        noise = torch.cat(drawn).numpy()
        np.testing.assert_array_equal(noise, whole_noise(step, noise.size, processes[0]["bits"]))


def test_what_processes_add_up_is_every_example_clipped_by_itself(found: dict[str, Any]) -> None:
    processes = found["two"]
    total = torch.cat([one["steps"][0]["before"] for one in processes])
    model, data = network(), Rows()
    wanted = torch.zeros_like(total)
    for row in first_batch():
        model.zero_grad()
        nn.functional.cross_entropy(model(data.x[[row]]), data.y[[row]]).backward()
        own = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        assert own.norm() > CLIP
        wanted += own * (processes[0]["within"] * CLIP / own.norm())
    assert float((total - wanted).norm()) < 1e-9
    assert float(wanted.norm()) > 0.1


def first_batch() -> list[int]:
    """The rows of the first step, which processes share."""
    from dalenius.learn.batch_draws import SAMPLE
    from dalenius.learn.sampling.reading import asked

    given: dict[str, Any] = {"units": None, "rows_per_unit": None, "cap": None, "bands": None, "epochs": None}
    sampling = asked(
        "poisson", together.ROWS, batch_size=EXPECTED, steps=STEPS, public_size=together.ROWS, **given
    )
    rows: list[int] = sampling.batch(0, KEY.stream(SAMPLE, 0)).tolist()
    return rows


@pytest.mark.parametrize("rule", ["quantile", "layers"])
def test_other_bounds_come_out_as_in_one_process(found: dict[str, Any], rule: str) -> None:
    (alone,), (one, two) = found["clips"][rule]
    assert apart(one["weights"], alone["weights"]) < 1e-9 and same(one["weights"], two["weights"])
    assert one["clip"] == two["clip"] == alone["clip"]
    assert (alone["clip"] != CLIP) == (rule == "quantile")


@pytest.mark.parametrize("kind", MODELS)
def test_a_sharded_model_of_any_kind_trains_as_a_whole_one(found: dict[str, Any], kind: str) -> None:
    for process in found["kinds"]:
        unsharded, sharded = process[kind]
        assert apart(unsharded, sharded) < 1e-9 and same(sharded, found["kinds"][0][kind][1])


def test_laplace_noise_is_of_its_own_for_each_process(found: dict[str, Any]) -> None:
    (alone,), (one, two) = found["clips"]["absolute"]
    assert same(one["weights"], two["weights"]) and one["loss"] == alone["loss"]
    sums = [torch.cat([two_["steps"][0][when] for two_ in (one, two)]) for when in ("before", "after")]
    assert apart({"": sums[0]}, {"": alone["steps"][0]["before"]}) < 1e-9
    # Of each entry: none went without, and none has what it has in one process, or in the other half.
    noise = sums[1] * EXPECTED - sums[0]
    other = alone["steps"][0]["after"] * EXPECTED - alone["steps"][0]["before"]
    assert float(noise.abs().min()) > 0 and float((noise - other).abs().min()) > 0
    half = len(noise) // 2
    assert float((noise[:half] - noise[-half:]).abs().min()) > 0


def test_a_loop_of_ones_own_is_shared(found: dict[str, Any]) -> None:
    (alone,), (one, two) = found["stepped"]
    assert apart(one["weights"], alone["weights"]) < 1e-9 and same(one["weights"], two["weights"])
    more = set(one["caveats"]) - set(alone["caveats"])
    assert more == {"that an example is given to one process only"}


# Refusals.


def test_a_refused_charge_is_refused_in_all_processes_before_a_step(found: dict[str, Any]) -> None:
    (error, asked), (other, asked_there) = found["refused at once"]
    assert error == other and error[0] == "BudgetExceeded"
    assert asked == asked_there == []
    (error, _, *here), (other, _, *there) = found["refused later"]
    assert error == other and error[0] == "BudgetExceeded"
    assert here == there == [True, 0]


def test_processes_that_were_given_something_else_are_refused(found: dict[str, Any]) -> None:
    errors, others = found["given another"]
    assert errors == others and all(kind == "InvalidArgument" for kind, _ in errors)
    words = ("another clip", "another noise_multiplier", "another sampling", "number of rows", "rank 0")
    assert all(word in text for word, (_, text) in zip(words, errors, strict=True))
    # How many rows there are is not said.
    assert "60" not in errors[3][1] and "61" not in errors[3][1]


def test_processes_that_are_not_at_the_same_step_or_batch_release_nothing(found: dict[str, Any]) -> None:
    for process in found["out of step"]:
        for (kind, text), unmoved, steps in process:
            assert kind == "NotSound" and "different" in text and unmoved and steps == 0


def test_a_loop_that_exchanges_anything_between_processes_is_refused(found: dict[str, Any]) -> None:
    for process in found["mixing"]:
        for kind, text, steps in process:
            assert (
                kind == "NotSound" and "private values" in text and "other processes" in text and steps == 0
            )


def test_rows_in_another_order_are_refused(found: dict[str, Any]) -> None:
    """One person would count in each process."""
    for kind, text, steps in found["other order"]:
        assert kind == "InvalidArgument" and "another order" in text and steps == 0


def test_sums_of_different_runs_or_settings_are_not_added_up(found: dict[str, Any]) -> None:
    for process in found["other runs"]:
        assert all(kind == "NotSound" and "different steps or runs" in text for kind, text in process)


def test_ledgers_of_ones_own_are_refused(found: dict[str, Any]) -> None:
    assert all(
        kind == "InvalidArgument" and "another process has another account" in text
        for kind, text in found["other ledgers"]
    )


@pytest.mark.parametrize("what", ["correlated", "closures"])
def test_what_is_for_one_process_is_refused_in_several(found: dict[str, Any], what: str) -> None:
    one, two = found[what]
    assert one == two and one[0] == "NotSound"


def test_shards_of_ways_that_are_not_known_and_loops_that_mix_are_refused(found: dict[str, Any]) -> None:
    for process in found["refused shards"]:
        assert [kind for kind, _ in process] == ["NotSound"] * 4
        assert "not known by example" in process[3][1]


def test_tensors_of_any_kind_become_those_of_the_first_process(found: dict[str, Any]) -> None:
    for one, two in zip(*found["spread"], strict=True):
        assert torch.equal(one, two)


def test_a_group_trains_by_itself(found: dict[str, Any]) -> None:
    (error, clip), (one, other), (two, another) = found["by themselves"]
    assert error[0] == "InvalidArgument" and (clip, other, another) == (1, 2, 3)
    assert apart(one["weights"], found["one"][0]["weights"]) < 1e-9 and same(one["weights"], two["weights"])
    assert (one["charges"], two["charges"]) == (1, None)


def test_parameters_that_were_laid_together_are_refused() -> None:
    class FullyShardedDataParallel(nn.Sequential):
        """As torch's, by its name."""

    with pytest.raises(NotSound, match="lays"):
        plain(nn.Sequential(FullyShardedDataParallel(nn.Linear(1, 1))))


def test_an_exchange_has_a_name_and_an_error_reaches_all(found: dict[str, Any]) -> None:
    (one, two) = found["not together"]
    assert one[0][0] == two[0][0] == "NotSound" and one[1][0] == "" and two[1][0] == "NotSound"
    assert one[2:5] == two[2:5] == [("ValueError", "one fails")] * 3
    # A key for each run, which its processes have in common.
    assert one[5:] == two[5:] and one[5] != one[6]


def test_a_group_needs_torch_distributed() -> None:
    with pytest.raises(InvalidArgument, match="not initialized"):
        Processes.of(object())
    alone = Processes.of()
    assert not alone.begun and alone.first("", lambda: 1) == 1 and alone.each("", lambda: 2) == [2]


# Deaths.


@pytest.mark.parametrize(("point", "who"), DEATHS)
def test_a_killed_process_ends_all_and_a_resumed_run_has_the_same_bits_and_pays_nothing_more(
    found: dict[str, Any], point: str, who: int
) -> None:
    check_death(found, point, who)


@pytest.mark.slow
@pytest.mark.parametrize(("point", "who"), MORE_DEATHS)
def test_a_process_killed_elsewhere_ends_all_and_a_resumed_run_has_the_same_bits(
    more: dict[str, Any], point: str, who: int
) -> None:
    check_death(more, point, who)


def check_death(found: dict[str, Any], point: str, who: int) -> None:
    whole = found["deaths"]["whole"]
    killed, resumed = found["deaths"][f"{point}, {who}"]
    assert killed == [None, None]
    for one, two in zip(whole, resumed, strict=True):
        assert same(one["weights"], two["weights"]) and one["clip"] == two["clip"]
        assert two["charges"] == one["charges"] and two["more"] == 0
    assert whole[0]["charges"] == 1


def test_a_seal_is_of_the_sums_of_all_processes(found: dict[str, Any]) -> None:
    one, two = found["seals"]
    assert one == two and one[0] == one[3] and len({one[0], one[1], one[2]}) == 3


@pytest.mark.parametrize("how", ["fewer", "more", "others"])
def test_a_broken_off_step_that_other_processes_or_on_other_data_make_again_is_charged_again(
    found: dict[str, Any], how: str
) -> None:
    killed, resumed = found["deaths"][how]
    assert killed == [None, None] and len(resumed) == {"fewer": 1, "more": 3, "others": 2}[how]
    # Two steps were noted since the run was saved, of which the second was broken off.
    assert all(one["more"] == 2 for one in resumed) and resumed[0]["charges"] == 3
    assert all(same(one["weights"], resumed[0]["weights"]) for one in resumed)
    assert apart(resumed[0]["weights"], found["deaths"]["whole"][0]["weights"]) > 1e-3


def test_shards_are_saved_and_gone_on_with_in_shards_or_whole(found: dict[str, Any]) -> None:
    whole, deaths = found["deaths"]["whole"], found["sharded deaths"]
    for one, two in zip(whole, deaths["whole"], strict=True):
        assert apart(one["weights"], two["weights"]) < 1e-9
    killed, resumed = deaths["two"]
    assert killed == [None, None]
    for one, two in zip(deaths["whole"], resumed, strict=True):
        assert same(one["weights"], two["weights"]) and same(one["averages"], two["averages"])
        assert (one["charges"], one["more"]) == (two["charges"], two["more"])
    killed, (resumed,) = deaths["one"]
    assert killed == [None, None] and resumed["more"] == 2 and resumed["charges"] == 3


@pytest.mark.parametrize("how", ["deaths", "sharded deaths"])
def test_exported_weights_are_the_averages_of_all(found: dict[str, Any], folder: Path, how: str) -> None:
    from safetensors.torch import load_file

    path = folder / how.replace(" ", "-") / "whole" / "model.safetensors"
    one, two = found[how]["whole"]
    assert same(load_file(path), one["averages"]) and same(one["averages"], two["averages"])
    assert apart(one["averages"], one["weights"]) > 1e-3
    assert read_receipt(path).entry is not None


@pytest.mark.slow
def test_the_script_of_the_page_on_training_runs(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "training.md").read_text()
    script = page.split("## Several processes")[1].split("```python\n")[1].split("```")[0]
    (tmp_path / "train.py").write_text(script)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--standalone",
        "train.py",
    ]
    settings = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=settings, cwd=tmp_path, timeout=3600)
    assert read_receipt(tmp_path / "shared.safetensors").cost == "epsilon 2 at delta 1e-06"


# Parts.


def test_every_entry_is_in_one_part() -> None:
    for count in (1, 2, 3, 8):
        for size in (0, 1, 2, 7, 8, 100):
            sizes = Processes(count=count).even(size)
            assert sum(sizes) == size and len(sizes) == count and max(sizes) == sizes[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_noise_by_address_is_the_same_in_parts(dtype: torch.dtype) -> None:
    sampler, stream = rounded_gaussian(1000), KEY.addressed(1)
    whole, cut = torch.zeros(5000, dtype=dtype), torch.zeros(5000, dtype=dtype)
    add_here(sampler, whole, 1.0, 4.0, stream, 0)
    for start in (0, 1, 1700, 4999):
        stop = {0: 1, 1: 1700, 1700: 4999, 4999: 5000}[start]
        add_here(sampler, cut[start:stop], 1.0, 4.0, stream, start)
    assert torch.equal(whole, cut)
    wanted = torch.from_numpy(sampler.draw(stream, 0, 5000)).to(dtype) / 4
    assert torch.equal(whole, wanted)


def test_sums_of_more_processes_are_clipped_no_less() -> None:
    given: dict[str, Any] = {"batch": 100, "chunk": 10, "dtype": torch.float32, "noise_multiplier": 1}
    slacks = [Numerics.of(1000, processes=count, **given).slack for count in (1, 2, 64)]
    assert slacks == sorted(set(slacks))
