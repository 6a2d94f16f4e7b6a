"""Kernels with bytes of four-bit elements, compiled for GPUs: what they become, and that it is right, without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emitted_runs import run
from gpu_options import gpu
from packing_kernels import (
    apart,
    apart_and_together,
    check_product,
    codes,
    packed_left,
    packed_product,
    packed_result,
    packed_results,
    packed_right,
    scaled,
    scaled_rows,
)
from ptx_checks import check_clean, count

from tessera.dtypes.types import DType, bf16, f4e2m1, f16, i4, u4
from tessera.targets.cuda.compile import compile_kernel, compile_lowered, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.interpreter.nv import run_nv_kernel
from tessera.tile.calls.instance import Instance

Sizes = tuple[int, int, int]


def lowered(made: Instance, arch: str, aligned: int = 4) -> Any:
    return lower_kernel(made.module, made.name, gpu(arch, row_aligned=range(aligned)))[0]


@pytest.mark.parametrize("dtype", [i4, u4, f4e2m1], ids=str)
@pytest.mark.parametrize("shape", [(7,), (5, 9), (32, 24), (3, 4, 5)], ids=str)
def test_threads_take_bytes_apart_and_put_them_together(shape: tuple[int, ...], dtype: DType) -> None:
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    for axis in range(len(shape)):
        expected = apart(x, axis, dtype)
        halves, back = np.zeros_like(expected), np.zeros_like(x)
        made = apart_and_together[1].lower(x, halves, back, shape=shape, axis=axis, dtype=dtype)
        run(lowered(made, "sm_80", 0), made.name, [x, halves, back], arch="sm_80")
        assert np.array_equal(codes(halves), codes(expected))
        assert np.array_equal(back, x)


@pytest.mark.parametrize(("pairs", "columns"), [(3, 5), (16, 8)])
def test_threads_take_values_of_rows_apart(pairs: int, columns: int) -> None:
    arguments, expected = scaled(0, 2 * pairs, columns)
    made = scaled_rows[1].lower(*arguments, rows=2 * pairs, columns=columns)
    run(lowered(made, "sm_80", 0), made.name, arguments, arch="sm_80")
    for found, wanted in zip(arguments[3:], expected, strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.quick(1)
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_threads_multiply_packed_weights(left: bool) -> None:
    arguments, expected = packed_product(0, f16, (9, 12, 64), 32, left=left)
    made = (packed_left if left else packed_right)[1, 1].lower(*arguments, m=16, n=16, k=32, group=32)
    module = lowered(made, "sm_80", 0)
    run(module, made.name, arguments, arch="sm_80")
    check_product(arguments[3], expected, f16)
    ptx = compile_lowered(module, made.name, gpu("sm_80")).ptx
    check_clean(ptx, "sm_80")
    assert count(ptx, "mma.sync") > 0


def left_product(sizes: Sizes, dtype: DType, block: Sizes) -> tuple[Instance, list[Any], Any]:
    """Packed weights in front, as warp groups of sm_90a compute them in registers."""
    (m, n, _), (rows, columns, depth) = sizes, block
    arguments, expected = packed_product(3, dtype, sizes, 32, left=True)
    grid = -(-n // rows), -(-m // columns)
    made = packed_left[grid].lower(*arguments, m=rows, n=columns, k=depth, group=32)
    return made, arguments, expected


@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
def test_warp_groups_take_their_left_operand_apart(dtype: DType) -> None:
    made, *_ = left_product((256, 512, 512), dtype, (128, 128, 32))
    ptx = compile_kernel(made.module, made.name, gpu(row_aligned=range(4))).ptx
    check_clean(ptx, "sm_90a")
    assert count(ptx, "wgmma.mma_async") > 0
    assert count(ptx, "mma.sync") == 0


@pytest.mark.parametrize("sizes", [(40, 130, 64), (72, 64, 96)], ids=str)
def test_warp_groups_multiply_packed_weights(sizes: Sizes) -> None:
    made, arguments, expected = left_product(sizes, bf16, (64, 64, 32))
    run_warpgroups(lowered(made, "sm_90a"), made.name, arguments, blocks=2, seed=1)
    check_product(arguments[3], expected, bf16)


@pytest.mark.parametrize(("axis", "specialized"), [(1, True), pytest.param(0, False, marks=pytest.mark.acceptance)])
def test_sums_of_warp_groups_are_packed_along_their_rows(axis: int, specialized: bool) -> None:
    """Two rows of one byte are not in one thread: such results take the path of all GPUs."""
    arguments, expected = packed_results(0, bf16, (128, 64, 64), axis)
    made = packed_result[2, 1].lower(*arguments, m=64, n=64, k=64, axis=axis)
    module = lowered(made, "sm_90a", 3)
    assert (count(compile_lowered(module, made.name).ptx, "wgmma.mma_async") > 0) == specialized
    if specialized:
        run_warpgroups(module, made.name, arguments, blocks=1, seed=0)
    else:
        run_nv_kernel(module, made.name, arguments)
    assert np.array_equal(arguments[2], expected)
