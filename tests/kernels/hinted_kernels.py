"""Kernels whose loads, stores and loops have hints: for tests of their code, and on GPUs."""

from __future__ import annotations

from typing import Any

from tessera import kernel, tile


@kernel
def scaled(x: Any, y: Any, *, memory: str | None = None, vector: int | None = None, stored: int | None = None):
    at = (tile.program_id(0) * 16, 0)
    tile.store(y, tile.load(x, at=at, shape=(16, 64), memory=memory, vector=vector) * 2.0, at=at, vector=stored)


@kernel
def rows_added(x: Any, y: Any, *, prefetch: int | None = None, ahead: int | None = None, memory: str | None = None):
    total, row = tile.zeros((8, 32)), tile.program_id(0) * 8
    for at in tile.range(0, x.shape[1], 32, prefetch=ahead):
        total = total + tile.load(x, at=(row, at), shape=(8, 32), prefetch=prefetch, memory=memory)
    tile.store(y, total, at=(row, 0))


@kernel
def product(a: Any, b: Any, c: Any, *, prefetch: int | None = None, memory: str | None = None, m: int = 16):
    acc = tile.zeros((m, 16))
    for k in tile.range(0, a.shape[1], 16):
        left = tile.load(a, at=(0, k), shape=(m, 16), memory=memory, prefetch=prefetch)
        acc = tile.dot(left, tile.load(b, at=(k, 0), shape=(16, 16)), acc)
    tile.store(c, acc, at=(0, 0))


@kernel
def blocks_multiplied(a: Any, b: Any, c: Any, *, prefetch: int | None = None, memory: str | None = None):
    acc = tile.zeros((64, 64))
    for k in tile.range(0, a.shape[1], 64, prefetch=prefetch):
        left = tile.load(a, at=(0, k), shape=(64, 64), memory=memory)
        acc = tile.dot(left, tile.load(b, at=(k, 0), shape=(64, 64)), acc)
    tile.store(c, tile.cast(acc, c.dtype), at=(0, 0))
