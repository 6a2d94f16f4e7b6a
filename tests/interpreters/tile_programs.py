"""Tile programs for the interpreter tests, as text: kernels, their constants, and which test is about which op."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_values import Array, assert_same
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tessera.dtypes.types import DType
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir import text
from tessera.ir.common.elements import element_of

COVERED: set[type[Operation]] = set()
Test = Callable[..., None]


def covers(*kinds: type[Operation]) -> Callable[[Test], Test]:
    """Says which ops a test is about."""

    def register(test: Test) -> Test:
        COVERED.update(kinds)
        return test

    return register


def examples(count: int) -> Callable[[Test], Test]:
    """A property, checked on so many examples."""

    def register(test: Test) -> Test:
        return settings(max_examples=count)(given(data=st.data())(test))

    return register


def view(rank: int, dtype: DType) -> str:
    return f"!tile.view<{rank}, {element_of(dtype)}, global>"


def tensor(shape: Sequence[int], dtype: DType) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element_of(dtype)}>"


def kernel(body: str, *types: str, outputs: int = 1, grid: str = "[]") -> ModuleOp:
    """@k with arguments %0, %1, … of these types; size 1 of argument 2 is called S2_1."""
    header, sizes = list[str](), list[str]()
    for index, type_ in enumerate(types):
        rank = int(type_.split("<")[1].split(",")[0]) if type_.startswith("!tile.view<") else 0
        header.append(f"%{index}: {type_}")
        sizes.append(f"[{', '.join(f'S{index}_{axis}' for axis in range(rank))}]")
    module = text.read(
        f"tile.func @k({', '.join(header)}) outputs {outputs} shapes [{', '.join(sizes)}] grid {grid} {{\n"
        f"{body}\ntile.return\n}}"
    )
    # What is run has been through text twice.
    return text.read(text.write(module))


def constants(prefix: str, numbers: Sequence[int]) -> tuple[str, str]:
    """Lines that define index constants, and the list of their names."""
    names = [f"%{prefix}{index}" for index in range(len(numbers))]
    lines = [f"{name} = arith.constant {number} : index\n" for name, number in zip(names, numbers, strict=True)]
    return "".join(lines), ", ".join(names)


def zeros(count: int) -> str:
    return ", ".join(["%zero"] * count)


def computed(body: str, shape: Sequence[int], dtype: DType, *inputs: tuple[Array, DType]) -> Array:
    """The tile %r of some shape that `body` makes of the tiles %a, %b, …, which hold the inputs."""
    lines, types = "%zero = arith.constant 0 : index\n", list[str]()
    for index, (array, of) in enumerate(inputs):
        types.append(view(array.ndim, of))
        lines += (
            f"%{'abc'[index]} = tile.load %{index}[{zeros(array.ndim)}] : {types[-1]} -> {tensor(array.shape, of)}\n"
        )
    found = np.zeros(shape, dtype.storage)
    types.append(view(len(shape), dtype))
    lines += f"{body}\ntile.store %r, %{len(inputs)}[{zeros(len(shape))}] : {tensor(shape, dtype)}, {types[-1]}"
    kept = [array.copy() for array, _ in inputs]
    run_kernel(kernel(lines, *types), "k", [*(array for array, _ in inputs), found])
    for (array, _), copy in zip(inputs, kept, strict=True):
        assert_same(array, copy)
    return found
