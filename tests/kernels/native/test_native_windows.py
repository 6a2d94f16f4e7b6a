"""Masks that leave out columns on both sides, as machine code: whole numbers, so that every bit must be right."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from odd_arrays import MACHINES

from tessera import Schedule, kernel, knobs, tile

SIZES = st.integers(1, 400)


@kernel
def windowed(q: Any, k: Any, v: Any, before: int, behind: int):
    """Sums over the keys near each query."""
    here = tile.context()
    queries, acc = tile.load(q), tile.zeros((here.m, here.d))
    top, total = tile.full((here.m,), -tile.INF), tile.zeros((here.m,))
    for block in tile.range_n(k.shape, here.n):
        rows, cols = tile.row_index(), tile.col_index(block)
        near = (rows - cols < before) & (cols - rows < behind) & (cols < k.shape[0])
        scores = tile.dot(queries, tile.load(k, block).T)
        top = tile.maximum(top, tile.max(tile.where(near, scores, -tile.INF)))
        weights = tile.where(near, scores, 0.0)
        total = total + tile.sum(weights)
        acc = tile.dot(tile.cast(weights, v.dtype), tile.load(v, block), acc)
    return acc, top, total


def check(level: str, dtype: Any, block: tuple[int, int], queries: int, keys: int, before: int, behind: int) -> None:
    random = np.random.default_rng(queries)
    q, k, v = (random.integers(-1, 2, (size, 16)).astype(dtype) for size in (queries, keys, keys))
    run = windowed.with_schedule(Schedule(block=block))
    with knobs.cpu_level.using(level), knobs.backend.using("cpu"):
        found = run(q, k, v, before, behind)
    rows, cols = np.arange(queries)[:, None], np.arange(keys)
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    near = (rows - cols < before) & (cols - rows < behind)
    weights = np.where(near, scores, 0)
    meant = weights @ v.astype(np.float64), np.where(near, scores, -np.inf).max(1), weights.sum(1)
    for one, other in zip(found, meant, strict=True):
        np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.quick(1)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@settings(max_examples=4)
@given(st.sampled_from([(64, 128), (32, 256), (24, 64), (64, 512)]), SIZES, SIZES, SIZES, st.integers(-100, 400))
@example((64, 128), 300, 300, 100, 1)
@example((64, 256), 400, 400, 30, 30)
@example((32, 128), 257, 391, 1, 400)
def test_a_window_on_both_sides(
    level: str, dtype: Any, block: tuple[int, int], queries: int, keys: int, before: int, behind: int
) -> None:
    check(level, dtype, block, queries, keys, before, behind)
