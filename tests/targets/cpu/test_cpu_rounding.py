"""What is rounded when: multiples, sums of narrow floats and maxima of multiples, native against the interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tessera import Schedule, kernel, knobs, tile
from tessera.interpreters.core.engine import symbol_in
from tessera.ir.tile import dialect as tiles
from tessera.targets.cpu import features
from tessera.transforms.algebra.scaled_maxima import scale_maxima

LEVELS = features.up_to(features.level())


@kernel
def scaled_softmax(x: Any, factor: float):
    rows = tile.load(x) * factor
    weights = tile.exp(rows - tile.max(rows, keepdims=True))
    return weights / tile.sum(weights, keepdims=True)


@kernel
def below_the_top(x: Any):
    rows = tile.load(x) * 0.1
    return rows - tile.max(rows, keepdims=True)


@kernel
def sums(x: Any):
    return tile.sum(tile.load(x))


@kernel
def products(x: Any):
    return tile.prod(tile.load(x))


@kernel
def extremes(x: Any):
    rows = tile.load(x)
    return tile.max(rows) - tile.min(rows)


@kernel
def narrow_gemm(a: Any, b: Any, c: Any):
    here = tile.context()
    row, col = tile.program_id(0) * here.m, tile.program_id(1) * here.n
    acc = tile.zeros((here.m, here.n), c.dtype)
    for k in tile.range(0, a.shape[1], here.k):
        left = tile.load(a, at=(row, k), shape=(here.m, here.k))
        acc = tile.dot(left, tile.load(b, at=(k, col), shape=(here.k, here.n)), acc)
    tile.store(c, acc, at=(row, col))


def limits_of(dtype: Any) -> Any:
    found: Any = getattr(ml_dtypes, "finfo")(dtype)  # noqa: B009  (its type is not known in full)
    return found


def both(run: Any, *arguments: Any) -> list[Any]:
    found: list[Any] = []
    for backend in ("cpu", "interpreter"):
        with knobs.backend.using(backend):
            found.append(run(*arguments).numpy())
    return found


@pytest.mark.quick
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1.0, 1e6, 1e30])
def test_nothing_is_above_the_maximum(level: str, size: float) -> None:
    x = (np.random.default_rng(0).standard_normal((67, 45)) * size).astype(np.float32)
    with knobs.cpu_level.using(level):
        native, meant = both(below_the_top, x)
        assert native.max() == 0
        np.testing.assert_array_equal(native, meant)
        native, meant = both(scaled_softmax, x, 0.1)
    np.testing.assert_allclose(native, meant, rtol=2e-6, atol=1e-30)


@pytest.mark.quick
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_narrow_floats_are_summed_in_f32(level: str, dtype: Any) -> None:
    random = np.random.default_rng(1)
    x = (random.standard_normal((67, 300)) / 8 + 1).astype(dtype)
    with knobs.cpu_level.using(level):
        for run in (sums, products):
            native, meant = both(run, x)
            wide = x.astype(np.float64)
            exact = wide.sum(1) if run is sums else wide.prod(1)
            limits = limits_of(dtype)
            unit = np.maximum(np.abs(exact) * float(limits.eps), float(limits.smallest_subnormal))
            inside = np.isfinite(meant.astype(np.float64))
            np.testing.assert_array_equal(np.isfinite(native.astype(np.float64)), inside)
            assert (np.abs(native.astype(np.float64) - exact)[inside] <= 0.51 * unit[inside]).all()


@pytest.mark.quick
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
def test_whole_numbers_have_extremes(level: str, dtype: Any) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(2).integers(limits.min, limits.max, (35, 50), dtype, endpoint=True)
    with knobs.cpu_level.using(level):
        for run in (sums, extremes):
            native, meant = both(run, x)
            np.testing.assert_array_equal(native, meant)


@pytest.mark.quick
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_products_into_narrow_floats(level: str, dtype: Any) -> None:
    random = np.random.default_rng(3)
    a, b = (random.standard_normal(shape).astype(dtype) for shape in ((50, 70), (70, 40)))
    found: list[Any] = []
    for backend in ("cpu", "interpreter"):
        c = np.zeros((50, 40), dtype)
        with knobs.backend.using(backend), knobs.cpu_level.using(level):
            narrow_gemm.with_schedule(Schedule(block=(32, 32, 32)))[2, 2](a, b, c)
        found.append(c.astype(np.float64))
    limits = limits_of(dtype)
    # Three sums, each rounded once; the f32 sum before that may fall to the other side.
    np.testing.assert_allclose(found[0], found[1], atol=2 * np.abs(found[1]).max() * float(limits.eps))


def test_maxima_of_multiples_are_multiples_of_maxima() -> None:
    module = below_the_top.lower(np.zeros((8, 8), np.float32)).module.clone()
    function = symbol_in(module, "below_the_top", tiles.FuncOp)
    scale_maxima(function)
    (reduce,) = (op for op in function.body.walk() if isinstance(op, tiles.ReduceOp))
    (user,) = (use.operation for use in reduce.result.uses)
    assert isinstance(reduce.operand.owner, tiles.LoadOp)
    assert isinstance(user, tiles.EwOp)
    assert user.fn.data == "mul"
