"""Kernels in which masks leave out columns that other rows need: as machine code and in the interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from odd_arrays import MACHINES

from tessera import bf16, kernel, knobs, tile

M, N, D = 64, 128, 32
LARGEST = 2**63 - 1
RANGES = [(64, 128), (70, 100), (0, 60), (0, 1), (128, 128), (0, 128)]


def scores(q: Any, k: Any, rows: int = M) -> Any:
    return tile.dot(tile.load(q, at=(0, 0), shape=(rows, D)), tile.load(k, at=(0, 0), shape=(N, D)).T)


def seen(lo: Any, hi: Any, rows: int = M) -> Any:
    cols = tile.iota((rows, N), 1)
    return (cols >= lo) & (cols < hi)


@kernel
def transposed(y: Any, x: Any, lo: int, hi: int):
    kept = tile.where(seen(lo, hi, N), tile.load(x, at=(0, 0), shape=(N, N)), -1.0)
    tile.store(y, kept.T, at=(0, 0))


@kernel
def transposed_sum(y: Any, x: Any, lo: int, hi: int):
    kept = tile.where(seen(lo, hi, N), tile.load(x, at=(0, 0), shape=(N, N)), 0.0)
    tile.store(y, tile.sum(kept.T), at=(0,))


@kernel
def added_to_a_load(o: Any, q: Any, k: Any, v: Any, b: Any, lo: int, hi: int):
    weights = tile.cast(tile.where(seen(lo, hi), scores(q, k), 0.0), bf16)
    start = tile.load(b, at=(0, 0), shape=(M, N))
    tile.store(o, tile.dot(weights, tile.load(v, at=(0, 0), shape=(N, N)), start), at=(0, 0))


@kernel
def before_a_loop(o: Any, total: Any, q: Any, k: Any, b: Any, lo: int, hi: int):
    tile.store(total, tile.sum(tile.where(seen(lo, hi), scores(q, k), 0.0)), at=(0,))
    acc = tile.zeros((M, N))
    for _ in tile.range(0, 3):
        acc = acc + tile.load(b, at=(0, 0), shape=(M, N))
    tile.store(o, acc, at=(0, 0))


@kernel
def beside_a_store(o: Any, total: Any, other: Any, q: Any, k: Any, v: Any, b: Any, least: Any, lo: int, hi: int):
    masked = tile.where(seen(lo, hi), 30.0 * tile.tanh(scores(q, k) * (1 / 30)), -tile.INF)
    top = tile.maximum(tile.load(least, at=(0,), shape=(M,)), tile.max(masked))
    tile.store(other, tile.load(b, at=(0, 0), shape=(M, N)) + top[:, None], at=(0, 0))
    weights = tile.exp(masked - top[:, None])
    tile.store(total, tile.sum(weights), at=(0,))
    tile.store(o, tile.dot(tile.cast(weights, bf16), tile.load(v, at=(0, 0), shape=(N, D))), at=(0, 0))


@kernel
def summed_both_ways(o: Any, total: Any, q: Any, k: Any, v: Any, lo: int, hi: int):
    weights = tile.where(seen(lo, hi, N), scores(q, k, N), 0.0)
    tile.store(total, tile.sum(weights.T), at=(0,))
    tile.store(o, tile.dot(tile.cast(weights, bf16), tile.load(v, at=(0, 0), shape=(N, D))), at=(0, 0))


@kernel
def used_in_a_loop(o: Any, q: Any, k: Any, v: Any, lo: int, hi: int):
    weights = tile.cast(tile.where(seen(lo, hi), scores(q, k), 0.0), bf16)
    for d in tile.range(0, v.shape[1], 16):
        tile.store(o, tile.dot(weights, tile.load(v, at=(0, d), shape=(N, 16))), at=(0, d))


@kernel
def near(y: Any, x: Any, before: int, behind: int):
    rows, cols = tile.iota((M, N), 0), tile.iota((M, N), 1)
    kept = (rows - cols < before) & (cols - rows < behind)
    tile.store(y, tile.where(kept, tile.load(x, at=(0, 0), shape=(M, N)), 0.0), at=(0, 0))


def numbers(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


NARROW = ml_dtypes.bfloat16
Q, K = numbers(1, M, D, dtype=NARROW), numbers(2, N, D, dtype=NARROW)
WIDE, V = numbers(3, N, D, dtype=NARROW), numbers(4, N, D, dtype=NARROW)
SQUARE, B, X = numbers(5, N, N, dtype=NARROW), numbers(6, M, N), numbers(7, N, N)
CASES: dict[str, tuple[Any, list[tuple[int, ...]], list[Any]]] = {
    "transposed": (transposed, [(N, N)], [X]),
    "transposed sum": (transposed_sum, [(N,)], [X]),
    "added to a load": (added_to_a_load, [(M, N)], [Q, K, SQUARE, B]),
    "before a loop": (before_a_loop, [(M, N), (M,)], [Q, K, B]),
    "beside a store": (beside_a_store, [(M, D), (M,), (M, N)], [Q, K, V, B, np.full(M, -5, np.float32)]),
    "summed both ways": (summed_both_ways, [(N, D), (N,)], [WIDE, K, V]),
    "used in a loop": (used_in_a_loop, [(M, D)], [Q, K, V]),
}


def check(run: Any, shapes: list[tuple[int, ...]], given: list[Any], level: str) -> None:
    found: list[list[Any]] = []
    for backend in ("cpu", "interpreter"):
        outputs = [np.full(shape, 99, np.float32) for shape in shapes]
        with knobs.backend.using(backend), knobs.cpu_level.using(level):
            run[1](*outputs, *given)
        found.append(outputs)
    for native, meant in zip(*found, strict=True):
        # A weight between two numbers of bf16 may become either: a step of at most 2⁻⁸, twice in a sum.
        np.testing.assert_allclose(native, meant, rtol=2e-2, atol=2**-7)
        numbered = np.isfinite(meant)
        assert np.linalg.norm((native - meant)[numbered]) <= 4e-3 * np.linalg.norm(meant[numbered])


@pytest.mark.quick(3)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("case", CASES)
def test_columns_that_others_need(level: str, case: str) -> None:
    run, shapes, given = CASES[case]
    for lo, hi in RANGES:
        check(run, shapes, [*given, lo, hi], level)


@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize(
    ("before", "behind"),
    [(LARGEST, 3), (3, LARGEST), (-LARGEST - 1, 3), (5, -LARGEST - 1), (LARGEST, LARGEST), (2**62, -(2**62)), (9, 9)],
)
def test_numbers_far_beyond_all_positions(level: str, before: int, behind: int) -> None:
    check(near, [(M, N)], [B, before, behind], level)


def test_long_chains_of_ops_compile() -> None:
    @kernel
    def chained(y: Any, x: Any):
        rows = tile.load(x, at=(0, 0), shape=(4, 64))
        for _ in range(24):
            rows = tile.maximum(rows * 0.5, rows) - rows
        tile.store(y, rows + tile.sum(rows, axis=0)[None, :], at=(0, 0))

    check(chained, [(4, 64)], [B[:4, :64].copy()], MACHINES[0])
