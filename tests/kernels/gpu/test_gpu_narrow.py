"""Warp-specialized dots of 8 bits and of tf32 on a GPU, against the interpreter: odd sizes, exact accumulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp_specialized_kernels as cases

import tessera as ts
from tessera import DType, accum, bf16, f16, f32, knobs
from tessera.bench.cuda.kernel_texts import program_of
from tessera.dtypes.types import i8, i32, tf32, u8, u32
from tessera.transforms.pipelining.promote_accumulators import DEPTH

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("warp_specialization_here")]
Array = np.ndarray[Any, np.dtype[Any]]
FAST = ts.f8e4m3 @ accum(f16)
RESULTS = {ts.f8e4m3: bf16, ts.f8e5m2: bf16, FAST: bf16, i8: i32, u8: u32, tf32: f32}
# Of the largest number of a row: what is stored is rounded, and tensor cores cut accumulators off.
TOLERANCES = {ts.f8e4m3: 8e-3, ts.f8e5m2: 8e-3, FAST: 1.2e-2, tf32: 1e-5}
SIZES = [(1, 8, 1), (65, 72, 5), (131, 264, 9), (777, 130, 65), (300, 1000, 128)]
"""Rows, columns, and the depth in pieces of 16 bytes."""
BLOCKS = [(64, 64, 4), (128, 128, 8), (192, 128, 8), (128, 128, 16), (128, 256, 8)]
"""The depth in pieces of 16 bytes."""


def numbers(dtype: DType, shape: tuple[int, ...], seed: int) -> ts.Tensor:
    chance = np.random.default_rng(seed)
    if dtype.is_integer:
        low, high = int(dtype.min_value), int(dtype.max_value)
        return ts.asarray(chance.integers(low, high + 1, shape).astype(dtype.storage))
    return ts.asarray(chance.standard_normal(shape).astype(np.float32)).to(dtype)


def multiplied(dtype: DType, size: Any, seed: int, *, on_gpu: bool) -> Array:
    a, b = numbers(dtype, (size.m, size.k), seed), numbers(dtype, (size.n, size.k), seed + 1)
    result = RESULTS[dtype]
    c = ts.full((size.m, size.n), 77, result)
    given = [x.cuda() if on_gpu else x for x in (a, b, c)]
    kernel = size.on(cases.narrow_gemm)
    if on_gpu:
        assert b"wgmma.mma_async" in program_of(kernel, *given).ptx
    kernel(*given)
    return given[2].cpu().to(result if result.is_integer else f32).numpy().astype(np.float64)


@pytest.mark.parametrize("dtype", RESULTS, ids=str)
def test_matmuls(dtype: DType) -> None:
    unit = 16 // dtype.storage.itemsize
    for seed, ((m, n, k), (down, across, deep)) in enumerate(zip(SIZES, BLOCKS, strict=True)):
        if across == 256 and dtype in (ts.f8e4m3, ts.f8e5m2):
            continue  # sums that are promoted take twice the registers
        size = cases.Product(m, n, k * unit, (down, across, deep * unit))
        with knobs.interpret.using(True):
            expected = multiplied(dtype, size, seed, on_gpu=False)
        found = multiplied(dtype, size, seed, on_gpu=True)
        again = multiplied(dtype, size, seed, on_gpu=True)
        assert found.tobytes() == again.tobytes()
        if dtype.is_integer:
            np.testing.assert_array_equal(found, expected)
        else:
            largest = np.abs(expected).max(-1, keepdims=True)
            off = np.abs(found - expected) / largest
            assert off.max() < TOLERANCES[dtype], f"{size}: off by {off.max():.2g}"


def test_promoted_sums_keep_small_terms() -> None:
    """A large term, and very many small ones: carried in 14 bits, all of them would be lost."""
    depth = 1 << 14
    a, b = np.full((64, depth), 1.0, np.float32), np.full((64, depth), 2.0**-6, np.float32)
    a[:, 0], b[:, 0] = 256.0, 128.0
    truth = 256.0 * 128.0 + (depth - 1) * 2.0**-6
    found: dict[DType, float] = {}
    for dtype in (ts.f8e4m3, FAST):
        c = ts.full((64, 64), 77, f32).cuda()
        size = cases.Product(64, 64, depth, (64, 64, 128))
        size.on(cases.narrow_gemm)(*(ts.asarray(x).to(dtype).cuda() for x in (a, b)), c)
        found[dtype] = float(c.cpu().numpy()[0, 0])
    # The first dots are carried with the large one; others come by themselves.
    assert abs(found[ts.f8e4m3] - truth) <= DEPTH * 2.0**-6
    assert abs(found[FAST] - truth) > 100
