"""Frames for target dialects: they have memory of their own, and uninitialized memory holds arbitrary numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, f64
from tessera.interpreters.core.engine import Frame
from tessera.interpreters.levels.tile import Array


@dataclass
class MachineFrame(Frame):
    """A frame with memory: uninitialized, it holds NaN, or with a `chance` numbers drawn from it."""

    chance: np.random.Generator | None = None

    def fresh(self, shape: Sequence[int], dtype: DType) -> Array:
        """Memory with nothing in it."""
        if dtype.is_float:
            numbers = np.full(shape, np.nan) if self.chance is None else 1e4 * self.chance.standard_normal(shape)
            return cast(numbers, f64, dtype)
        low, high = int(dtype.min_value), int(dtype.max_value)
        if self.chance is None:
            return np.full(shape, high - high // 3, dtype.storage)
        wide = np.uint64 if low == 0 else np.int64
        return self.chance.integers(low, high, shape, wide, endpoint=True).astype(dtype.storage)
