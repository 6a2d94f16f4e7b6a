"""Right operands of 8 bits with rows along k, in warp-specialized kernels: they are transposed on their way.

Attention in 8 bits against float64 and against the same rounding in NumPy, and products of matrices against the
interpreter: odd sizes, causal, with one and more consumers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import warp_specialized_kernels as cases

import tessera as ts
from tessera import DType, Schedule, accum, bf16, f16, f32, knobs, stdlib
from tessera.bench.cuda.kernel_texts import program_of
from tessera.dtypes.types import i8, i32, u8, u32

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("warp_specialization_here")]
Array = np.ndarray[Any, np.dtype[Any]]
FAST = ts.f8e4m3 @ accum(f16)
ERROR = 0.035
"""Of all of a result, in parts of it: weights have 4 digits."""


def numbers(dtype: DType, *shape: int, seed: int = 0) -> ts.Tensor:
    chance = np.random.default_rng(seed)
    if dtype.is_integer:
        low, high = int(dtype.min_value), int(dtype.max_value)
        return ts.asarray(chance.integers(low, high + 1, shape).astype(dtype.storage))
    return ts.asarray(chance.standard_normal(shape).astype(np.float32)).to(dtype)


def wide(x: ts.Tensor) -> Array:
    return x.cpu().to(f32).numpy().astype(np.float64)


def error_of(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / max(1e-9, float(np.linalg.norm(expected))))


def attended(given: list[ts.Tensor], *, causal: bool, rounds: bool) -> Array:
    """In float64; weights are rounded to 8 bits or not."""
    q, k, v = map(wide, given)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[1], k.shape[1], dtype=np.bool_), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    if rounds:
        weights = wide(ts.asarray(weights.astype(np.float32)).to(ts.f8e4m3))
    return weights @ v / total


def run(given: list[ts.Tensor], block: tuple[int, int] | None, *, causal: bool) -> Array:
    made: Any = stdlib.narrow_attention
    made = made if block is None else made.with_schedule(Schedule(block=block))
    static = {"mask": stdlib.causal} if causal else {}
    there = [x.cuda() for x in given]
    assert b"wgmma.mma_async" in program_of(made, *there, **static).ptx
    found = made(*there, **static)
    assert found.dtype is bf16
    again = made(*there, **static)
    assert wide(found).tobytes() == wide(again).tobytes()
    return wide(found)


SIZES = [
    (2, 200, 300, 128),
    (1, 65, 1, 128),
    (3, 1000, 1000, 128),
    (2, 129, 257, 64),
    (1, 1, 40, 128),
    (1, 70, 333, 96),
]
"""Heads, queries, keys, width."""
BLOCKS = {
    ts.f8e4m3: [(128, 64), (64, 64), (128, 96), (128, 96), None, None],
    FAST: [(128, 128), (64, 64), (64, 128), (128, 96), None, None],
}
"""Accumulators that are promoted take twice the registers."""


@pytest.mark.parametrize("dtype", [ts.f8e4m3, FAST], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(dtype: DType, causal: bool) -> None:
    for index, (heads, queries, keys, width) in enumerate(SIZES):
        q = numbers(ts.f8e4m3, heads, queries, width)
        k, v = (numbers(one, heads, keys, width, seed=seed) for seed, one in ((1, ts.f8e4m3), (2, dtype)))
        given = [q, k, v]
        exact, rounded = (attended(given, causal=causal, rounds=rounds) for rounds in (False, True))
        for block in (BLOCKS[dtype][index], (128, 64)):
            found = run(given, block, causal=causal)
            assert np.isfinite(found).all()
            off, usual = error_of(found, exact), error_of(rounded, exact)
            # Where a maximum lags behind, weights are rounded elsewhere.
            assert off < max(1e-2, min(ERROR, 1.25 * usual)), f"{heads, queries, keys, width} {block}: {off:.3g}"


def test_large_scores_and_hidden_rows() -> None:
    """Weights of one key in each row; maxima that rise in every block stay below what 8 bits hold."""
    q, k, v = (numbers(ts.f8e4m3, 1, 512, 128, seed=seed) for seed in range(3))
    rising = ts.asarray((wide(k) * np.linspace(0, 16, 512)[:, None]).astype(np.float32)).to(ts.f8e4m3)
    for given in ([q, rising, v], [ts.asarray((8 * wide(q)).astype(np.float32)).to(ts.f8e4m3), k, v]):
        for causal in (False, True):
            found = run(given, (128, 64), causal=causal)
            assert error_of(found, attended(given, causal=causal, rounds=False)) < ERROR


RESULTS = {ts.f8e4m3: f32, FAST: bf16, i8: i32, u8: u32}
TOLERANCES = {ts.f8e4m3: 1e-3, FAST: 1.2e-2}


@pytest.mark.parametrize("dtype", RESULTS, ids=str)
def test_dots_whose_right_operand_is_transposed(dtype: DType) -> None:
    for seed, (m, n, k, block) in enumerate(
        [(65, 80, 48, (64, 64, 64)), (131, 272, 144, (128, 128, 128)), (300, 1008, 1040, (128, 96, 64))]
    ):
        size, result = cases.Product(m, n, k, block), RESULTS[dtype]
        a, b = numbers(dtype, m, k, seed=seed), numbers(dtype, k, n, seed=seed + 1)
        c = ts.full((m, n), 77, result)
        kernel = size.on(cases.plain_narrow_gemm)
        there = [x.cuda() for x in (a, b, c)]
        assert b"wgmma.mma_async" in program_of(kernel, *there).ptx
        kernel(*there)
        with knobs.interpret.using(True):
            kernel(a, b, c)
        found, expected = (x.cpu().to(result if result.is_integer else f32).numpy() for x in (there[2], c))
        if dtype.is_integer:
            np.testing.assert_array_equal(found, expected)
        else:
            off = np.abs(found - expected) / np.abs(expected).max(-1, keepdims=True)
            assert off.max() < TOLERANCES[dtype], f"{dtype} {size}: off by {off.max():.2g}"
