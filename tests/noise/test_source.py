"""The source of bits: its cipher, its keys, what it forgets, and what a fork makes of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dalenius import noise
from dalenius.errors import InvalidArgument
from dalenius.noise import source as sources
from dalenius.noise.exponential import Laplace
from dalenius.noise.pool import DEPTH
from dalenius.noise.sampler import Sampler
from dalenius.noise.source import BLOCK, KEY, Source, active, keystream, seeded, tainted

PACKAGE = Path(sources.__file__).parent.parent


def test_the_cipher_gives_the_known_answer() -> None:
    """NIST SP 800-38A, F.5.5: CTR-AES256.Encrypt."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    cipher = bytes.fromhex(
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )
    stream = np.zeros(64, np.uint8)
    keystream(key, stream, bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"))
    assert bytes(p ^ s for p, s in zip(plain, stream.tolist(), strict=True)) == cipher


def test_blocks_follow_from_fresh_keys_and_the_last_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key is 32 new bytes of the system xor the 32 first bytes of the block before, never handed out."""
    fresh = [bytes([i]) * KEY for i in (7, 9, 11)]
    answers = iter(fresh)
    monkeypatch.setattr(os, "urandom", lambda n: next(answers))
    drawn = Source().words(3 * (BLOCK - KEY), np.uint8).reshape(3, -1)
    before = bytes(KEY)
    for part, new in zip(drawn, fresh, strict=True):
        block = np.empty(BLOCK, np.uint8)
        keystream(bytes(a ^ b for a, b in zip(before, new, strict=True)), block)
        assert (part == block[KEY:]).all()
        before = block[:KEY].tobytes()


def test_words_of_all_widths_are_the_stream_in_order() -> None:
    whole = Source(b"w").words(4 * (2 + 4 + 8), np.uint8).tobytes()
    parts = Source(b"w")
    drawn = b"".join(parts.words(4, kind).tobytes() for kind in (np.uint16, np.uint32, np.uint64))
    assert drawn == whole


def test_integers_have_as_many_bits_as_asked_for() -> None:
    source = active()
    for bits in (1, 3, 16, 17, 64, 200):
        drawn = [source.integer(bits) for _ in range(200)]
        assert max(drawn) < 1 << bits
        assert max(drawn).bit_length() > bits - 30 and len(set(drawn)) > 1


def test_each_bit_is_fair(likely) -> None:
    words = active().words(10**6, np.uint16)
    likely(np.bincount(words >> 8, minlength=256), np.full(256, 1 / 256))
    likely(np.bincount(words & 255, minlength=256), np.full(256, 1 / 256))


def test_what_was_handed_out_is_wiped() -> None:
    source = Source()
    source.words(1000, np.uint64)
    assert not source._block[: KEY + 8000].any()
    assert source._block[KEY + 8000 :].any()
    source.words(BLOCK, np.uint8)
    assert not source._block[: source._next].any()


def test_what_a_pool_served_is_wiped() -> None:
    sampler = Sampler(Laplace(Fraction(10**6)))
    sampler.draw(50)
    pool = active().pools[sampler]
    assert not pool._values[:50].any()
    assert np.count_nonzero(pool._values[50:]) > DEPTH - 60
    pool.wipe()
    assert not pool._values.any()


def test_a_pool_serves_each_value_once() -> None:
    """Values of scale 2^50 repeat within 20,000 with a probability below 1e-6; served twice, always."""
    values = np.concatenate([noise.discrete_laplace(2**50, 1 + i % 64) for i in range(700)])
    assert np.unique(values).size == values.size


def test_a_pool_goes_with_its_sampler() -> None:
    sampler = Sampler(Laplace(Fraction(3)))
    sampler.draw(1)
    before = len(active().pools)
    del sampler
    assert len(active().pools) == before - 1


def test_a_seed_gives_the_same_draws_and_taints_them() -> None:
    def drawn() -> list[int]:
        with seeded(b"a seed"):
            assert tainted()
            single = [int(noise.discrete_laplace(50, 1)[0]) for _ in range(10)]
            return single + noise.rounded_gaussian(50, 100).tolist()

    assert drawn() == drawn()
    assert not tainted()


def test_nothing_seeded_is_served_later() -> None:
    """Neither do values of a pool filled under a seed come out of it, nor real ones come out under a seed."""
    noise.discrete_laplace(10**6, 1)
    with seeded(b"s"):
        first = noise.discrete_laplace(10**6, 64)
        rest = active().pools
    with seeded(b"s"):
        assert (noise.discrete_laplace(10**6, 64) == first).all()
        assert active().pools is not rest
    real = np.concatenate([noise.discrete_laplace(10**6, 64) for _ in range(64)])
    with seeded(b"s"):
        stream = np.concatenate([noise.discrete_laplace(10**6, 64) for _ in range(64)])
    assert (real == stream).mean() < 0.01
    assert not active().tainted


def test_seeds_nest_and_end_with_an_error() -> None:
    with pytest.raises(KeyError), seeded(b"outer"):
        with seeded(b"inner"):
            pass
        assert tainted()
        raise KeyError
    assert not tainted()


def test_another_thread_is_not_seeded() -> None:
    found: list[bool] = []
    with seeded(b"here"):
        thread = threading.Thread(target=lambda: found.append(tainted()))
        thread.start()
        thread.join()
    assert found == [False]


def test_a_seed_must_be_bytes() -> None:
    with pytest.raises(InvalidArgument, match=r"^seed must be"), seeded("text"):
        pass


def test_threads_share_no_draws() -> None:
    drawn: list[np.ndarray] = []

    def work() -> None:
        drawn.extend(noise.discrete_laplace(2**50, 1 + i % 100) for i in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = np.concatenate(drawn)
    assert np.unique(values).size == values.size


FORK = """
import contextlib, os, sys
import numpy as np
from dalenius import noise
seed = {seed!r}
def drawn():
    single = [int(noise.discrete_laplace(2**50, 1)[0]) for _ in range(100)]
    return single + noise.discrete_laplace(2**50, 1000).tolist()
with noise.seeded(seed) if seed else contextlib.nullcontext():
    noise.discrete_laplace(2**50, 1), noise.discrete_laplace(2**50, 100)
    for child in range(2):
        read, write = os.pipe()
        if os.fork() == 0:
            with os.fdopen(write, "w") as out:
                out.write(" ".join(map(str, drawn())))
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            print(answer.read())
        os.wait()
    print(*drawn())
"""


def forked(seed: bytes | None) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", FORK.format(seed=seed)], capture_output=True, text=True, check=True
    )
    return [[int(k) for k in line.split()] for line in done.stdout.splitlines()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_children_share_no_noise_with_each_other_or_the_parent() -> None:
    families = forked(None)
    values = [k for family in families for k in family]
    assert [len(family) for family in families] == [1100] * 3
    assert len(set(values)) == len(values)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_generator_that_is_not_renewed_shares_its_noise() -> None:
    """What happens without renewal, shown on the seeded twin, whose stream goes on in every child."""
    first, second, _ = forked(b"naive")
    assert first == second


def test_a_process_that_forked_unnoticed_starts_anew() -> None:
    """A fork by foreign code calls no hook; the number of the process tells."""
    source = Source()
    token = sources._CURRENT.set(source)
    try:
        noise.discrete_laplace(5, 1)
        key, pools = bytes(source._key), source.pools
        source.process = -1
        assert active() is source
        assert (bytes(source._key), source._next) == (bytes(KEY), BLOCK)
        assert not source._block.any()
        assert source.pools is not pools
        assert not any(pool._values.any() for pool in pools.values())
        assert bytes(source._key) != key
    finally:
        sources._CURRENT.reset(token)


ADVERSARIES = {"attacks", "audits"}
"""They protect nobody: their own coins choose whom to attack, and broken noise is what they show."""
PROTECTING = [p for p in sorted(PACKAGE.rglob("*.py")) if not ADVERSARIES & set(p.relative_to(PACKAGE).parts)]


@pytest.mark.parametrize("path", PROTECTING, ids=lambda path: path.name)
def test_no_other_source_is_ever_mentioned(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name == "quiet.py":
        # Other people's generators are sown there, and not drawn from.
        text = text.replace('"numpy.random"', "")
    if path.name == "python_state.py":
        # Their states are compared there.
        text = text.replace("import random", "").replace("np.random", "")
    assert re.findall(r"\b(?:numpy\.random|np\.random|import random\b|from random\b|secrets\b)", text) == []
    if path.parent.name != "noise":
        assert "os.urandom" not in text


MIDST = """
import os, signal, sys
import numpy as np
from dalenius import noise
from dalenius.noise import source
read, write = os.pipe()
children = []
def fork(*ignored):
    signal.setitimer(signal.ITIMER_REAL, 0)
    child = os.fork()
    children.append(child)
noise.discrete_laplace(2**50, 1)
signal.signal(signal.SIGALRM, fork)
signal.setitimer(signal.ITIMER_REAL, 0.02)
while not children:
    values = noise.discrete_laplace(2**50, 50_000)
answer = b" ".join(str(k).encode() for k in values.tolist())
if children[0] == 0:
    os.write(write, answer[:60_000])
    os._exit(0)
os.wait()
print(os.read(read, 60_000).decode().rpartition(" ")[0])
print(answer[:60_000].decode().rpartition(" ")[0])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_draw_that_a_fork_interrupts_is_made_anew_in_the_child() -> None:
    done = subprocess.run([sys.executable, "-c", MIDST], capture_output=True, text=True, check=True)
    child, parent = (line.split() for line in done.stdout.splitlines())
    assert min(len(child), len(parent)) > 1000
    assert set(child) & set(parent) == set()
    assert child.count("0") < 5
