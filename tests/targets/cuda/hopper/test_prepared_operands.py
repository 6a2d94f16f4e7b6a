"""Right operands that are computed of loaded tiles: a preparer makes them, and the kernel means the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_checks import count
from xdsl.dialects.builtin import ModuleOp

import tessera as ts
from tessera import Schedule, bf16, f16, f32, i4, kernel, tile
from tessera.dtypes.types import i8, u8
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile_ops
from tessera.targets.cuda.compile import LoweredToNv, compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import dialect as nv
from tessera.targets.cuda.ir import wgmma
from tessera.targets.cuda.ptx.assembler import assemble

Array = np.ndarray[Any, np.dtype[Any]]
GROUP = 128
"""Elements along the depth that have a scale in common."""


@kernel
def bytes_down(x: Any, weight: Any, scales: Any, y: Any):
    """weight is [K, N] of i8, scales [K / 128, N]."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        wide = tile.load(weight, at=(k, col), shape=(here.k, here.n)).to(f32)
        wide = wide * tile.load(scales, at=(k // GROUP, col), shape=(1, here.n)).to(f32)
        acc = tile.dot(tile.load(x, at=(row, k), shape=(here.m, here.k)), tile.cast(wide, x.dtype), acc)
    tile.store(y, tile.cast(acc, y.dtype), at=(row, col))


@kernel
def bytes_along(x: Any, weight: Any, scales: Any, y: Any):
    """weight is [N, K] of i8, scales [N, K / 128]."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        wide = tile.load(weight, at=(col, k), shape=(here.n, here.k)).to(f32)
        wide = wide * tile.load(scales, at=(col, k // GROUP), shape=(here.n, 1)).to(f32)
        acc = tile.dot(tile.load(x, at=(row, k), shape=(here.m, here.k)), tile.cast(wide, x.dtype).T, acc)
    tile.store(y, tile.cast(acc, y.dtype), at=(row, col))


@kernel
def halves_down(x: Any, packed: Any, scales: Any, y: Any):
    """packed is [K / 2, N] of u8, two weights of four bits in each."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        wide = tile.unpack(tile.load(packed, at=(k // 2, col), shape=(here.k // 2, here.n)), i4, axis=0).to(f32)
        wide = wide * tile.load(scales, at=(k // GROUP, col), shape=(1, here.n)).to(f32)
        acc = tile.dot(tile.load(x, at=(row, k), shape=(here.m, here.k)), tile.cast(wide, x.dtype), acc)
    tile.store(y, tile.cast(acc, y.dtype), at=(row, col))


@kernel
def both_gates(x: Any, gate: Any, up: Any, y: Any):
    """Two weights of i8, the second of which is scaled by a number."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    first, second = tile.zeros((here.m, here.n)), tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        left = tile.load(x, at=(row, k), shape=(here.m, here.k))
        one, other = (tile.load(weight, at=(k, col), shape=(here.k, here.n)) for weight in (gate, up))
        first = tile.dot(left, tile.cast(one, x.dtype), first)
        second = tile.dot(left, tile.cast(other.to(f32) * 0.5, x.dtype), second)
    tile.store(y, tile.cast(first * second, y.dtype), at=(row, col))


def arranged_down(weight: Array, scales: Array) -> tuple[Array, Array]:
    return weight, scales


def arranged_along(weight: Array, scales: Array) -> tuple[Array, Array]:
    return np.ascontiguousarray(weight.T), np.ascontiguousarray(scales.T)


def arranged_halves(weight: Array, scales: Array) -> tuple[Array, Array]:
    low, high = (weight[part::2].astype(np.uint8) & 15 for part in (0, 1))
    return low | high << 4, scales


Arrange = Callable[[Array, Array], tuple[Array, Array]]
CASES: dict[str, tuple[Any, Any, int, Arrange]] = {
    "i8, depth down": (bytes_down, i8, 128, arranged_down),
    "i8, depth along": (bytes_along, i8, 128, arranged_along),
    "i4, depth down": (halves_down, u8, 8, arranged_halves),
}


def lowered(made: Any, *arguments: Any) -> tuple[LoweredToNv, str]:
    traced = made.lower(*arguments)
    aligned = range(len(symbol_in(traced.module, traced.name, tile_ops.FuncOp).arguments))
    return lower_kernel(traced.module, traced.name, gpu(row_aligned=aligned)), traced.name


def check_prepared(module: ModuleOp, name: str) -> None:
    """Warp groups multiply what a preparer has written."""
    function = symbol_in(module, name, nv.FuncOp)
    assert any(isinstance(op, wgmma.WgmmaOp) for op in function.walk())
    assert any(isinstance(op, nv.WriteOp) for op in function.walk())
    assert not any(isinstance(op, nv.MmaOp) for op in function.walk())


@pytest.mark.quick(name=list(CASES))
@pytest.mark.parametrize("block", [(64, 64, 64), (128, 96, 128), (192, 32, 64)])
@pytest.mark.parametrize("name", CASES)
def test_weights_of_few_bits(name: str, block: tuple[int, int, int]) -> None:
    made, dtype, most, arrange = CASES[name]
    check_product(made, dtype, most, arrange, block, (130, 160, 320))


@pytest.mark.acceptance
@settings(deadline=None, max_examples=20)
@given(st.sampled_from(sorted(CASES)), st.integers(1, 140), st.integers(1, 6), st.integers(1, 6))
def test_weights_of_few_bits_at_odd_sizes(name: str, rows: int, columns: int, depth: int) -> None:
    made, dtype, most, arrange = CASES[name]
    check_product(made, dtype, most, arrange, (64, 64, 64), (rows, 16 * columns, 64 * depth))


def check_product(
    made: Any, dtype: Any, most: int, arrange: Arrange, block: tuple[int, int, int], sizes: tuple[int, int, int]
) -> None:
    m, n, k = sizes
    chance = np.random.default_rng(m)
    x = chance.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
    weight = chance.integers(-most, most, (k, n)).astype(np.int8)
    scales = (chance.random((-(-k // GROUP), n)) + 0.5).astype(ml_dtypes.bfloat16)
    wide = weight * scales.astype(np.float32).repeat(GROUP, 0)[:k]
    expected = x.astype(np.float64) @ wide.astype(ml_dtypes.bfloat16).astype(np.float64)
    first, second = arrange(weight, scales)
    grid = -(-m // block[0]), -(-n // block[1])
    arguments = ((m, k), bf16), (first.shape, dtype), (second.shape, bf16), ((m, n), bf16)
    found, name = lowered(made.with_schedule(Schedule(block=block))[grid], *(ts.empty(*one) for one in arguments))
    assert not found.report.refusals
    check_prepared(found.module, name)
    for seed in (0, 1):
        y = np.full((m, n), np.nan, ml_dtypes.bfloat16)
        run_warpgroups(found.module, name, [x, first, second, y], blocks=2, seed=seed)
        np.testing.assert_allclose(y.astype(np.float64), expected, rtol=1e-2, atol=1e-2 * np.abs(expected).max())


def test_several_operands_are_prepared() -> None:
    m, n, k = 70, 64, 96
    chance = np.random.default_rng(0)
    x = chance.standard_normal((m, k)).astype(np.float16)
    gate, up = (chance.integers(-8, 8, (k, n)).astype(np.int8) for _ in range(2))
    made = both_gates.with_schedule(Schedule(block=(64, 64, 32)))[2, 1]
    arguments = ((m, k), f16), ((k, n), i8), ((k, n), i8), ((m, n), f32)
    found, name = lowered(made, *(ts.empty(*one) for one in arguments))
    check_prepared(found.module, name)
    expected = (x.astype(np.float64) @ gate) * (x.astype(np.float64) @ up * 0.5)
    for seed in (0, 1):
        y = np.full((m, n), np.nan, np.float32)
        run_warpgroups(found.module, name, [x, gate, up, y], blocks=2, seed=seed)
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.quick(1)
@pytest.mark.parametrize("block", [(64, 128, 128), (128, 192, 64)])
@pytest.mark.parametrize("name", CASES)
def test_code_is_clean(name: str, block: tuple[int, int, int]) -> None:
    """No spills: operands are computed some rows at a time; and no dot that waits unasked."""
    made, dtype, _, arrange = CASES[name]
    m, n, k = 4096, 4096, 4096
    first, second = arrange(np.zeros((k, n), np.int8), np.zeros((k // GROUP, n)))
    arguments = ((m, k), bf16), (first.shape, dtype), (second.shape, bf16), ((m, n), bf16)
    traced = made.with_schedule(Schedule(block=block))[m // block[0], -(-n // block[1])].lower(
        *(ts.empty(*one) for one in arguments)
    )
    program = compile_kernel(traced.module, traced.name, gpu(row_aligned=range(4)))
    assembly = assemble(program.ptx, "sm_90a")
    (usage,) = assembly.kernels.values()
    assert (usage.spill_stores, usage.spill_loads, usage.stack) == (0, 0, 0)
    assert not [str(remark) for remark in assembly.warnings if remark.slows]
    assert count(program.ptx, "wgmma.mma_async") > 0
    assert count(program.ptx, "mma.sync") == 0


@kernel
def scaled_rows(x: Any, weight: Any, y: Any, peaks: Any):
    """A product, the highest magnitude of each row of a block, and the rows divided by it."""
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n))
    for k in tile.range(0, x.shape[1], here.k):
        left, right = (
            tile.load(x, at=(row, k), shape=(here.m, here.k)),
            tile.load(weight, at=(k, col), shape=(here.k, here.n)),
        )
        acc = tile.dot(left, right, acc)
    peak = tile.max(tile.abs(acc), axis=1)
    tile.store(peaks[tile.program_id(1)], peak, at=(row,))
    tile.store(y, tile.cast(acc * (1.0 / (peak + 1.0))[:, None], y.dtype), at=(row, col))


@pytest.mark.parametrize("columns", [64, 256])
@pytest.mark.parametrize("depth", [128, 0])
def test_epilogues_that_fold_rows(columns: int, depth: int) -> None:
    """Also where the loop may have no iteration: what is folded then lies as an accumulator would."""
    m, n = 128, 2 * columns
    made = scaled_rows.with_schedule(Schedule(block=(128, columns, 64)))[1, 2]
    arguments = ((m, depth), bf16), ((depth, n), bf16), ((m, n), ts.f8e4m3), ((2, m), f32)
    found, name = lowered(made, *(ts.empty(*one) for one in arguments))
    assert not found.report.refusals
    chance = np.random.default_rng(columns)
    x, weight = (chance.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, depth), (depth, n)))
    y, peaks = np.zeros((m, n), ml_dtypes.float8_e4m3fn), np.full((2, m), np.nan, np.float32)
    run_warpgroups(found.module, name, [x, weight, y, peaks], blocks=2, seed=0)
    expected = x.astype(np.float64) @ weight.astype(np.float64)
    highest = np.abs(expected.reshape(m, 2, columns)).max(-1).T
    np.testing.assert_allclose(peaks, highest, rtol=1e-5, atol=1e-6)
    scaled = expected / (highest.T.repeat(columns, 1) + 1)
    np.testing.assert_allclose(y.astype(np.float64), scaled, atol=0.05)
