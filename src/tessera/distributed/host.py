"""Collectives over arrays of the host: bytes go through MPI, and sums are ours, in the order of ranks.

So every rank gets the same bits, for any number of elements and any transport of messages. Types that MPI does
not know need no care: narrow floats are added in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tessera.distributed.group import ProcessGroup
from tessera.dtypes import casting
from tessera.dtypes.types import DType, Kind, f32, f64, i32, saturate
from tessera.runtime.device.memory import Array

OPS: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def reduced(group: ProcessGroup, own: Array, dtype: DType, op: str) -> Array:
    """The elements of all ranks' arrays, taken together one by one; on all ranks."""
    flat, each = own.reshape(-1), -(-own.size // group.size)
    padded = np.zeros((group.size, each), own.dtype)
    padded.reshape(-1)[: own.size] = flat
    part = _folded(group.exchange_bytes(_bytes(padded), "all_reduce"), dtype, op)
    whole = group.gather_bytes(_bytes(part).reshape(-1), "all_reduce")
    return whole.reshape(-1).view(own.dtype)[: own.size].reshape(own.shape)


def scattered(group: ProcessGroup, own: Array, dtype: DType, op: str) -> Array:
    """This rank's part, along the first axis, of what `reduced` would give."""
    parts = np.ascontiguousarray(own).reshape(group.size, -1)
    part = _folded(group.exchange_bytes(_bytes(parts), "reduce_scatter"), dtype, op)
    return part.reshape(own.shape[0] // group.size, *own.shape[1:])


def gathered(group: ProcessGroup, own: Array, dtype: DType) -> Array:
    """All ranks' arrays, one behind the other along the first axis."""
    rows = group.gather_bytes(_bytes(np.ascontiguousarray(own)).reshape(-1), "all_gather")
    return rows.reshape(-1).view(own.dtype).reshape(group.size * own.shape[0], *own.shape[1:])


def exchanged(group: ProcessGroup, own: Array, dtype: DType) -> Array:
    """Part i along the first axis goes to rank i, and part i of the result came from there."""
    parts = np.ascontiguousarray(own).reshape(group.size, -1)
    return group.exchange_bytes(_bytes(parts), "all_to_all").reshape(-1).view(own.dtype).reshape(own.shape)


def spread(group: ProcessGroup, own: Array, dtype: DType, root: int) -> Array:
    """The root's array."""
    copy = np.ascontiguousarray(own).copy()
    group.broadcast_bytes(_bytes(copy).reshape(-1), root, "broadcast")
    return copy


def _bytes(array: Array) -> Any:
    """The same memory as rows of bytes; an array of one axis is one row."""
    rows = array.reshape(array.shape[0], -1) if array.ndim > 1 else array.reshape(1, -1)
    return rows.view(np.uint8) if rows.size else np.empty((rows.shape[0], 0), np.uint8)


def _folded(received: Any, dtype: DType, op: str) -> Array:
    """Rank 0's row, then rank 1's and so on, in a type that holds them all; rounded once."""
    rows = [row.view(dtype.storage) for row in received]
    wide = f64 if dtype.base is f64 else f32 if dtype.is_float else i32 if dtype.bits < 8 else None
    if dtype.kind is Kind.BOOL or wide is None:
        total = rows[0].copy()
        for row in rows[1:]:
            with np.errstate(over="ignore"):
                OPS[op](total, row, out=total)
        return total
    # Stored values are added as they are: under a loss scale the sum has the same one.
    total = casting.cast(rows[0], dtype.base, wide)
    with np.errstate(all="ignore"):
        for row in rows[1:]:
            OPS[op](total, casting.cast(row, dtype.base, wide), out=total)
        if op == "mean":
            total /= len(rows)
    return casting.cast(total, wide, dtype.base @ saturate if dtype.policy.saturate else dtype.base)
