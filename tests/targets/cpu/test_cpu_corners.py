"""Checks kernels with shapes that fit no register: one row, one column, no axes, gaps, and operands in place."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from cpu_runs import MACHINES, Array, at_cpu_level, at_tile_level, lowered

from tessera import f32, i32, kernel, tile

bf16 = ml_dtypes.bfloat16
SHAPES = [(1, 1), (1, 7), (9, 1), (4, 5), (17, 20)]


def array(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


def check(program: Any, given: list[Any], static: dict[str, Any], *, level: str, tolerance: float = 0.0) -> None:
    """The same at both levels: small whole numbers, so mostly bit by bit."""
    made = program[1].lower(*given, **static)
    expected = at_tile_level(made.module, made.name, given)
    module = lowered(made.module, level)
    for seed in (None, 5):
        found = at_cpu_level(module, made.name, given, seed)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.astype(np.float64), other.astype(np.float64), rtol=tolerance)


@kernel
def matmul(x: Any, w: Any, y: Any, *, m: int, n: int, k: int):
    start = tile.full((m, n), 1.0)
    tile.store(
        y, tile.dot(tile.load(x, at=(0, 0), shape=(m, k)), tile.load(w, at=(0, 0), shape=(k, n)), start), at=(0, 0)
    )


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, bf16])
def test_products_of_all_sizes(level: str, dtype: Any) -> None:
    for m, n, k in product((1, 17), (1, 17, 33), (1, 24)):
        given = [array(m, k, dtype=dtype), array(k, n, dtype=dtype), np.zeros((m, n), np.float32)]
        check(matmul, given, {"m": m, "n": n, "k": k}, level=level)


@kernel
def chained(x: Any, y: Any, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    square = tile.dot(rows, rows.T, tile.zeros((m, m), f32))
    small = tile.cast(tile.minimum(tile.abs(square), 3.0), x.dtype)
    once = tile.dot(small, rows, tile.zeros((m, n), f32))
    again = tile.dot(small, tile.cast(tile.minimum(once, 2.0), x.dtype), once)
    tile.store(y, again, at=(0, 0))


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, bf16])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_right_operands_that_were_computed(level: str, dtype: Any, m: int, n: int) -> None:
    check(chained, [array(m, n, dtype=dtype), np.zeros((m, n), np.float32)], {"m": m, "n": n}, level=level)


@kernel
def powers(x: Any, w: Any, y: Any, *, m: int, k: int):
    current = tile.load(x, at=(0, 0), shape=(m, k))
    for _ in tile.range(0, 3, 1):
        right = tile.load(w, at=(0, 0), shape=(k, k))
        current = tile.cast(tile.dot(current, right, tile.zeros((m, k), f32)), x.dtype)
    tile.store(y, current, at=(0, 0))


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, bf16])
@pytest.mark.parametrize(("m", "k"), [(1, 24), (5, 8), (17, 33)])
def test_a_left_operand_that_a_loop_carries(level: str, dtype: Any, m: int, k: int) -> None:
    given = [array(m, k, dtype=dtype), (array(k, k) / 8).astype(dtype), np.zeros((m, k), dtype)]
    check(powers, given, {"m": m, "k": k}, level=level, tolerance=0.05 if dtype is bf16 else 1e-5)


@kernel
def carried(x: Any, y: Any, z: Any, *, m: int, n: int):
    first = tile.load(x, at=(0, 0), shape=(m, n))
    second = first * 2.0 + 1.0
    for _ in tile.range(0, 3, 1):
        first, second = second, first + second
    tile.store(y, first, at=(0, 0))
    tile.store(z, second, at=(0, 0))


@kernel
def transposed(x: Any, y: Any, *, n: int):
    current = tile.exp(tile.load(x, at=(0, 0), shape=(n, n)) * 0.0)
    for _ in tile.range(0, 2, 1):
        current = current.T + tile.load(x, at=(0, 0), shape=(n, n)) + tile.full((n, n), 1.0)
    tile.store(y, current, at=(0, 0))


@kernel
def folded(x: Any, y: Any, z: Any, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    tile.store(y, tile.sum(rows * rows, 0), at=(0,))
    tile.store(z, tile.max(tile.exp(rows * 0.0) + rows, 0), at=(0,))


@kernel
def columns(x: Any, y: Any, z: Any, *, m: int, n: int):
    weights = tile.exp(tile.load(x, at=(0, 0), shape=(m, n)) * 0.0) + tile.load(x, at=(0, 0), shape=(m, n))
    sums = tile.sum(weights.T)
    tile.store(z, sums, at=(0,))
    tile.store(y, weights.T * sums[:, None] + weights.T, at=(1, 0))


@kernel
def outer(x: Any, y: Any, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    down, across = tile.sum(rows, keepdims=True), tile.sum(rows, 0, keepdims=True)
    tile.store(y, tile.dot(down, across, rows) + down * across, at=(0, 0))


@kernel
def branches(x: Any, y: Any, which: int, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    if which > 2:
        made, sums = rows * 2.0, tile.sum(rows)
    else:
        made, sums = rows + 1.0, tile.max(rows)
    tile.store(y, made + sums[:, None], at=(0, 0))


@pytest.mark.quick(2)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_tiles_of_one_row_and_one_column(level: str, m: int, n: int) -> None:
    x, y, z, static = array(m, n), np.zeros((m, n), np.float32), np.zeros((m, n), np.float32), {"m": m, "n": n}
    check(carried, [x, y, z], static, level=level)
    check(transposed, [array(n, n), np.zeros((n, n), np.float32)], {"n": n}, level=level)
    check(folded, [x, np.zeros(n, np.float32), np.zeros(n, np.float32)], static, level=level)
    # The view is one row short: what hangs over runs with tests.
    check(columns, [x, np.zeros((n, m), np.float32), np.zeros(n, np.float32)], static, level=level)
    check(outer, [x, y], static, level=level)
    for which in (1, 5):
        check(branches, [x, y, which], static, level=level)


@kernel
def numbers(x: Any, y: Any, z: Any, *, n: int):
    total, top = tile.full((), 0.0), tile.full((1,), -tile.INF)
    for at in tile.range(0, x.shape[0], n):
        part = tile.load(x, at=(at,), shape=(n,))
        total = total + tile.sum(part)
        top = tile.maximum(top, tile.max(part)[None])
    tile.store(y, total, at=())
    tile.store(z, top, at=(0,))


@kernel
def of_sums(x: Any, y: Any, *, m: int, n: int):
    sums = tile.sum(tile.load(x, at=(0, 0), shape=(m, n)))
    tile.store(y, sums - tile.sum(sums)[None], at=(0,))


@pytest.mark.parametrize("level", MACHINES)
def test_tiles_without_axes(level: str) -> None:
    for n in (1, 5, 16):
        check(numbers, [array(23), np.zeros((), np.float32), np.zeros(1, np.float32)], {"n": n}, level=level)
    for m, n in SHAPES:
        check(of_sums, [array(m, n), np.zeros(m, np.float32)], {"m": m, "n": n}, level=level)


@kernel
def prefix(x: Any, y: Any, length: int, *, m: int, n: int):
    weights = tile.exp(tile.load(x, at=(0, 0), shape=(m, n)) * 0.0)
    live = tile.iota((m, n), 1, dtype=i32) < length
    tile.store(y, tile.sum(tile.where(live, weights, 0.0)), at=(0,))


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("length", [-1, 0, 1, 19, 48, 100])
def test_lengths_in_narrow_numbers(level: str, length: int) -> None:
    check(prefix, [array(8, 48), np.zeros(8, np.float32), length], {"m": 8, "n": 48}, level=level)


@kernel
def rewritten(x: Any, y: Any, *, m: int, n: int):
    rows = tile.load(x, at=(0, 0), shape=(m, n))
    tile.store(y, rows * 2.0, at=(0, 0))
    tile.store(y, tile.load(y, at=(0, 1), shape=(m, n)) + rows, at=(0, 0))
    tile.atomic_add(y, rows, at=(1, 0))


@pytest.mark.quick
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_memory_that_is_written_and_read(level: str, m: int, n: int) -> None:
    check(rewritten, [array(m, n), np.zeros((m, n), np.float32)], {"m": m, "n": n}, level=level)
