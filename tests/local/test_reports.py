"""The bytes of reports: what goes in comes out, and whatever else comes is refused."""

from __future__ import annotations

import copy
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import SMALL, named

from dalenius.errors import InvalidArgument
from dalenius.local import FrequencyOracle, KaryResponse, Reports, UnaryEncoding
from dalenius.local import reports as module
from dalenius.local.reports import HEAD, Format

WHOSE = bytes(range(16))


@st.composite
def formats(draw: st.DrawFn) -> Format:
    return Format(WHOSE, draw(st.integers(1, 2**63)), draw(st.integers(1, 9)))


@given(form=formats(), data=st.data())
def test_reports_come_back(form: Format, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 20))
    size = count * form.fields
    numbers = data.draw(st.lists(st.integers(0, form.below - 1), min_size=size, max_size=size))
    sent = Reports(form, np.array(numbers, np.uint64).reshape(count, form.fields))
    read = Reports.from_bytes(sent.to_bytes(), form)
    assert read == sent and len(read) == count
    assert read.rows.ravel().tolist() == numbers
    assert len(sent.to_bytes()) == HEAD.size + -(-count * form.bits // 8)


@given(numbers=st.lists(st.integers(0, 6), max_size=200))
def test_long_reports_are_packed_in_parts(numbers: list[int]) -> None:
    form, whole = Format(WHOSE, 7), module.CHUNK
    sent = Reports(form, np.array(numbers, np.uint8))
    at_once = sent.to_bytes()
    try:
        module.CHUNK = 100
        assert sent.to_bytes() == at_once
        assert Reports.from_bytes(at_once, form) == sent
    finally:
        module.CHUNK = whole


def test_the_wire_format_is_what_is_documented() -> None:
    """Three reports of three bits, 5, 0 and 3: 101 000 011, then zeros."""
    data = Reports(Format(WHOSE, 6), np.array([5, 0, 3])).to_bytes()
    assert data == b"DLNR\x01" + WHOSE + struct.pack("<Q", 3) + bytes([0b10100001, 0b10000000])


@given(data=st.binary(max_size=80), form=formats())
def test_garbage_is_refused(data: bytes, form: Format) -> None:
    with pytest.raises(InvalidArgument):
        Reports.from_bytes(data, form)


@given(payload=st.binary(max_size=40), count=st.integers(0, 2**64 - 1), form=formats())
def test_garbage_behind_a_true_head_is_read_or_refused(payload: bytes, count: int, form: Format) -> None:
    """What a head claims is held against the bytes before any memory is taken."""
    data = HEAD.pack(b"DLNR", 1, WHOSE, count) + payload
    try:
        read = Reports.from_bytes(data, form)
    except InvalidArgument:
        return
    assert read.to_bytes() == data and len(read) == count


@pytest.mark.parametrize("oracle", SMALL, ids=named)
def test_any_change_is_refused_or_other_reports(oracle: FrequencyOracle) -> None:
    data = oracle.encode([0, 1, 1]).to_bytes()
    estimator = oracle.estimator()
    for place in range(HEAD.size):
        changed = bytearray(data)
        changed[place] ^= 1
        # A count that is one less is a count, where the last report is all zeros.
        try:
            fewer = oracle.estimator().add(bytes(changed))
        except InvalidArgument:
            continue
        assert place == HEAD.size - 8 and fewer.count == 2
    for cut in (data[:-1], data + b"\0", b"", data[: HEAD.size]):
        with pytest.raises(InvalidArgument):
            estimator.add(cut)
    assert estimator.count == 0 and not estimator.tally.any()


def test_reports_of_other_parameters_are_refused() -> None:
    one, other = KaryResponse(domain=5, ratio=2), KaryResponse(domain=5, ratio=3)
    with pytest.raises(InvalidArgument, match="other parameters"):
        other.estimator().add(one.encode([1]).to_bytes())
    with pytest.raises(InvalidArgument, match="other parameters"):
        other.estimator().add(one.encode([1]))
    with pytest.raises(InvalidArgument, match="other parameters"):
        _ = one.encode([1]) + other.encode([1])
    with pytest.raises(InvalidArgument, match="bytes"):
        one.estimator().add([1, 2])


def test_numbers_out_of_range_are_refused() -> None:
    oracle = KaryResponse(domain=5, ratio=2)
    sent = oracle.encode([4] * 8).to_bytes()
    with pytest.raises(InvalidArgument):
        oracle.estimator().add(sent[: HEAD.size] + b"\xff" * 3)
    for bad in (np.array([5]), np.array([-1]), np.array([0.5]), np.zeros((1, 2), int), np.array(["a"])):
        with pytest.raises(InvalidArgument):
            Reports(oracle.format, bad)


def test_reports_are_joined_and_taken() -> None:
    oracle = UnaryEncoding.optimized(domain=9, epsilon=1)
    first, second = oracle.encode([1, 2, 3]), oracle.encode([4])
    both = first + second
    assert len(both) == 4 and both.take(np.array([3])) == second
    assert repr(both) == "<4 reports of 9 bits>"
    with pytest.raises(ValueError, match="read-only"):
        both.rows[0, 0] = 1


def test_reports_are_not_the_buffer_they_came_in() -> None:
    """What a caller writes later changes nothing that was checked."""
    form = Format(WHOSE, 6)
    ones, wide = np.ones((4, 1), np.uint8), np.ones((4, 2), np.uint8)
    seen = ones.view()
    seen.flags.writeable = False
    locked = np.ones((4, 1), np.uint8)
    locked.flags.writeable = False
    given = (ones, ones[:, 0], seen, wide[:, :1], np.broadcast_to(ones, (4, 1)), locked)
    sent = [Reports(form, rows) for rows in given]
    locked.flags.writeable = True
    ones[:], wide[:], locked[:] = 7, 7, 7
    for reports in (*sent, *map(copy.deepcopy, sent), *map(copy.copy, sent)):
        assert reports.rows.max() == 1 and not reports.rows.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            reports.rows.flags.writeable = True
    again = pickle.loads(pickle.dumps(Reports(form, np.ones(3, np.uint8), tainted=True)))
    assert again.tainted and again.rows.tolist() == [[1]] * 3
    # Rows that nobody else has are not copied.
    own = np.ones((4, 1), np.uint8)
    assert np.shares_memory(Reports.owned(form, own).rows, own) and not own.flags.writeable
