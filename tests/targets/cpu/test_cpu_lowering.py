"""Checks that tile programs mean the same at the cpu level: the library's kernels, and random programs bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_runs import MACHINES, Array, at_cpu_level, at_tile_level, lowered
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tile_programs import arguments, program

from tessera import Schedule
from tessera.errors import CompileError
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.ir.tile.types import ViewType
from tessera.shapes.environment import Origin, ShapeEnvironment
from tessera.shapes.expr import dim
from tessera.targets import text
from tessera.tile.calls.function import Kernel

lib: Any = import_module("library")

bf16 = ml_dtypes.bfloat16
# Relative error in norm; each level rounds sums of its own.
BOUNDS = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 5e-4, np.dtype(bf16): 4e-3}
Make = Callable[..., Array]


def blocks(size: int, block: int) -> int:
    return math.ceil(size / block)


def heads(make: Make, s: int, t: int, d: int) -> list[Any]:
    return [make(2, s, d), make(2, t, d), make(2, t, d)]


# For each kernel, its arguments and static ones, for sizes and blocks; all sizes are ragged.
CASES: dict[str, Callable[[Make, int, int, tuple[int, int, int]], tuple[Any, list[Any], dict[str, Any]]]] = {
    "saxpy": lambda a, m, n, b: (lib.saxpy, [a(m), a(m), 1.5], {}),
    "softmax": lambda a, m, n, b: (lib.softmax, [a(m, n)], {}),
    "layernorm": lambda a, m, n, b: (lib.layernorm, [a(2, m, n), a(n), a(n)], {}),
    "rmsnorm": lambda a, m, n, b: (lib.rmsnorm, [a(m, n), a(n), 1e-6], {}),
    "gemm": lambda a, m, n, b: (
        lib.gemm[blocks(m, b[0]), blocks(n, b[1])],
        [a(m, n), a(n, n), a(n), a(m, n)],
        {"epilogue": lib.gelu},
    ),
    "transpose": lambda a, m, n, b: (lib.transpose[blocks(m, b[0]), blocks(n, b[1])], [a(m, n), a(n, m)], {}),
    "attention": lambda a, m, n, b: (lib.attention, [a(1, 2, m, 8), a(1, 1, n, 8), a(1, 1, n, 8)], {}),
    "causal_attention": lambda a, m, n, b: (lib.attention, heads(a, m, n, 8), {"mask": lib.causal}),
    "window_attention": lambda a, m, n, b: (lib.window_attention, [*heads(a, m, n, 8), 5], {}),
    "softcap_attention": lambda a, m, n, b: (lib.softcap_attention, heads(a, m, n, 8), {"cap": 5.0}),
    "alibi_attention": lambda a, m, n, b: (lib.alibi_attention, [*heads(a, m, n, 8), slopes()], {}),
    "sigmoid_attention": lambda a, m, n, b: (lib.sigmoid_attention, [*heads(a, m, n, 8), -1.0], {}),
    "mlp": lambda a, m, n, b: (lib.mlp, [a(m, 8), a(8, n), a(n, 8)], {}),
    "histogram": lambda a, m, n, b: (lib.histogram, [counted(m), np.zeros(5, np.int32)], {"bins": 5}),
    "logsumexp": lambda a, m, n, b: (lib.logsumexp, [a(m, n)], {}),
    "rope": lambda a, m, n, b: (lib.rope, [a(2, m, 8), a(2, m, 8)], {}),
}


def slopes() -> Array:
    return np.array([0.5, 0.25], np.float32)


def counted(size: int) -> Array:
    return np.arange(size, dtype=np.int32) * 7 % 5


def test_every_kernel_has_a_case() -> None:
    library = {name for name in dir(lib) if isinstance(getattr(lib, name), Kernel)}
    assert library | {"causal_attention"} == CASES.keys()


def instance(kernel: Any, given: list[Any], static: dict[str, Any]) -> tuple[Any, str, list[Any]]:
    """The module of a kernel, its name, and its arguments with fresh results."""
    made = kernel.lower(*given, **static)
    function = symbol_in(made.module, made.name, tile.FuncOp)
    sizes = ShapeEnvironment()
    for index, (shape, value) in enumerate(zip(function.shapes, given, strict=False)):
        for size, actual in zip(shape.data, np.shape(value), strict=True):
            sizes.unify(size, actual, Origin(f"argument {index}", None))
    results: list[Array] = []
    for type_, shape in list(zip(function.function_type.inputs, function.shapes, strict=True))[len(given) :]:
        assert isinstance(type_, ViewType)
        results.append(np.zeros([dim(size).evaluate(sizes.sizes) for size in shape.data], type_.dtype.storage))
    return made.module, made.name, [*given, *results]


def check(name: str, level: str, dtype: Any, m: int, n: int, block: tuple[int, int, int], seed: int) -> None:
    generator = np.random.default_rng(seed)

    def make(*shape: int) -> Array:
        return generator.standard_normal(shape).astype(dtype)

    kernel, given, static = CASES[name](make, m, n, block)
    module, function, values = instance(kernel.with_schedule(Schedule(block=block)), given, static)
    expected = at_tile_level(module, function, values)
    made = lowered(module, level)
    assert not any(isinstance(op, tile.FuncOp) for op in made.body.block.ops)
    for order in (None, seed):
        found = at_cpu_level(made, function, values, order)
        for one, other in zip(found, expected, strict=True):
            if one.dtype not in BOUNDS:
                assert np.array_equal(one, other)
                continue
            wide = other.astype(np.float64)
            error = np.linalg.norm(one.astype(np.float64) - wide)
            assert error <= BOUNDS[one.dtype] * np.linalg.norm(wide), f"order {order}"


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", MACHINES)
def test_a_kernel_means_the_same_at_the_cpu_level(name: str, level: str) -> None:
    # bf16 at the level that has a unit for it.
    check(name, level, bf16 if level == "amx" else np.float32, 13, 18, (12, 16, 16), 1)


@pytest.mark.parametrize("name", ["gemm", "causal_attention"])
@pytest.mark.parametrize("level", ["base", "avx2"])
def test_one_column_may_be_left_over(name: str, level: str) -> None:
    check(name, level, np.float32, 7, 17, (8, 17, 17), 2)


@pytest.mark.acceptance
@settings(max_examples=40)
@given(
    st.sampled_from(sorted(MACHINES)),
    st.sampled_from([np.float32, np.float16, bf16]),
    st.integers(1, 70),
    st.integers(1, 70),
    st.tuples(*[st.sampled_from([8, 16, 17, 32, 33, 64])] * 3),
    st.integers(0, 1000),
)
@pytest.mark.parametrize("name", CASES)
def test_kernels_mean_the_same_for_all_sizes(
    name: str, level: str, dtype: Any, m: int, n: int, block: tuple[int, int, int], seed: int
) -> None:
    check(name, level, dtype, m, n, block, seed)


# Random programs


def check_random(seed: int, level: str, fuse: bool) -> None:
    module, given = program(seed), arguments(seed)
    text.verify(module)
    expected = at_tile_level(module, "k", given)
    made = lowered(module, level, fuse=fuse)
    for order in (None, seed):
        found = at_cpu_level(made, "k", given, order)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)), f"order {order}"


@pytest.mark.quick(2)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_random_programs_give_the_same_bits(level: str, fuse: bool, seed: int) -> None:
    check_random(seed, level, fuse)


@pytest.mark.acceptance
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@settings(max_examples=500)
@given(st.integers(0, 10**6))
def test_many_random_programs_give_the_same_bits(level: str, fuse: bool, seed: int) -> None:
    check_random(seed, level, fuse)


# What cannot be lowered


def test_nothing_is_changed_by_a_program_that_is_refused() -> None:
    module = text.read(
        """
        tile.func @k(%x: f32) outputs 0 shapes [[]] grid [1] {
          %a = tile.full %x : tensor<4x4xf32>
          tile.debug_print "a", %a {tile.breakpoint} : tensor<4x4xf32>
          tile.return
        }
        """
    )
    before = text.write(module)
    with pytest.raises(CompileError, match="runs in the interpreter only"):
        lowered(module, "avx2")
    assert text.write(module) == before
