"""Bounds on the values of kernels hold for all that the interpreter computes, and are not needlessly wide."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Operation, SSAValue

from tessera import Schedule, Tile, bf16, f8e4m3, f16, f32, f64, i8, i32, kernel, knobs, saturate, tile
from tessera.interpreters.core.engine import Frame, Values
from tessera.interpreters.levels import tile as interpreter
from tessera.ir import text
from tessera.ir.common.intervals import EVERYTHING, Interval
from tessera.ir.tile import dialect as tile_dialect
from tessera.tile.calls.function import Kernel
from tessera.tile.calls.instance import Instance
from tessera.transforms.facts.value_bounds import read, value_bounds, written

Array = np.ndarray[Any, np.dtype[Any]]
quick = settings(max_examples=40, deadline=None)


def program_of(instance: Instance) -> tile_dialect.FuncOp:
    function = instance.module.body.block.first_op
    assert isinstance(function, tile_dialect.FuncOp)
    return function


class Seen(NamedTuple):
    """The least and the greatest number that a value has had, and whether it has been NaN."""

    lo: float = math.inf
    hi: float = -math.inf
    nan: bool = False


def observed(run: Callable[[], object]) -> dict[SSAValue, Seen]:
    """The range of each value of a kernel, over all program instances and iterations."""
    found: dict[SSAValue, Seen] = {}

    class Watching(Frame):
        def perform(self, op: Operation, operands: Values) -> Values:
            results = super().perform(op, operands)
            for result, value in zip(op.results, results, strict=True):
                if not isinstance(value, interpreter.ArrayView) and np.size(value):
                    numbers = np.asarray(value).astype(np.float64)
                    low = np.min(numbers, initial=math.inf, where=~np.isnan(numbers))
                    high = np.max(numbers, initial=-math.inf, where=~np.isnan(numbers))
                    old = found.get(result, Seen())
                    found[result] = Seen(min(old.lo, low), max(old.hi, high), old.nan or bool(np.isnan(numbers).any()))
            return results

    with pytest.MonkeyPatch.context() as patch, knobs.interpret.using(True):
        patch.setattr(interpreter, "Frame", Watching)
        run()
    assert found
    return found


def check(made: Kernel, arguments: list[Any], premises: dict[int, Interval], **static: Any) -> None:
    """Every value that was seen lies within its bounds."""
    bounds = value_bounds(program_of(made.lower(*arguments, **static)), premises)
    for value, seen in observed(lambda: made(*arguments, **static)).items():
        known = bounds[value]
        assert known.lo <= seen.lo, value.owner
        assert seen.hi <= known.hi, value.owner
        assert known.may_nan or not seen.nan, value.owner


@kernel
def scores(q: Tile, k: Tile) -> Tile:
    return tile.dot(q, k.T) * q.shape[1] ** -0.5


@kernel
def softmax(x: Tile) -> Tile:
    weights = tile.exp(x - tile.max(x, keepdims=True))
    return weights / tile.sum(weights, keepdims=True)


@kernel
def looped(x: Any, n: int):
    rows, count = tile.load(x), 0.5
    peak = rows
    for i in tile.range(n):
        if i > 1:
            count = count * 1.5
        rows = rows * 0.5 + count
        peak = tile.maximum(peak, rows)
    return rows - peak, tile.prod(rows, 1), tile.min(rows * count, 1)


@kernel
def masked(x: Tile) -> Any:
    rows, columns = tile.row_index(), tile.col_index()
    kept = tile.where(rows >= columns, x, -tile.INF)
    weights, _, total = tile.softmax_online(kept)
    return weights, total, tile.log(total), tile.cast(columns, f32) + 0.0 * x


@kernel
def rounded(x: Tile, *, dtype: Any) -> Any:
    narrow = tile.cast(x * 100.0, dtype)
    return tile.cast(tile.cast(narrow + narrow, f32), i32), tile.sum(narrow, 1), tile.cast(x, i8) * tile.cast(x, i8)


RUNS: dict[str, Callable[[Array, int], tuple[Kernel, list[Any]]]] = {
    "scores": lambda x, n: (scores, [x, x[: n + 1]]),
    "softmax": lambda x, n: (softmax, [x]),
    "looped": lambda x, n: (looped, [x, n]),
    "masked": lambda x, n: (masked, [x]),
}


@quick
@given(
    st.sampled_from(sorted(RUNS)),
    st.sampled_from([f32, f16, bf16, f64]),
    st.sampled_from([0.0, 0.1, 3.0, 90.0, 1e4]),
    st.integers(1, 20),
    st.integers(1, 9),
    st.integers(0, 5),
    st.integers(0, 99),
)
def test_bounds_hold(name: str, dtype: Any, limit: float, rows: int, columns: int, n: int, seed: int) -> None:
    x = (np.random.default_rng(seed).uniform(-limit, limit, (rows, columns))).astype(dtype.storage)
    x.reshape(-1)[seed % x.size] = limit
    reach = float(np.abs(x.astype(np.float64)).max())
    made, arguments = RUNS[name](x, min(n, rows - 1) if name == "scores" else n)
    premises = {
        index: Interval(-reach, reach) for index, given in enumerate(arguments) if isinstance(given, np.ndarray)
    }
    check(made.with_schedule(Schedule(block=(4,))), arguments, premises)
    check(made.with_schedule(Schedule(block=(4,))), arguments, {})


@quick
@given(
    st.sampled_from([f16, bf16, f8e4m3, f16 @ saturate, f8e4m3 @ saturate]),
    st.lists(st.floats(-1e6, 1e6, width=32) | st.sampled_from([math.nan, math.inf, -math.inf]), min_size=1, max_size=8),
)
def test_bounds_hold_where_types_overflow(dtype: Any, values: list[float]) -> None:
    x = np.array([values], np.float32)
    finite = x[np.isfinite(x)]
    limits = Interval(float(finite.min()), float(finite.max())) if finite.size == x.size else EVERYTHING
    check(rounded, [x], {0: limits}, dtype=dtype)


def stored(made: Kernel, arguments: list[Any], *limits: tuple[float, float]) -> list[tuple[float, float]]:
    program = program_of(made.lower(*arguments))
    bounds = value_bounds(program, {index: Interval(*pair) for index, pair in enumerate(limits)})
    found = [bounds[op.value] for op in program.body.walk() if isinstance(op, tile_dialect.StoreOp)]
    assert not any(interval.may_nan for interval in found)
    return [(interval.lo, interval.hi) for interval in found]


def test_bounds_are_tight_where_they_can_be() -> None:
    x, k = np.zeros((5, 16), np.float32), np.zeros((3, 16), np.float32)
    assert stored(scores, [x, k], (-1, 1), (-2, 3)) == [(-12, 12)]
    # Rows may reach beyond the array, where 0 is loaded; a whole array has its own numbers only.
    assert stored(scores, [x, k], (1, 2), (3, 4)) == [(0, 32)]

    @kernel
    def column(x: Tile, w: Tile) -> Any:
        return tile.sum(w, 0)[None, :] + 0.0 * x

    assert stored(column, [x, k], (1, 2), (3, 4)) == [(9, 12)]


def test_what_a_loop_carries_is_widened_where_it_grows() -> None:
    @kernel
    def carried(x: Any, n: int):
        rows = tile.load(x)
        low, high, grown, fallen = rows, rows, rows, rows
        for _ in tile.range(n):
            low, high = tile.minimum(low, rows), tile.maximum(high, 2.0)
            grown, fallen = tile.abs(grown) + 1.0, -tile.abs(fallen) - 1.0
        return low, high, grown, fallen

    x = np.zeros((5, 3), np.float32)
    found = stored(carried, [x, 4], (-1, 1), (0, 9))
    assert found == [(-1, 1), (-1, 2), (-1, math.inf), (-math.inf, 1)]


def test_memory_that_the_program_writes_may_hold_anything() -> None:
    @kernel
    def transposed(x: Any, y: Any):
        tile.store(y, tile.load(x))
        tile.store(x, tile.load(y) + 1.0)

    x = np.zeros(5, np.float32)
    program = program_of(transposed.lower(x, x.copy()))
    assert written(program) == read(program) == set(program.arguments)
    bounds = value_bounds(program, {0: Interval(0, 1), 1: Interval(0, 1)})
    assert all(bounds[op.result] == EVERYTHING for op in program.body.walk() if isinstance(op, tile_dialect.LoadOp))


def test_views_that_a_loop_carries_may_be_of_any_argument() -> None:
    module = text.read(
        "tile.func @k(%x: !tile.view<1, f32, global>, %y: !tile.view<1, f32, global>) outputs 1\n"
        "shapes [[4], [4]] grid [1] {\n"
        "%z = arith.constant 0 : index\n%n = arith.constant 2 : index\n%o = arith.constant 1 : index\n"
        "%v = scf.for %i = %z to %n step %o iter_args(%w = %y) -> (!tile.view<1, f32, global>) {\n"
        "  %a = tile.load %x[%z] : !tile.view<1, f32, global> -> tensor<4xf32>\n"
        "  tile.store %a, %w[%z] : tensor<4xf32>, !tile.view<1, f32, global>\n"
        "  scf.yield %w : !tile.view<1, f32, global>\n}\n"
        "%b = tile.load %v[%z] : !tile.view<1, f32, global> -> tensor<4xf32>\n"
        "tile.store %b, %y[%z] : tensor<4xf32>, !tile.view<1, f32, global>\ntile.return\n}"
    )
    program = module.body.block.first_op
    assert isinstance(program, tile_dialect.FuncOp)
    assert written(program) == set(program.arguments)
    bounds = value_bounds(program, {0: Interval(0, 1)})
    assert all(bounds[op.result] == EVERYTHING for op in program.body.walk() if isinstance(op, tile_dialect.LoadOp))
