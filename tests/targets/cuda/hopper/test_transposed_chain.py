"""Attention and products in 8 bits, from the tile DSL to warpgroups: right factors are turned on their way."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gpu_options import gpu
from ptx_checks import check_clean, count
from xdsl.dialects.builtin import ModuleOp

import tessera as ts
from tessera import DType, Schedule, accum, bf16, f16, f32, stdlib
from tessera.dtypes.types import i8, i32
from tessera.targets.cuda.compile import compile_lowered, lower_kernel
from tessera.targets.cuda.interpreter.hopper import run_warpgroups
from tessera.targets.cuda.ir import hopper, hopper_transpose, wgmma
from tessera.targets.cuda.ir.types import shared_type
from tessera.tile.calls.settings import Settings

consumers: Any = import_module("warp_specialized_kernels")

Array = np.ndarray[Any, np.dtype[Any]]
e4m3 = np.dtype(ml_dtypes.float8_e4m3fn)
FAST = ts.f8e4m3 @ accum(f16)


def attention(shape: tuple[int, int, int, int], block: tuple[int, int], dtype: DType, **static: Any) -> Any:
    heads, queries, keys, width = shape
    given = [ts.empty((heads, queries, width), ts.f8e4m3), ts.empty((heads, keys, width), ts.f8e4m3)]
    made = stdlib.narrow_attention.with_schedule(Schedule(block=block))
    return made.lower(*given, ts.empty((heads, keys, width), dtype), **static)


def lowered(made: Any) -> ModuleOp:
    return lower_kernel(made.module, made.name, gpu(row_aligned=range(4)))[0]


def truth(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[1], k.shape[1], dtype=np.bool_), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights @ v / weights.sum(-1, keepdims=True)


CASES = [
    ((1, 65, 70, 64), (64, 64), False),
    ((2, 130, 130, 64), (128, 32), True),
    ((1, 40, 1, 128), (64, 96), False),
    ((1, 200, 100, 96), (192, 64), True),
    ((1, 200, 200, 64), (192, 64), False),
]


@pytest.mark.quick(2)
@pytest.mark.parametrize("dtype", [ts.f8e4m3, FAST], ids=str)
@pytest.mark.parametrize(("shape", "block", "causal"), CASES)
def test_attention_means_the_same(
    shape: tuple[int, int, int, int], block: tuple[int, int], causal: bool, dtype: DType
) -> None:
    heads, queries, keys, width = shape
    made = attention(shape, block, dtype, **({"mask": stdlib.causal} if causal else {}))
    module = lowered(made)
    chance = np.random.default_rng(keys)
    q, k, v = (chance.standard_normal((heads, rows, width)).astype(e4m3) for rows in (queries, keys, keys))
    expected = truth(q, k, v, causal=causal)
    for seed in (0, 1):
        found = np.full((heads, queries, width), np.nan, ml_dtypes.bfloat16)
        run_warpgroups(module, made.name, [q, k, v, found], blocks=2, seed=seed)
        off = np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected)
        assert off < 0.035


def test_weights_meet_values_in_pairs() -> None:
    module = lowered(attention((2, 512, 512, 128), (128, 128), FAST))
    (first, *_) = (op for op in module.walk() if isinstance(op, hopper_transpose.TransposeSmemOp))
    assert shared_type(first.transposed).is_paired
    held = [op for op in module.walk() if isinstance(op, wgmma.WgmmaOp) and shared_type(op.b).is_paired]
    assert held
    program = compile_lowered(module, "narrow_attention")
    check_clean(program.ptx, "sm_90a")
    # Two agents, one that copies and one that turns; weights are packed two at a time, and nothing else is moved.
    assert program.threads == 512
    assert count(program.ptx, "setmaxnreg") == 3
    assert program.ptx.count("cvt.rn.satfinite.e4m3x2.f32") == 32 * len(_scores(module))


def _scores(module: ModuleOp) -> list[wgmma.WgmmaOp]:
    """Products of queries and keys: each is followed by weights."""
    found = [op for op in module.walk() if isinstance(op, wgmma.WgmmaOp)]
    return [op for op in found if not shared_type(op.b).is_paired]


BLOCKS = [(128, 128), (128, 64), (64, 64), (128, 96), (64, 128), (192, 64)]


@pytest.mark.quick(1, block=[(128, 96), (192, 64)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("block", BLOCKS)
def test_attention_assembles_clean(block: tuple[int, int], causal: bool) -> None:
    static = {"mask": stdlib.causal} if causal else {}
    module = lowered(attention((2, 512, 512, 128), block, FAST, **static))
    check_clean(compile_lowered(module, "narrow_attention").ptx, "sm_90a")


@pytest.mark.parametrize(("rows", "ordered"), [(192, True), (128, False)])
def test_three_agents_begin_one_after_the_other_beside_one_that_turns(rows: int, ordered: bool) -> None:
    module = lowered(attention((2, 512, 512, 128), (rows, 64), FAST))
    waits, passes = (
        sum(isinstance(op, kind) for op in module.walk()) for kind in (hopper.BarrierSyncOp, hopper.BarrierArriveOp)
    )
    assert any(isinstance(op, hopper_transpose.TransposeSmemOp) for op in module.walk())
    assert (waits > 0, passes > 0) == (ordered, ordered)


@pytest.mark.quick
@pytest.mark.parametrize(("dtype", "result"), [(ts.f8e4m3, f32), (FAST, bf16), (i8, i32)], ids=str)
@pytest.mark.parametrize("block", [(64, 64, 64), (128, 96, 32)])
def test_products_mean_the_same(dtype: DType, result: DType, block: tuple[int, int, int]) -> None:
    m, n, k = 130, 112, 80
    made = consumers.Product(m, n, k, block).on(consumers.plain_narrow_gemm)
    made = made.lower(*(ts.empty(*each) for each in (((m, k), dtype), ((k, n), dtype), ((m, n), result))))
    module = lower_kernel(made.module, made.name, gpu(row_aligned=range(3)))[0]
    (first, *_) = (op for op in module.walk() if isinstance(op, hopper_transpose.TransposeSmemOp))
    assert not shared_type(first.transposed).is_paired
    chance = np.random.default_rng(k)
    a, b = (chance.integers(-4, 5, shape).astype(dtype.storage) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), result.storage)
    run_warpgroups(module, made.name, [a, b, c], blocks=2, seed=0)
    expected = (a.astype(np.float64) @ b.astype(np.float64)).astype(result.storage)
    np.testing.assert_array_equal(c, expected)
    check_clean(compile_lowered(module, made.name).ptx, "sm_90a")


def test_which_blocks_are_chosen() -> None:
    hopper = Settings("cuda", "sm_90a", 3, frozenset(), deterministic=False, demanded=True)

    def block(dtype: DType) -> object:
        given = [*[ts.empty((64, 8192, 128), ts.f8e4m3)] * 2, ts.empty((64, 8192, 128), dtype)]
        return stdlib.narrow_attention.form_for(given, {}, hopper).schedule.block

    assert (block(FAST), block(ts.f8e4m3)) == ((192, 64), (128, 64))
