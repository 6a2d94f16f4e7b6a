"""Kernels that take bytes apart into elements of four bits, with what NumPy makes of the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tessera import f32, i4, i8, kernel, tile, u4
from tessera.dtypes.types import DType

Array = np.ndarray[Any, np.dtype[Any]]


@kernel
def apart_and_together(x: Any, halves: Any, back: Any, *, shape: Any, axis: int, dtype: DType):
    """The halves of bytes as they are, and the bytes that are made of them again."""
    start = (0,) * len(shape)
    whole = tile.load(x, at=start, shape=shape)
    found = tile.unpack(whole, dtype, axis)
    tile.store(halves, found, at=start)
    tile.store(back, tile.pack(found, axis, whole.dtype), at=start)


@kernel
def together(x: Any, out: Any, *, shape: Any, axis: int):
    """Bytes of elements that were computed."""
    found = tile.load(x, at=(0,) * len(shape), shape=shape)
    tile.store(out, tile.pack(tile.cast(found + found, i4), axis, out.dtype), at=(0,) * len(shape))


@kernel
def packed_right(x: Any, packed: Any, scales: Any, out: Any, *, m: int, n: int, k: int, group: int):
    """x[M, K] times weights of four bits, [K / 2, N], scaled [K / group, N]."""
    row, column = tile.program_id(0) * m, tile.program_id(1) * n
    acc = tile.zeros((m, n))
    for at in tile.range(0, x.shape[1], k):
        weights = tile.unpack(tile.load(packed, at=(at // 2, column), shape=(k // 2, n)), i4, axis=0)
        scale = tile.load(scales, at=(at // group, column), shape=(1, n))
        right = tile.cast(tile.cast(weights, f32) * scale, x.dtype)
        acc = tile.dot(tile.load(x, at=(row, at), shape=(m, k)), right, acc)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


@kernel
def packed_left(packed: Any, scales: Any, x: Any, out: Any, *, m: int, n: int, k: int, group: int):
    """Weights of four bits, [N, K / 2], scaled [N, K / group], times x[M, K] transposed."""
    row, column = tile.program_id(0) * m, tile.program_id(1) * n
    acc = tile.zeros((m, n))
    for at in tile.range(0, x.shape[1], k):
        weights = tile.unpack(tile.load(packed, at=(row, at // 2), shape=(m, k // 2)), i4)
        scale = tile.load(scales, at=(row, at // group), shape=(m, 1))
        left = tile.cast(tile.cast(weights, f32) * scale, x.dtype)
        acc = tile.dot(left, tile.load(x, at=(column, at), shape=(n, k)).T, acc)
    tile.store(out, tile.cast(acc, out.dtype), at=(row, column))


@kernel
def packed_result(a: Any, b: Any, out: Any, *, m: int, n: int, k: int, axis: int):
    """a·b, clamped to four bits, two neighbours along an axis to a byte."""
    row, column = tile.program_id(0) * m, tile.program_id(1) * n
    acc = tile.zeros((m, n))
    for at in tile.range(0, a.shape[1], k):
        acc = tile.dot(tile.load(a, at=(row, at), shape=(m, k)), tile.load(b, at=(at, column), shape=(k, n)), acc)
    tile.store(out, tile.pack(tile.cast(acc, u4), axis), at=(row // (2 - axis), column // (1 + axis)))


def packed_results(seed: int, dtype: DType, sizes: tuple[int, int, int], axis: int) -> tuple[list[Array], Array]:
    """The arguments of `packed_result`, and what it leaves in the last one. Sums are exact."""
    random, (m, n, k) = np.random.default_rng(seed), sizes
    a, b = random.integers(0, 3, (m, k)).astype(np.float32), random.integers(-1, 2, (k, n)).astype(np.float32)
    sums = np.clip(a @ b, 0, 15).astype(np.uint8)
    low, high = (sums[(*[slice(None)] * axis, slice(half, None, 2))] for half in (0, 1))
    expected: Array = low | high << 4
    return [a.astype(dtype.storage), b.astype(dtype.storage), np.zeros_like(expected)], expected


@kernel
def scaled_rows(x: Any, factors: Any, more: Any, out: Any, sums: Any, packed: Any, *, rows: int, columns: int):
    """Rows times factors of four bits, plus elements of which two rows are packed; their sums, and those packed."""
    factor = tile.cast(tile.unpack(tile.load(factors, at=(0,), shape=(rows // 2,)), i4), f32)
    added = tile.unpack(tile.load(more, at=(0, 0), shape=(rows // 2, columns)), u4, 0)
    found = tile.load(x, at=(0, 0), shape=(rows, columns)) * factor[:, None] + tile.cast(added, f32)
    total = tile.sum(found)
    tile.store(out, found * total[:, None], at=(0, 0))
    tile.store(sums, total, at=(0,))
    tile.store(packed, tile.pack(tile.cast(total, u4), dtype=i8), at=(0,))


def scaled(seed: int, rows: int, columns: int) -> tuple[list[Any], list[Array]]:
    """The arguments of `scaled_rows`, and what it leaves in the last three."""
    random = np.random.default_rng(seed)
    x = random.integers(-3, 4, (rows, columns)).astype(np.float32)
    factors, more = (random.integers(0, 256, shape).astype(np.uint8) for shape in ((rows // 2,), (rows // 2, columns)))
    found = x * apart(factors, 0, i4).astype(np.float32)[:, None] + apart(more, 0, u4).astype(np.float32)
    total = found.sum(1)
    clamped = np.clip(total, 0, 15).astype(np.uint8)
    expected = [found * total[:, None], total, (clamped[::2] | clamped[1::2] << 4).view(np.int8)]
    return [x, factors, more, *map(np.zeros_like, expected)], expected


def apart(x: Array, axis: int, dtype: DType) -> Array:
    """What `tile.unpack` means, number by number."""
    axis %= x.ndim
    found = np.zeros((*x.shape[:axis], 2 * x.shape[axis], *x.shape[axis + 1 :]), dtype.storage)
    for place in np.ndindex(*found.shape):
        byte = int(x[(*place[:axis], place[axis] // 2, *place[axis + 1 :])]) % 256
        code = byte // 16 if place[axis] % 2 else byte % 16
        found[place] = np.array(code, np.uint8).view(dtype.storage)
    return found


def codes(x: Array) -> Array:
    return np.ascontiguousarray(x).view(np.uint8)


def packed_product(
    seed: int, dtype: DType, sizes: tuple[int, int, int], group: int, *, left: bool = False
) -> tuple[list[Array], Array]:
    """The arguments of `packed_right`, or of `packed_left`, and the product, which is [N, M] for that."""
    random, (m, n, k) = np.random.default_rng(seed), sizes
    weights = random.integers(-8, 8, (k, n))
    packed = (weights[::2] & 15 | (weights[1::2] & 15) << 4).astype(np.uint8)
    scales: Array = (2.0 ** random.integers(-3, 2, (-(-k // group), n))).astype(np.float32)
    x: Array = random.standard_normal((m, k)).astype(dtype.storage)
    expected = x.astype(np.float64) @ (weights * np.repeat(scales.astype(np.float64), group, 0)[:k])
    if left:
        turned = [np.ascontiguousarray(each.T) for each in (packed, scales)]
        return [*turned, x, np.full((n, m), 7, dtype.storage)], expected.T
    return [x, packed, scales, np.full((m, n), 7, dtype.storage)], expected


def check_product(found: Array, expected: Array, dtype: DType) -> None:
    """Scales are powers of two, so that weights are exact: what is left is the rounding of sums, and of the result."""
    tolerance = {32: 1e-5, 16: 1e-2}[dtype.bits]
    assert np.abs(found.astype(np.float64) - expected).max() <= tolerance * max(1.0, np.abs(expected).max())
