"""Rows that no store writes are left out where nothing else needs them; right sides of any strides are packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cpu_runs import Array, at_cpu_level, at_tile_level, lowered

import tessera as ts
from tessera import f32, kernel, tile
from tessera.targets import text

LEVELS = ["neon", "amx"]


def array(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(dtype)


@kernel
def weighted(x: Any, w: Any, y: Any, *, m: int, n: int):
    """Two products, a softmax between them, in a loop that carries sums."""
    here = tile.program_id(0) * m
    rows = tile.load(x, at=(here, 0), shape=(m, n))
    sums = tile.zeros((m, n), f32)
    for _ in tile.range(2):
        scores = tile.dot(rows, tile.load(w, at=(0, 0), shape=(n, n)), tile.zeros((m, n), f32))
        weights = tile.exp(scores - tile.max(scores, axis=1, keepdims=True))
        sums = tile.dot(weights, tile.load(w, at=(0, 0), shape=(n, n)), sums)
    tile.store(y, sums, at=(here, 0))


@kernel
def shared(x: Any, y: Any, total: Any, *, m: int, n: int):
    """Rows that are not stored count in a sum over all of them."""
    here = tile.program_id(0) * m
    rows = tile.exp(tile.load(x, at=(here, 0), shape=(m, n)))
    tile.store(total, tile.sum(rows, axis=0), at=(0,))
    tile.store(y, rows, at=(here, 0))


def written(made: Any) -> str:
    return text.write(made)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rows", [1, 6, 31])
def test_results_are_the_same(level: str, rows: int) -> None:
    given = [array(rows, 16), array(16, 16), np.zeros((rows, 16), np.float32)]
    made = weighted[-(-rows // 32)].lower(*given, m=32, n=16)
    expected = at_tile_level(made.module, made.name, given)
    module = lowered(made.module, level)
    for seed in (None, 3):
        for one, other in zip(at_cpu_level(module, made.name, given, seed), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_groups_of_rows_end_where_stores_do() -> None:
    given = [array(5, 16), array(16, 16), np.zeros((5, 16), np.float32)]
    made = weighted[1].lower(*given, m=32, n=16)
    lines = written(lowered(made.module, "neon")).splitlines()
    (count,) = [line.split(" = ")[0].strip() for line in lines if "arith.minsi" in line][:1]
    # Two products are in a nest of six rows at a time, and of two that are left.
    ends = [line.split(" = ")[0].strip() for line in lines if "arith.minsi" in line and f", {count} " in line]
    assert any(f"to {end} step" in line for end in ends for line in lines)
    assert any("arith.cmpi slt" in line and f", {count} " in line for line in lines)


def test_rows_that_others_need_are_computed() -> None:
    given = [array(5, 16), np.zeros((5, 16), np.float32), np.zeros(16, np.float32)]
    made = shared[1].lower(*given, m=8, n=16)
    expected = at_tile_level(made.module, made.name, given)
    for one, other in zip(at_cpu_level(lowered(made.module, "neon"), made.name, given, 1), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    # Of rows that are not there, zeros are loaded, and their exponentials are ones.
    assert (expected[2] >= 3).all()


@ts.jit
def times(x: Any, w: Any) -> Any:
    return x @ w


@pytest.mark.quick(1)
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.f16])
def test_right_sides_of_any_strides(dtype: ts.DType) -> None:
    for rows, depth, columns in ((1, 33, 50), (9, 70, 129)):
        x, w = ts.randn((rows, depth), dtype, seed=1), ts.randn((columns, depth), dtype, seed=2)
        exact = x.numpy().astype(np.float64) @ w.numpy().astype(np.float64).T
        for right in (w.T, w.T.copy()):
            found = times(x, right).numpy().astype(np.float64)
            error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
            assert error <= {ts.f32: 2e-6, ts.bf16: 4e-3, ts.f16: 5e-4}[dtype]
