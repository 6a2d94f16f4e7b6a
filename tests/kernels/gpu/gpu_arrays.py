"""Odd arrays on a GPU: the same memory as on the host, gaps and strides included."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from odd_arrays import Array, Call, Odd, as_array

import tessera as ts
from tessera import DType, knobs
from tessera.runtime.device.memory import byte_span


def on_gpu(array: Array, dtype: DType) -> tuple[ts.Tensor, ts.Tensor]:
    """A tensor of a GPU with this array's values and strides, and the whole memory that it is a view of."""
    if any(stride % array.itemsize for stride in array.strides) or array.ctypes.data % array.itemsize:
        array = array.copy()
    if not array.size:
        made = ts.zeros(array.shape, dtype, device="cuda")
        return made, made
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high = byte_span(root)
    size = array.itemsize
    first = (array.ctypes.data - low) % size
    flat = np.ndarray(((high - low - first) // size,), array.dtype, _bytes(low + first, high - low - first))
    memory = ts.asarray(flat, dtype).cuda()
    strides = tuple(stride // size for stride in array.strides)
    offset = (array.ctypes.data - low - first) // size
    return memory.as_strided(array.shape, strides, offset), memory


def _bytes(address: int, size: int) -> Any:
    return (ctypes.c_char * size).from_address(address)


@dataclass
class GpuOdd(Odd):
    """Makes what `Odd` makes, on a GPU."""

    memories: list[tuple[ts.Tensor, ts.Tensor]] = field(default_factory=list[tuple[ts.Tensor, ts.Tensor]], init=False)

    def __call__(self, *shape: int, **how: Any) -> Any:
        return on_gpu(super().__call__(*shape, **how), self.dtype)[0]

    def whole(self, low: int, high: int, *shape: int, dtype: DType) -> Any:
        return on_gpu(super().whole(low, high, *shape, dtype=dtype), dtype)[0]

    def bias(self, *shape: int) -> Any:
        return on_gpu(super().bias(*shape), self.dtype)[0]

    def target(self, *shape: int, dtype: DType | None = None) -> Any:
        made, memory = on_gpu(super().target(*shape, dtype=dtype), dtype or self.dtype)
        self.memories.append((made, memory))
        return made

    def expect_untouched_gaps(self) -> None:
        for (view, memory), (host, _) in zip(self.memories, self.targets, strict=True):
            whole = memory.cpu().numpy()
            if not host.size or host.size == whole.size:
                continue
            seen = np.zeros(whole.shape, np.bool_)
            offset = (view.pointer - memory.pointer) // view.itemsize
            strided = np.lib.stride_tricks.as_strided(
                seen[offset:], view.shape, tuple(stride for stride in view.strides)
            )
            strided[...] = True
            assert (whole[~seen].astype(np.float64) == 77).all(), "a kernel wrote between the elements of an array"


def on_device(call: Call, given: Odd, *, repeats: int = 2) -> Array:
    """What a call gives on the GPU; every time the same."""
    found: list[Array] = []
    for _ in range(repeats):
        fields = {name: getattr(given, name) for name in ("dtype", "ordinary", "special", "which", "layouts", "seed")}
        arrays = GpuOdd(**fields, terms=given.terms)
        with knobs.interpret.using(False):
            result = call(arrays)
        found.append(as_array(result.cpu() if isinstance(result, ts.Tensor) else result))
        arrays.expect_untouched_gaps()
    for other in found[1:]:
        assert found[0].tobytes() == other.tobytes(), "two launches give different results"
    return found[0]
