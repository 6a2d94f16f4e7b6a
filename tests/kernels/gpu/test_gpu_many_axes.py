"""Tiles of three axes on a GPU, and products with leading axes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from many_axes import CASES, SHAPE, Array, attention, changed, heads, product, products

import tessera as ts
from tessera.dtypes import types as dtypes

pytestmark = pytest.mark.gpu


def whole(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Small whole numbers: sums of products of them are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype.storage)


def run(kernel_: Any, *arguments: Array, **static: Any) -> Array:
    """The last array after a call with all of them on a GPU."""
    given = [ts.asarray(one).cuda() for one in arguments]
    kernel_(*given, **static)
    return given[-1].cpu().numpy()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64, dtypes.i32], ids=str)
def test_a_gpu_gives_what_numpy_gives(name: str, dtype: Any) -> None:
    how, reference = CASES[name]
    x = whole(SHAPE, dtype)
    expected = np.ascontiguousarray(reference(x)).astype(dtype.storage)
    found = run(changed[1], x, np.full(expected.shape, 77, expected.dtype), shape=SHAPE, how=how)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["elementwise", "sum 1", "turned 021", "products", "rows of products"])
def test_arrays_may_be_smaller_than_their_tile(name: str) -> None:
    how, reference = CASES[name]
    x = whole((3, 7, 13), dtypes.f32)
    padded = np.zeros(SHAPE, np.float32)
    padded[:3, :7, :13] = x
    expected = np.asarray(reference(padded))
    found = run(changed[1], x, np.full(expected.shape, 77, np.float32), shape=SHAPE, how=how)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64, dtypes.i8], ids=str)
@pytest.mark.parametrize("sizes", [(3, 13, 17, 21), (4, 16, 32, 32), (7, 40, 33, 24), (5, 1, 9, 3)], ids=str)
def test_products_of_any_sizes(sizes: tuple[int, int, int, int], dtype: Any) -> None:
    b, m, k, n = sizes
    x, w = whole((b, m, k), dtype), whole((b, k, n), dtype, 1)
    total = np.int32 if dtype is dtypes.i8 else np.float64 if dtype is dtypes.f64 else np.float32
    block = -(-m // 16) * 16
    grid, how = -(-b // 2), {"batch": 2, "m": block, "k": 16, "n": 32}
    found = run(products[grid], x, w, np.zeros((b, m, n), total), **how)
    np.testing.assert_array_equal(found, x.astype(np.float64) @ w.astype(np.float64))


@pytest.mark.parametrize(("batch", "m", "n"), [(1, 128, 128), (2, 64, 64), (4, 64, 64), (2, 128, 64)])
@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=str)
def test_products_of_many_rows(dtype: Any, batch: int, m: int, n: int) -> None:
    """As large as warp groups take them: where they do not, the portable path is right as well."""
    x, w = whole((6, m, 192), dtype), whole((6, 192, n), dtype, 1)
    found = run(products[-(-6 // batch)], x, w, np.zeros((6, m, n), np.float32), batch=batch, m=m, k=64, n=n)
    np.testing.assert_array_equal(found, x.astype(np.float64) @ w.astype(np.float64))


@pytest.mark.parametrize(("left", "right"), [((3, 16, 32), (32, 8)), ((16, 32), (3, 32, 8)), ((3, 16, 32), (1, 32, 8))])
def test_an_operand_goes_with_all_of_the_other(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, w = whole(left, dtypes.f16), whole(right, dtypes.f16, 1)
    found = run(product[1], x, w, np.zeros((3, 16, 8), np.float32), left=left, right=right)
    np.testing.assert_array_equal(found, x.astype(np.float64) @ w.astype(np.float64))


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f16], ids=str)
def test_attention_of_several_heads(dtype: Any) -> None:
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal(shape).astype(dtype.storage) for shape in ((3, 13, 16), (3, 29, 16), (3, 29, 16)))
    found = run(heads[1], q, k, v, np.zeros((3, 13, 16), np.float32), h=4, m=16, n=16, d=16)
    np.testing.assert_allclose(found, attention(q, k, v), rtol=2e-2, atol=5e-3)
