"""Folds behind loops: what they give is what folds in loops do, and which loops have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emitted_runs import run
from gpu_options import gpu

import tessera as ts
from tessera import kernel, tile
from tessera.dtypes.types import DType
from tessera.interpreters.core.engine import symbol_in
from tessera.interpreters.levels.tile import run_kernel
from tessera.ir.tile import dialect
from tessera.targets.cuda.compile import lower_kernel
from tessera.targets.cuda.lower.reduce_late import reduce_late


def joined(kind: str, a: Any, b: Any) -> Any:
    if kind in ("max", "min"):
        return (tile.maximum if kind == "max" else tile.minimum)(a, b)
    return a + b if kind == "sum" else a * b


@kernel
def folded(x: Any, *, kind: str, block: int) -> Any:
    here = tile.context()
    start = {"sum": 0, "prod": 1, "max": -100, "min": 100}[kind]
    total: Any = tile.full((here.m, 1), start, x.dtype)
    for at in tile.range(0, here.d, block):
        rows = tile.load(x, at=(here.row_start, at), shape=(here.m, block), pad=start)
        total = joined(kind, total, getattr(tile, kind)(rows, keepdims=True))
    return total


@kernel
def running(x: Any) -> Any:
    here = tile.context()
    total: Any = tile.zeros((here.m, 1))
    most: Any = tile.zeros((here.m, 1))
    for at in tile.range(0, here.d, 16):
        rows = tile.load(x, at=(here.row_start, at), shape=(here.m, 16))
        total = total + tile.sum(rows, keepdims=True)
        most = tile.maximum(most, total)
    return most


def in_loops(function: dialect.FuncOp) -> int:
    return sum(isinstance(op, dialect.ReduceOp) and op.parent_op() is not function for op in function.body.walk())


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [ts.f32, ts.i32])
@pytest.mark.parametrize(("rows", "width", "block"), [(3, 100, 32), (1, 1000, 256), (2, 0, 16)])
def test_what_is_folded_behind_the_loop(kind: str, dtype: DType, rows: int, width: int, block: int) -> None:
    x = np.random.default_rng(width).integers(1, 3, (rows, width)).astype(dtype.storage)
    if kind == "prod":
        x[:, 8:] = 1
    made = folded.with_schedule(ts.Schedule(block=(rows, 16)))
    module = made.lower(ts.array(x, dtype), kind=kind, block=block).module
    function = symbol_in(module, "folded", dialect.FuncOp)
    expected, found, emitted = (np.zeros((rows, 1), dtype.storage) for _ in range(3))
    run_kernel(module, "folded", [x, expected])
    nv = lower_kernel(module.clone(), "folded", gpu("sm_90a")).module
    reduce_late(function)
    module.verify()
    assert in_loops(function) == 0
    run_kernel(module, "folded", [x, found])
    assert run(nv, "folded", [x, emitted]).message is None
    assert np.array_equal(found, expected)
    assert np.array_equal(emitted, expected)


def test_a_total_that_is_read_in_the_loop_stays() -> None:
    module = running.with_schedule(ts.Schedule(block=(2, 16))).lower(np.zeros((4, 64), np.float32)).module
    function = symbol_in(module, "running", dialect.FuncOp)
    reduce_late(function)
    assert in_loops(function) == 1
