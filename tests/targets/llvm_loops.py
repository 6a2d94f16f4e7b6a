"""Loops over arrays around a computation on registers, compiled to machine code, for the tests of the LLVM targets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tessera.dtypes.types import DType
from tessera.targets.llvm.elements import memory_type, to_memory, to_register
from tessera.targets.llvm.image import Image, flatten, load
from tessera.targets.llvm.machine import compile_text
from tessera.targets.llvm.text import Function, Module, Value

Array = np.ndarray[Any, np.dtype[Any]]
Body = Callable[[Function, list[Value]], Value]

PROCESSORS = {"base": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4", "amx": "sapphirerapids"}
WIDTH = 32
"""Arrays have a multiple of this many elements, which suits every number of lanes."""


class Loops:
    """Many loops in one module; each applies its computation to all elements."""

    def __init__(self, level: str) -> None:
        self.level = level
        self._module = Module()
        self._results: dict[str, DType] = {}
        self._image: Image | None = None

    def __len__(self) -> int:
        return len(self._results)

    def add(self, name: str, sources: Sequence[DType], target: DType, lanes: int, body: Body) -> None:
        arguments = [("ptr", "out"), *(("ptr", f"in{at}") for at in range(len(sources))), ("i64", "count")]
        f = self._module.function(name, arguments, internal=False)
        out, *inputs, count = f.arguments

        def turn(index: Value, _: list[Value]) -> list[Value]:
            operands: list[Value] = []
            for pointer, source in zip(inputs, sources, strict=True):
                place = f.at(pointer, f.times(index, source.storage.itemsize))
                loaded = f.load(memory_type(source, lanes), place, align=1)
                operands.append(to_register(f, loaded, source))
            found = to_memory(f, body(f, operands), target)
            assert found.type == memory_type(target, lanes), f"{name} gives {found.type}"
            f.store(found, f.at(out, f.times(index, target.storage.itemsize)), align=1)
            return []

        f.loop(0, count, max(lanes, 1), [], turn)
        f.give()
        self._results[name] = target

    def compile(self) -> Image:
        if self._image is None:
            made = compile_text(self._module.text(), cpu=PROCESSORS[self.level], features="")
            self._image = load(flatten(made))
        return self._image

    def run(self, name: str, *arrays: Array) -> Array:
        arrays = tuple(np.ascontiguousarray(array) for array in arrays)
        size = arrays[0].size
        assert size % WIDTH == 0
        assert all(array.shape == (size,) for array in arrays)
        result = np.empty(size, self._results[name].storage)
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(arrays)), ctypes.c_int64)
        call(self.compile().address(name))(result.ctypes.data, *(array.ctypes.data for array in arrays), size)
        return result


def words(array: Array) -> Array:
    """The bits of an array's elements."""
    return array.view(f"u{array.dtype.itemsize}")


def padded(array: Array) -> Array:
    """An array with its last element repeated, up to a size that suits every number of lanes."""
    return np.pad(array.reshape(-1), (0, -array.size % WIDTH), mode="edge")
