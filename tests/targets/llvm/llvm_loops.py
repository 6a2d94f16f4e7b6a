"""Loops over arrays around a computation on registers, compiled to machine code, and elements to run them on."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tessera.dtypes.casting import cast
from tessera.dtypes.types import DType, Kind, bf16, f16, f32, f64, i64, tf32, u64
from tessera.targets.cpu import features
from tessera.targets.llvm.elements import LEVELS, memory_type, to_memory, to_register
from tessera.targets.llvm.image import Image, flatten, load
from tessera.targets.llvm.machine import compile_text
from tessera.targets.llvm.text import Function, Module, Value

Array = np.ndarray[Any, np.dtype[Any]]
Body = Callable[[Function, list[Value]], Value]

HERE = [level for level in LEVELS if features.has(level)]
"""The levels that this host can run."""
LANES = (0, 4, 8, 16, 32)
WIDTH = max(LANES)
"""Arrays have a multiple of this many elements, which suits every number of lanes."""


class Loops:
    """Many loops in one module; each applies its computation to all elements of its arrays."""

    def __init__(self, level: str) -> None:
        self.level = level
        self.module = Module()
        self._results: dict[str, DType] = {}
        self._image: Image | None = None

    def __len__(self) -> int:
        return len(self._results)

    def add(self, name: str, sources: Sequence[DType], target: DType, lanes: int, body: Body) -> None:
        arguments = [("ptr", "out"), *(("ptr", f"in{at}") for at in range(len(sources))), ("i64", "count")]
        f = self.module.function(name, arguments, internal=False)
        out, *inputs, count = f.arguments

        def iteration(index: Value, _: list[Value]) -> list[Value]:
            operands: list[Value] = []
            for pointer, source in zip(inputs, sources, strict=True):
                address = f.at(pointer, f.times(index, source.storage.itemsize))
                loaded = f.load(memory_type(source, lanes), address, align=1)
                operands.append(to_register(f, loaded, source))
            found = to_memory(f, body(f, operands), target)
            assert found.type == memory_type(target, lanes), f"{name} gives {found.type}"
            f.store(found, f.at(out, f.times(index, target.storage.itemsize)), align=1)
            return []

        f.loop(0, count, max(lanes, 1), [], iteration)
        f.give()
        self._results[name] = target

    def _compiled(self) -> Image:
        if self._image is None:
            cpu, flags = features.target(self.level)
            self._image = load(flatten(compile_text(self.module.text(), cpu=cpu, features=flags)))
        return self._image

    def run(self, name: str, *arrays: Array) -> Array:
        arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        size = arrays[0].size
        assert size % WIDTH == 0
        assert all(array.shape == (size,) for array in arrays)
        result = np.empty(size, self._results[name].storage)
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(arrays)), ctypes.c_int64)
        call(self._compiled().address(name))(result.ctypes.data, *(array.ctypes.data for array in arrays), size)
        return result


def words(array: Array) -> Array:
    """The bits of an array's elements."""
    return array.view(f"u{array.dtype.itemsize}")


def padded(array: Array) -> Array:
    """An array with its last element repeated, up to a size that suits every number of lanes."""
    return np.pad(array.reshape(-1), (0, -array.size % WIDTH), mode="edge")


def difference(got: Array, wanted: Array, *operands: Array) -> str:
    """The first index at which two arrays of bits differ, in words; nothing where they agree."""
    indices = np.flatnonzero(words(got) != words(wanted))
    if not indices.size:
        return ""
    at = indices[0]
    given = ", ".join(f"{operand[at]} ({words(operand)[at]:#x})" for operand in operands)
    found, expected = (f"{array[at]} ({words(array)[at]:#x})" for array in (got, wanted))
    return f"{indices.size} of {got.size} differ, first {given}: expected {expected}, got {found}"


# Elements


@cache
def elements(dtype: DType) -> Array:
    """Every element of a type of up to 16 bits; of wider ones special values, neighbours of ties and random bits."""
    base, size = dtype.base, dtype.storage.itemsize
    if base.kind is Kind.BOOL:
        found = np.array([False, True])
    elif size <= 2:
        found = np.arange(1 << (base.bits if size == 1 else 16), dtype=f"u{size}").view(base.storage)
    else:
        random = np.random.default_rng(size).integers(0, 1 << (8 * size), 1 << 14, dtype=f"u{size}")
        found = np.concatenate([special(base), _wide(base), random.view(base.storage)])
        if base is tf32:
            found = (words(found) & np.uint32(0xFFFFE000)).view(np.float32)
    return padded(found)


@cache
def special(dtype: DType) -> Array:
    """A few elements that are worth meeting in every combination."""
    base = dtype.base
    if base.kind is Kind.BOOL:
        return np.array([False, True])
    if base.is_float:
        ordinary = [0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 7.0, 0.1, 100.0, 2.0**24]
        extreme = [1e-45, 1e-38, 1.2e-38, 6e-8, 65504.0, 1e30, 3e38, np.inf]
        found = np.array([*ordinary, *extreme, *(-x for x in [*ordinary, *extreme]), np.nan])
        return cast(found, f64, base)
    wanted = (0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 63, 64, -1, -2, -3, -7)
    edges = {int(base.min_value), int(base.min_value) + 1, int(base.max_value), int(base.max_value) - 1}
    held = [x for x in sorted({*wanted, *edges}) if base.min_value <= x <= base.max_value]
    wide = u64 if base.kind is Kind.UINT else i64
    return cast(np.array(held, wide.storage), wide, base)


@np.errstate(all="ignore")
def _wide(base: DType) -> Array:
    random = np.random.default_rng(0)
    if base.is_float:
        # Few digits at every magnitude: ties of all the narrower formats, and what is just beside them.
        coarse = np.ldexp(random.integers(-4096, 4096, 6000), random.integers(-165, 135, 6000))
        halves = np.arange(-600, 600) / 2
        ties = np.concatenate([coarse, halves]).astype(base.storage)
        for narrow in (bf16, f16):
            ties = np.concatenate([ties, cast(ties, f32 if base is tf32 else base, narrow).astype(base.storage)])
        beside = [np.nextafter(ties, base.storage.type(towards)) for towards in (-np.inf, np.inf)]
        return np.concatenate([ties, *beside])
    powers = np.uint64(1) << np.arange(64, dtype=np.uint64)
    sizes = random.integers(0, 1 << 63, 4000, dtype=np.uint64) >> random.integers(0, 63, 4000, dtype=np.uint64)
    close = [powers, powers - np.uint64(1), powers + np.uint64(1), powers + powers // np.uint64(2), sizes, ~sizes]
    return np.concatenate([part.astype(f"u{base.storage.itemsize}") for part in close]).view(base.storage)
