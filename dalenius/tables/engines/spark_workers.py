"""What Spark's Python workers do on the executors: rows by unit, bounded and added up as elsewhere.

Rows come as batches of Arrow: units u0…, of 64 bits or as texts; `at`, which says the place of a row's key
and the part that its unit is in, as place · 2^16 + part; and values v0…. Spark takes long to move rows one
by one, and next to nothing to move few large ones: so `cut` makes bunches of them, one for each part, which
are moved to where their part is put together, and kept. `add_up` makes of all bunches of a part what the
kernel knows as a part, and hands out integers by slot, in limbs that are added up: Σ limb_i · 2^(40 i).

No row may be lost or doubled on the way: a wrong sum would be released as a right one. So whoever cuts rows
sends a tally after them, of how many rows each part was sent, and `add_up` fails unless it has the tally of
every partition that was cut and as many rows as each says. Without a fault of Spark or of a disk they agree
whatever the data are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.tables.engines.engine import Bounding, Integers, Measure
from dalenius.tables.engines.kernel import Part
from dalenius.tables.engines.kernel_cells import Hasher, Words, word_type
from dalenius.tables.engines.kernel_rows import Asked, Block
from dalenius.tables.engines.kernel_totals import Totals
from dalenius.tables.engines.kernel_weights import Norm

if TYPE_CHECKING:
    import pyarrow as pa

PART = 16
"""Bits of the number of a part."""
BUNCH = 1 << 17
"""Bytes of a bunch: so many of them are in one batch that it must not be large."""
ROWS = 1 << 20
"""Rows that are cut into bunches at a time."""
BYTES = 1 << 26
"""And what they may take."""
STRETCH = 1 << 12
"""Slots that are added up together."""
LIMB, LIMBS = 40, 4
"""Bits of a limb, and how many there are: sums are below 2^120."""
SPARSE = 1 << 20
"""Codes of units may be so many more than four for each row."""
Bunch = tuple[int, bool, bytes]
"""The partition that was cut, whether numbers of units have 32 bits, and rows as a batch of Arrow."""
Tally = tuple[int, int]
"""The partition that was cut, and how many of its rows are in a part."""
Work = Callable[[Part, Asked], Integers]


@dataclass(frozen=True)
class Layout:
    """How rows travel."""

    texts: tuple[bool, ...]
    """Of each column that is the unit: whether it is a text."""
    values: int
    keys: int
    """That are asked for."""
    parts: int
    code: str
    """Of who sends the work; see `code`."""

    def check(self) -> None:
        """Refuse to do the work of another Dalenius."""
        if self.code != code():
            raise RuntimeError("Workers differ.")

    @property
    def sent(self) -> pa.Schema:
        """Of what Spark sends."""
        import pyarrow as pa

        units = [(f"u{i}", pa.string() if text else pa.int64()) for i, text in enumerate(self.texts)]
        return pa.schema([*units, ("at", pa.int64()), *((f"v{i}", pa.float64()) for i in range(self.values))])

    def schema(self, narrow: bool) -> pa.Schema:
        """Of a bunch; it is moved four times, so that numbers of units have 32 bits where these hold them."""
        import pyarrow as pa

        whole = pa.int32() if narrow else pa.int64()
        units = [(f"u{i}", pa.string() if text else whole) for i, text in enumerate(self.texts)]
        values = [(f"v{i}", pa.float64()) for i in range(self.values)]
        place = pa.uint16() if self.keys <= 1 << 16 else pa.int32()
        return pa.schema([*units, ("place", place), *values])

    def narrow(self, rows: pa.RecordBatch) -> bool:
        """Whether 32 bits hold the numbers of all units."""
        units = [rows.column(f"u{i}").to_numpy() for i, text in enumerate(self.texts) if not text]
        return all(one.min(initial=0) >= -(1 << 31) and one.max(initial=0) < 1 << 31 for one in units)


def cut(
    partition: int, batches: Iterable[bytes], *, layout: Layout
) -> Iterator[tuple[int, Bunch] | tuple[int, Tally]]:
    """Yield the rows of a partition in bunches, and a tally of them, each with the number of its part."""
    import pyarrow as pa

    layout.check()
    sent = np.zeros(layout.parts, np.int64)
    for rows in _joined(pa.ipc.read_record_batch(pa.py_buffer(one), layout.sent) for one in batches):
        at, narrow = rows.column("at").to_numpy(), layout.narrow(rows)
        part, schema = at.astype(np.uint16), layout.schema(narrow)
        places = pa.array(at >> PART)
        columns = [places if name == "place" else rows.column(name) for name in schema.names]
        columns = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
        # A stable sort of short numbers counts them, and is quick.
        order = pa.array(np.argsort(part, kind="stable"))
        ordered = pa.RecordBatch.from_arrays(columns, schema=schema).take(order)
        counts = np.bincount(part, minlength=layout.parts)
        sent += counts
        ends = np.cumsum(counts).tolist()
        step = max(1, BUNCH * rows.num_rows // max(ordered.nbytes, 1))
        for one, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            for place in range(start, end, step):
                bunch = ordered.slice(place, min(step, end - place))
                yield one, (partition, narrow, bunch.serialize().to_pybytes())
    for one, count in enumerate(sent.tolist()):
        yield one, (partition, count)


def add_up(
    bunches: Iterable[tuple[int, Bunch] | tuple[int, Tally]], *, layout: Layout, work: Work, partitions: int
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the integers of one part, by the number of a stretch of slots, without stretches that are all 0.

    Args:
        bunches: All that was sent to the part, in any order.
        layout: How rows travel.
        work: What is made of the rows.
        partitions: How many partitions were cut, from 0 on.

    Raises:
        RuntimeError: If rows are missing or there are more than were sent.
    """
    layout.check()
    rows = list(_complete(bunches, layout, partitions))
    if not rows:
        return
    asked = Asked(np.arange(max(layout.keys, 1)), layout.keys)
    found = work(_part(rows, layout), asked).ravel()
    for start in range(0, len(found), STRETCH):
        stretch = found[start : start + STRETCH]
        if stretch.any():
            yield start // STRETCH, np.array(limbs_of(stretch))


@dataclass(frozen=True)
class Shapes:
    """The work of `Loaded.shapes`."""

    norm: Norm
    presence: bool

    def __call__(self, part: Part, asked: Asked) -> Integers:
        """Bins."""
        return part.shapes(asked, self.norm, self.presence)


@dataclass(frozen=True)
class Magnitudes:
    """The work of `Loaded.magnitudes`."""

    column: int

    def __call__(self, part: Part, asked: Asked) -> Integers:
        """Bins."""
        return part.magnitudes(self.column)


@dataclass(frozen=True)
class Sums:
    """The work of `Loaded.totals`, where neither groups are sampled nor distinct values counted."""

    measures: tuple[Measure, ...]
    bounding: Bounding

    def __call__(self, part: Part, asked: Asked) -> Integers:
        """Sums by group."""
        totals = Totals(self.measures, asked)
        totals.add(part, self.bounding, _no_digests)
        return totals.columns({})


def limbs_of(numbers: Integers) -> list[NDArray[np.int64]]:
    """Numbers in limbs, the last with the sign."""
    limbs = []
    for _ in range(LIMBS - 1):
        limbs.append((numbers & ((1 << LIMB) - 1)).astype(np.int64))
        numbers = numbers >> LIMB
    return [*limbs, numbers.astype(np.int64)]


def numbers_of(limbs: NDArray[np.int64]) -> Integers:
    """Numbers of which these are the limbs."""
    powers = np.array([1 << LIMB * i for i in range(LIMBS)], object)
    found: Integers = (limbs.astype(object) * powers[:, None]).sum(axis=0)
    return found


def tell(batches: Iterable[bytes]) -> Iterator[str]:
    """What this worker would run."""
    for _ in batches:
        yield code()


@cache
def code() -> str:
    """A digest of the code that bounds and adds up, by which two installations are seen to be the same."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def _complete(
    bunches: Iterable[tuple[int, Bunch] | tuple[int, Tally]], layout: Layout, partitions: int
) -> Iterator[pa.RecordBatch]:
    """Yield all rows of a part; fail in the end unless they are exactly those that were sent."""
    import pyarrow as pa

    found, tallies = np.zeros(partitions, np.int64), np.full(partitions, -1, np.int64)
    for _, item in bunches:
        if len(item) == 2:
            if tallies[item[0]] != -1:
                raise RuntimeError("Rows were doubled.")
            tallies[item[0]] = item[1]
            continue
        partition, narrow, bunch = item
        rows = pa.ipc.read_record_batch(pa.py_buffer(bunch), layout.schema(narrow))
        found[partition] += rows.num_rows
        yield rows
    if not np.array_equal(found, tallies):
        raise RuntimeError("Rows were lost or doubled.")


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches put together until they are large."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS or sum(one.nbytes for one in held) >= BYTES:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _part(rows: Sequence[pa.RecordBatch], layout: Layout) -> Part:
    codes, units = _codes(rows, layout)
    bits = max(layout.keys - 1, 0).bit_length()
    kind, blocks, start = word_type(units << bits), [], 0
    for batch in rows:
        own: Words = codes[start : start + batch.num_rows].astype(kind)
        start += batch.num_rows
        words: Words = (own << kind(bits)) | batch.column("place").to_numpy().astype(kind)
        values = [batch.column(f"v{i}").to_numpy(zero_copy_only=False) for i in range(layout.values)]
        blocks.append(Block(words, tuple(values)))
    return Part(blocks, bits=bits, units=units)


def _codes(rows: Sequence[pa.RecordBatch], layout: Layout) -> tuple[NDArray[np.int64], int]:
    """Numbers for the units of all rows, equal exactly where the units are, and what they are below."""
    codes, size = np.zeros(sum(batch.num_rows for batch in rows), np.int64), 1
    for i, text in enumerate(layout.texts):
        column = [batch.column(f"u{i}") for batch in rows]
        own, many = _of_texts(column) if text else _of_numbers(column)
        if size > 1:
            (codes, _), (own, many) = _dense(codes), _dense(own)
            own, many = _dense(codes * many + own)
        codes, size = own, many
    return codes, size


def _of_texts(column: Sequence[pa.Array]) -> tuple[NDArray[np.int64], int]:
    import pyarrow as pa

    coded = pa.chunked_array(column, pa.string()).dictionary_encode()
    known = len(coded.chunk(0).dictionary) if coded.num_chunks else 0
    numbers = [chunk.indices.to_numpy() for chunk in coded.chunks]
    return np.concatenate([np.empty(0, np.int64), *numbers]), max(known, 1)


def _of_numbers(column: Sequence[pa.Array]) -> tuple[NDArray[np.int64], int]:
    numbers = np.concatenate([np.empty(0, np.int64), *(one.to_numpy() for one in column)])
    least, most = int(numbers.min(initial=2**63 - 1)), int(numbers.max(initial=-(2**63)))
    if most - least < 4 * len(numbers) + SPARSE:
        return numbers - least, max(most - least + 1, 1)
    return _dense(numbers)


def _dense(numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    known, codes = np.unique(numbers, return_inverse=True)
    return codes, max(len(known), 1)


def _no_digests(units: NDArray[np.intp]) -> Hasher:
    raise NotImplementedError
