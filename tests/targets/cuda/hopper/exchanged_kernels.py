"""Products whose operands may lie either way in memory."""

from __future__ import annotations

from typing import Any

from tessera import f32, kernel, tile


@kernel
def product(a: Any, b: Any, c: Any) -> None:
    """a·b."""
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    total = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(k, column), shape=(here.k, here.n))
        total = tile.dot(left, right, total)
    tile.store(c, tile.cast(total, c.dtype), at=(row, column))


@kernel
def linear(a: Any, b: Any, c: Any) -> None:
    """a·bᵀ."""
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    total = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        right = tile.load(b, at=(column, k), shape=(here.n, here.k))
        total = tile.dot(left, right.T, total)
    tile.store(c, tile.cast(total, c.dtype), at=(row, column))


@kernel
def gradient(a: Any, b: Any, c: Any) -> None:
    """aᵀ·b."""
    here = tile.context()
    row, column = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    total = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[0], here.k):
        left = tile.load(a, at=(k, row), shape=(here.k, here.m))
        right = tile.load(b, at=(k, column), shape=(here.k, here.n))
        total = tile.dot(left.T, right, total)
    tile.store(c, tile.cast(total, c.dtype), at=(row, column))


@kernel
def products(a: Any, b: Any, c: Any) -> None:
    """a·b, one matrix after the other."""
    here = tile.context()
    which, row, column = tile.program_id(2), tile.program_id(0) * here.m, tile.program_id(1) * here.n
    total = tile.zeros((here.m, here.n), f32)
    for k in tile.range(0, a.shape[2], here.k):
        left = tile.load(a[which], at=(row, k), shape=(here.m, here.k))
        right = tile.load(b[which], at=(k, column), shape=(here.k, here.n))
        total = tile.dot(left, right, total)
    tile.store(c[which], tile.cast(total, c.dtype), at=(row, column))
