"""Bytes of four-bit elements on a GPU: taken apart, put together and multiplied, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from packing_kernels import (
    Array,
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
    together,
)

import tessera as ts
from tessera.bench.cuda.kernel_texts import program_of
from tessera.dtypes.types import BYTES, FOURS, DType, bf16, f16, f32

pytestmark = pytest.mark.gpu


def on_gpu(array: Array) -> ts.Tensor:
    return ts.asarray(array).cuda()


@pytest.mark.parametrize("byte", BYTES, ids=str)
@pytest.mark.parametrize("dtype", FOURS, ids=str)
@pytest.mark.parametrize("shape", [(1,), (77,), (5, 9), (64, 128), (37, 1), (3, 4, 5), (2, 16, 32)], ids=str)
def test_bytes_taken_apart_are_those_that_are_put_together(shape: tuple[int, ...], dtype: DType, byte: DType) -> None:
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8).view(byte.storage)
    for axis in range(-len(shape), len(shape)):
        expected = apart(x, axis, dtype)
        halves, back = on_gpu(np.zeros_like(expected)), on_gpu(np.zeros_like(x))
        apart_and_together[1](on_gpu(x), halves, back, shape=shape, axis=axis, dtype=dtype)
        assert np.array_equal(codes(halves.cpu().numpy()), codes(expected))
        assert np.array_equal(back.cpu().numpy(), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_bytes_that_do_not_lie_side_by_side(axis: int) -> None:
    large = np.random.default_rng(1).integers(0, 256, (80, 66)).astype(np.uint8)
    parts: list[Callable[[Any], Any]] = [lambda a: a[::2, 1::3], lambda a: a.T, lambda a: a[3:, 5:].T]
    for part in parts:
        x: Array = part(large)
        expected = apart(x, axis, FOURS[0])
        halves, back = on_gpu(np.zeros_like(expected)), on_gpu(np.zeros(x.shape, np.uint8))
        apart_and_together[1](part(on_gpu(large)), halves, back, shape=x.shape, axis=axis, dtype=FOURS[0])
        assert np.array_equal(codes(halves.cpu().numpy()), codes(expected))
        assert np.array_equal(back.cpu().numpy(), x)


@pytest.mark.parametrize("axis", [0, 1])
def test_computed_elements_are_put_together(axis: int) -> None:
    x = np.random.default_rng(2).integers(-4, 4, (26, 34)).astype(np.int32)
    doubled = 2 * x & 15
    even, odd = (doubled[(*[slice(None)] * axis, slice(first, None, 2))] for first in (0, 1))
    out = on_gpu(np.zeros(even.shape, np.uint8))
    together[1](on_gpu(x), out, shape=x.shape, axis=axis)
    assert np.array_equal(out.cpu().numpy(), even | odd << 4)


@pytest.mark.parametrize(("pairs", "columns"), [(1, 1), (3, 17), (32, 64), (50, 200)])
def test_values_of_rows_are_taken_apart_beside_rows(pairs: int, columns: int) -> None:
    arguments, expected = scaled(0, 2 * pairs, columns)
    given = [on_gpu(one) for one in arguments]
    scaled_rows[1](*given, rows=2 * pairs, columns=columns)
    for found, wanted in zip(given[3:], expected, strict=True):
        assert np.array_equal(found.cpu().numpy(), wanted)


SIZES = [(1, 1, 32), (33, 70, 96), (128, 256, 512), (300, 130, 1056)]


@pytest.mark.parametrize("dtype", [f32, bf16, f16], ids=str)
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_products_with_packed_weights(left: bool, dtype: DType) -> None:
    for sizes in SIZES:
        arguments, expected = packed_product(0, dtype, sizes, 32, left=left)
        rows, columns = expected.shape
        for m, n in ((32, 64), (64, 32)):
            given = [on_gpu(one) for one in arguments]
            run: Any = packed_left if left else packed_right
            run[-(-rows // m), -(-columns // n)](*given, m=m, n=n, k=32, group=32)
            check_product(given[3].cpu().numpy(), expected, dtype)


@pytest.mark.usefixtures("warp_specialization_here")
@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
@pytest.mark.parametrize("block", [(64, 64, 32), (128, 128, 64), (192, 64, 64)], ids=str)
def test_warp_groups_multiply_packed_weights(block: tuple[int, int, int], dtype: DType) -> None:
    m, n, k = block
    for sizes in ((64, 64, 64), (200, 136, 192), (512, 1000, 512)):
        arguments, expected = packed_product(1, dtype, sizes, k, left=True)
        grid = -(-expected.shape[0] // m), -(-expected.shape[1] // n)
        given, how = [on_gpu(one) for one in arguments], {"m": m, "n": n, "k": k, "group": k}
        # Rows of x, which is copied, begin at multiples of 16 bytes; those of packed weights may lie anyhow.
        assert b"wgmma.mma_async" in program_of(packed_left[grid], *given, **how).ptx
        packed_left[grid](*given, **how)
        found = given[3].cpu().numpy()
        check_product(found, expected, dtype)
        packed_left[grid](*given, **how)
        assert given[3].cpu().numpy().tobytes() == found.tobytes()


@pytest.mark.parametrize("dtype", [bf16, f16], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_packed_results(axis: int, dtype: DType) -> None:
    for sizes, (m, n) in (((128, 64, 64), (64, 64)), ((130, 260, 200), (128, 128)), ((34, 18, 40), (16, 32))):
        arguments, expected = packed_results(0, dtype, sizes, axis)
        given = [on_gpu(one) for one in arguments]
        packed_result[-(-sizes[0] // m), -(-sizes[1] // n)](*given, m=m, n=n, k=64, axis=axis)
        assert np.array_equal(given[2].cpu().numpy(), expected)
