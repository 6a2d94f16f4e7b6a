"""Bytes that hold two elements of 4 bits, and their halves as arrays of those elements."""

from __future__ import annotations

import numpy as np

from tessera.dtypes.types import DType
from tessera.interpreters.core.views import Array


def halves_of(packed: Array, axis: int, dtype: DType) -> Array:
    """The elements that bytes hold, twice as many along an axis: of each byte the low half, then the high one."""
    codes = np.ascontiguousarray(packed).view(np.uint8)
    apart = np.stack([codes & 15, codes >> 4], axis + 1)
    shape = (*codes.shape[:axis], 2 * codes.shape[axis], *codes.shape[axis + 1 :])
    return apart.reshape(shape).view(dtype.storage)


def bytes_of(halves: Array, axis: int, dtype: DType) -> Array:
    """Neighbours along an axis in one byte, the first in its low half."""
    codes = np.ascontiguousarray(halves).view(np.uint8)
    low, high = (codes[(*[slice(None)] * axis, slice(first, None, 2))] for first in (0, 1))
    return (low & 15 | high << 4).view(dtype.storage)
