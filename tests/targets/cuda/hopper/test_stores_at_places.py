"""Warp-specialized kernels that store under masks, in branches and at computed places: right, clean, and refused where
consumers would come out of order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_runs import copies
from gpu_options import gpu
from hypothesis import given, settings
from hypothesis import strategies as st
from placed_kernels import NAMES, Placed, check, masked, placed, product
from ptx_checks import check_clean, count
from xdsl.dialects.builtin import ModuleOp

import tessera as ts
from tessera import kernel, tile
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect as tile_ir
from tessera.targets import text
from tessera.targets.cuda.compile import compile_kernel, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups


def traced(call: Placed) -> tuple[ModuleOp, str, range]:
    made = call.kernel.lower(*call.given, **call.static)
    return made.module, made.name, range(len(symbol_in(made.module, made.name, tile_ir.FuncOp).arguments))


def run(call: Placed, blocks: int, seed: int) -> None:
    module, name, aligned = traced(call)
    plain, warps = copies(call.given), copies(call.given)
    run_kernel(module, name, plain)
    lowered = lower_kernel(module, name, gpu(row_aligned=aligned))[0]
    assert "nv.wgmma" in text.write(lowered)
    run_warpgroups(lowered, name, warps, blocks=blocks, seed=seed)
    for values in (plain, warps):
        check(call, values[-call.written :])


@pytest.mark.parametrize("name", NAMES)
def test_they_mean_the_same(name: str) -> None:
    run(placed(name, 1, (128, 64, 32), 200, 72, 80), blocks=2, seed=3)


@pytest.mark.acceptance
@settings(max_examples=30)
@given(
    st.sampled_from(NAMES),
    st.sampled_from([(64, 64, 32), (128, 64, 64), (192, 32, 16)]),
    st.tuples(*[st.integers(1, 300), st.integers(1, 20).map(lambda n: 8 * n), st.integers(0, 20).map(lambda n: 8 * n)]),
    st.integers(0, 99),
)
def test_any_sizes_mean_the_same(
    name: str, sizes: tuple[int, int, int], shape: tuple[int, int, int], seed: int
) -> None:
    run(placed(name, seed, sizes, *shape), blocks=3, seed=seed)


@pytest.mark.quick(1, name=["parts", "scattered"])
@pytest.mark.parametrize("sizes", [(128, 128, 64), (64, 64, 64), (192, 64, 32)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_ptx_of_them_is_clean(name: str, sizes: tuple[int, int, int]) -> None:
    module, kernel_name, aligned = traced(placed(name, 0, sizes, 256, 256, 256))
    made = compile_kernel(module, kernel_name, gpu(row_aligned=aligned))
    assert count(made.ptx, "wgmma.mma_async") > 0
    assert not made.report.fallbacks
    check_clean(made.ptx, "sm_90a")


@kernel
def in_a_loop(a: Any, b: Any, order: Any, out: Any, *, m: int, n: int, k: int):
    """Iterations write to the same rows: the last one counts."""
    for column in tile.range(0, b.shape[1], n):
        acc = product(a, b, tile.program_id(0) * m, column, m, n, k)
        tile.scatter(out, tile.load(order, at=(0,), shape=(m,)), tile.cast(acc, out.dtype), at=(0,))


@kernel
def twice(a: Any, b: Any, order: Any, out: Any, *, m: int, n: int, k: int):
    """The second store may go where the first one of another row went."""
    acc = product(a, b, 0, 0, m, n, k)
    places = tile.load(order, at=(0,), shape=(m,))
    tile.scatter(out, places, tile.cast(acc, out.dtype), at=(0,))
    tile.scatter(out, places + 1, tile.cast(-acc, out.dtype), at=(0,))


@pytest.mark.parametrize(("kernel", "reason"), [(in_a_loop, "a store stands in a loop"), (twice, "the same rows")])
def test_what_would_come_out_of_order_is_refused(kernel: Any, reason: str) -> None:
    a, b, order = ts.empty((64, 64), ts.bf16), ts.empty((64, 128), ts.bf16), ts.empty((64,), ts.i32)
    call = Placed(kernel[1], [a, b, order, ts.empty((64, 64), ts.bf16)], [], (64, 64, 32))  # pyright: ignore[reportArgumentType]  (shapes alone are asked)
    module, name, aligned = traced(call)
    report = lower_kernel(module, name, gpu(row_aligned=aligned)).report
    assert any(reason in str(one) for one in report.fallbacks)


def test_a_mask_of_nothing_writes_nothing() -> None:
    """Rows that lie behind the last one, and columns beside the diagonal."""
    a, b = np.ones((128, 64), ts.bf16.storage), np.ones((64, 128), ts.bf16.storage)
    call = Placed(masked[1, 2], [a, b[:, :128], np.full((128, 128), 7, ts.bf16.storage)], [], (128, 64, 64))
    module, name, aligned = traced(call)
    lowered, out = lower_kernel(module, name, gpu(row_aligned=aligned))[0], copies(call.given)
    run_warpgroups(lowered, name, out, blocks=1, seed=0)
    lower = np.arange(128) <= np.arange(128)[:, None]
    assert np.array_equal(out[-1].astype(np.float32), np.where(lower, 64, 7))
