"""Products of 8 bits and of tf32 by agents of sm_90a: who is given to them, that it assembles clean and is right."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_checks import check_clean, count

import tessera as ts
from tessera import DType, accum, bf16, f16, f32
from tessera.dtypes.casting import cast
from tessera.dtypes.types import f64, i8, i32, tf32, u8, u32
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tile
from tessera.targets import text
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.tile.calls.settings import Settings
from tessera.transforms.pipelining.promote_accumulators import DEPTH

kernels: Any = import_module("warp_specialized_kernels")
Array = np.ndarray[Any, np.dtype[Any]]

FAST = ts.f8e4m3 @ accum(f16)
RESULTS = {ts.f8e4m3: bf16, ts.f8e5m2: f32, FAST: bf16, i8: i32, u8: u32, tf32: f32}
BLOCKS = {
    ts.f8e4m3: [(128, 128, 256), (192, 128, 128)],
    ts.f8e5m2: [(128, 144, 128)],
    FAST: [(128, 256, 128)],
    i8: [(128, 256, 128), (64, 64, 32)],
    u8: [(128, 128, 64)],
    tf32: [(128, 256, 32), (64, 64, 8)],
}
PROMOTED = (ts.f8e4m3, ts.f8e5m2)
every_type = pytest.mark.parametrize("dtype", RESULTS, ids=str)


def empty(dtype: DType) -> Callable[..., ts.Tensor]:
    """Makes arrays that take no memory; their rows lie well."""

    def new(*shape: int, dtype: DType = dtype, target: bool = False) -> ts.Tensor:
        return ts.empty(shape, dtype)

    return new


def traced(call: Any) -> tuple[Any, str, range]:
    made = call.kernel.lower(*call.arguments, **call.static)
    return made.module, made.name, range(len(symbol_in(made.module, made.name, tile.FuncOp).arguments))


@every_type
def test_assembled(dtype: DType) -> None:
    for block in BLOCKS[dtype]:
        size = kernels.Product(512, 512, 512, block)
        module, name, row_aligned = traced(kernels.narrow(empty(dtype), size, RESULTS[dtype]))
        made = compile_kernel(module, name, gpu(row_aligned=row_aligned))
        check_clean(made.ptx, "sm_90a")
        steps = block[2] * dtype.storage.itemsize // 32
        # Where sums go on from turn to turn, the first is written by itself; where they are promoted, those left over.
        turns = DEPTH // block[2] if dtype in PROMOTED else 1
        written = 1 if dtype in PROMOTED and turns == 1 else turns + 1
        assert count(made.ptx, "wgmma.mma_async") == steps * written
        assert count(made.ptx, "mma.sync") == 0


def exact(dtype: DType, seed: int) -> Callable[..., Array]:
    """Makes arrays of small whole numbers: sums of their products are exact in every type."""
    chance = np.random.default_rng(seed)

    def new(*shape: int, dtype: DType = dtype, target: bool = False) -> Array:
        low = 0 if dtype.kind is u8.kind else -4
        numbers = np.full(shape, 77.0) if target else chance.integers(low, 5, shape).astype(np.float64)
        return np.asarray(cast(numbers, f64, dtype.base))

    return new


def check_meaning(dtype: DType, size: Any, blocks: int, seed: int) -> str:
    """Runs warpgroups, and compares with what NumPy says; gives the text."""
    module, name, row_aligned = traced(kernels.narrow(empty(dtype), size, RESULTS[dtype]))
    given = kernels.narrow(exact(dtype, seed), size, RESULTS[dtype]).arguments
    lowered = lower_kernel(module, name, gpu(row_aligned=row_aligned))[0]
    run_warpgroups(lowered, name, given, blocks=blocks, seed=seed)
    a, b, c = (
        np.asarray(cast(x, one, f64)) for x, one in zip(given, (dtype.base, dtype.base, RESULTS[dtype]), strict=True)
    )
    expected = np.asarray(cast(cast(a @ b.T, f64, RESULTS[dtype]), RESULTS[dtype], f64))
    np.testing.assert_array_equal(c, expected)
    return text.write(lowered)


@every_type
def test_meaning(dtype: DType) -> None:
    unit = 16 // dtype.storage.itemsize
    written = check_meaning(dtype, kernels.Product(131, 72, 9 * unit, (128, 64, 4 * unit)), 2, 5)
    assert "nv.wgmma" in written
    assert ("tile.ew<add>" in written) == (dtype in PROMOTED)


def test_a_policy_makes_another_program() -> None:
    size = kernels.Product(128, 128, 128, (128, 128, 128))
    plain, fast = (traced(kernels.narrow(empty(dtype), size, bf16))[0] for dtype in (ts.f8e4m3, FAST))
    assert " in f16" not in text.write(plain)
    assert " in f16" in text.write(fast)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from(list(RESULTS)), st.integers(1, 150), st.integers(1, 90), st.integers(1, 20), st.integers(0, 9))
def test_odd_sizes(dtype: DType, m: int, n: int, k: int, seed: int) -> None:
    unit = 16 // dtype.storage.itemsize
    size = kernels.Product(m, n, k * unit, (64, 64, 2 * unit))
    assert "nv.wgmma" in check_meaning(dtype, size, 1 + seed % 3, seed)


@pytest.mark.parametrize("dtype", [ts.f8e4m3, i8, tf32], ids=str)
def test_columns_that_lie_side_by_side_are_not_given_to_agents(dtype: DType) -> None:
    """Warpgroups turn what has 16 bits; of what has 8, an agent turns right factors; nothing turns others."""
    size = kernels.Product(512, 512, 512, (64, 64, 64))
    if dtype.is_float:
        module, name, row_aligned = traced(kernels.PRODUCTS["a·b"](empty(dtype), size))
        assert ("wgmma" in compile_kernel(module, name, gpu(row_aligned=row_aligned)).ptx) == (dtype.bits == 8)
    call = kernels.narrow(empty(dtype), size, RESULTS[dtype])
    call.arguments[1] = ts.empty((512, 512), dtype).T
    module, name, _ = traced(call)
    assert "wgmma" not in compile_kernel(module, name, gpu(row_aligned=[0, 2])).ptx


def test_how_deep_a_turn_is_follows_from_the_type() -> None:
    """As many bytes of the depth whatever the type, and more where sums are promoted; not where these have no room."""
    hopper = Settings("cuda", "sm_90a", 3, frozenset(), deterministic=False, demanded=True)

    def chosen(dtype: DType, block: tuple[int, int]) -> tuple[int, ...] | None:
        size = kernels.Product(512, 512, 512, block)
        call = kernels.narrow(empty(dtype), size, RESULTS[dtype])
        return call.kernel.form_for(call.arguments, {}, hopper).schedule.block

    for dtype, deep in ((ts.f8e4m3, 256), (FAST, 128), (i8, 128), (tf32, 32)):
        assert chosen(dtype, (128, 128)) == (128, 128, deep)
    assert chosen(FAST, (128, 256)) == (128, 256, 128)
    assert chosen(ts.f8e4m3, (128, 256)) == (128, 256)
