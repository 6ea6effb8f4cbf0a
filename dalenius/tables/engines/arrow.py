"""Batches of a query's result as numpy arrays, by Arrow's C stream interface: no copy, no other library.

    for word, value in batches(cursor, "SELECT …", (np.uint32, np.float64)):
        ...                                                # valid until the next batch is asked for

The layout of the structures is https://arrow.apache.org/docs/format/CStreamInterface.html. A result is worked
on as it comes, so that it is never held twice. Columns have no NULL in them: the query sees to that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import QueryFailed

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Columns = tuple[NDArray[Any], ...]


class _Array(ctypes.Structure):
    """struct ArrowArray."""


class _Stream(ctypes.Structure):
    """struct ArrowArrayStream."""


_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_Next = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))

_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.c_void_p),
    ("get_next", _Next),
    ("get_last_error", ctypes.c_void_p),
    ("release", _ReleaseStream),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def batches(cursor: DuckDBPyConnection, sql: str, types: Sequence[type[np.generic]]) -> Iterator[Columns]:
    """The columns of each batch of rows; whatever goes wrong in the engine is a `QueryFailed`."""
    # The capsule owns the stream, and releases it when nobody holds it any more.
    capsule = cursor.sql(sql).__arrow_c_stream__()
    stream = ctypes.cast(_pointer(capsule, b"arrow_array_stream"), ctypes.POINTER(_Stream))
    while True:
        batch = _Array()
        if stream.contents.get_next(stream, ctypes.byref(batch)):
            raise QueryFailed
        if not batch.release:
            return
        try:
            yield tuple(_column(batch, place, kind) for place, kind in enumerate(types))
        finally:
            batch.release(ctypes.byref(batch))


def _column(batch: _Array, place: int, kind: type[np.generic]) -> NDArray[Any]:
    column = batch.children[place].contents
    size, width = int(column.length), np.dtype(kind).itemsize
    if not size:
        return np.empty(0, kind)
    start = column.buffers[1] + (column.offset + batch.offset) * width
    return np.frombuffer(memoryview((ctypes.c_char * (size * width)).from_address(start)), np.dtype(kind))
