"""Checks interval rules: results of random operands inside random intervals are always inside."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera.dtypes.casting import cast
from tessera.dtypes.types import (
    ALL,
    DType,
    bf16,
    bool_,
    f4e2m1,
    f8e4m3,
    f16,
    f32,
    f64,
    i4,
    i8,
    i32,
    i64,
    loss_scale,
    saturate,
    stochastic_round,
    tf32,
    u8,
    u64,
)
from tessera.errors import DtypeError
from tessera.ir.common.elementwise import TABLE, apply, interval, result_dtype
from tessera.ir.common.intervals import EITHER, EVERYTHING, FALSE, RULES, TRUE, Interval, all_values, rounded

Array = np.ndarray[Any, np.dtype[Any]]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, math.pi / 2, math.pi, 1e-40, 5e-324, 448.0, 65504.0, 1e6, 3.4e38, 1e308]


def numbers(dtype: DType) -> st.SearchStrategy[float]:
    """Values of `dtype`, as floats or exact ints; no NaN."""
    if dtype.float_format is None:
        low, high = int(dtype.min_value), int(dtype.max_value)
        small = st.integers(max(low, -9), min(high, 9))
        return small | st.integers(low, high) | st.sampled_from([low, high])
    wide = st.sampled_from([*SPECIAL, *(-x for x in SPECIAL), math.inf, -math.inf])
    raw = wide | st.floats(-10, 10) | st.floats(allow_nan=False)
    return raw.map(lambda x: float(cast(np.array([x]), f64, dtype.base)[0])).filter(lambda x: not math.isnan(x))


@st.composite
def operand(draw: st.DrawFn, dtype: DType) -> tuple[Interval, float]:
    """An interval and one of its members."""
    lo, value, hi = sorted(draw(st.lists(numbers(dtype), min_size=3, max_size=3)))
    if draw(st.booleans()):
        lo = hi = value
    may_nan = all_values(dtype).may_nan and draw(st.integers(0, 3)) == 0
    ends = rounded_outwards(lo, -1), rounded_outwards(hi, 1)
    return Interval(*ends, may_nan), (math.nan if may_nan and draw(st.booleans()) else value)


def rounded_outwards(value: float, direction: int) -> float:
    """Large integers are not float64 numbers; an interval around them has to be wider."""
    near = float(value)
    return near if (near - value) * direction >= 0 and near == value else math.nextafter(near, direction * math.inf)


CASES = [
    (name, dtype)
    for name in TABLE
    for dtype in (
        f64,
        f32,
        tf32,
        bf16,
        f16,
        f8e4m3,
        f4e2m1,
        f8e4m3 @ saturate,
        i8,
        i4,
        u8,
        i64,
        u64,
        i8 @ saturate,
        bool_,
    )
]


def operand_types(name: str, dtype: DType) -> list[DType]:
    return [bool_, dtype, dtype] if name == "select" else [dtype] * TABLE[name].arity


def is_accepted(name: str, dtype: DType) -> bool:
    try:
        result_dtype(name, operand_types(name, dtype), to=f32 if name == "cast" else None)
    except DtypeError:
        return False
    return True


def check_inside(data: st.DataObject, name: str, dtype: DType) -> None:
    types = operand_types(name, dtype)
    to = data.draw(st.sampled_from([*ALL, i8 @ saturate, bf16 @ saturate])) if name == "cast" else None
    drawn = [data.draw(operand(each)) for each in types]
    arrays = [stored(value, each) for (_, value), each in zip(drawn, types, strict=True)]
    bounds = interval(name, [held for held, _ in drawn], types, to=to)
    found = apply(name, arrays, types, to=to)
    value = found.item() if found.dtype.isbuiltin else float(found)
    assert value in bounds, f"{name} of {drawn} gave {value}, outside {bounds}"


def stored(value: float, dtype: DType) -> Array:
    if dtype.float_format is None:
        return np.array(int(value)).astype(dtype.storage) if value < 2**63 else np.array(value, dtype.storage)
    return cast(np.array(value), f64, dtype)


@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=40)
@given(st.data())
def test_results_are_inside(name: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([dtype for row, dtype in CASES if row == name and is_accepted(row, dtype)]))
    check_inside(data, name, dtype)


@pytest.mark.acceptance
@pytest.mark.parametrize("name", TABLE)
@settings(max_examples=1_000, deadline=None)
@given(st.data())
def test_results_are_inside_at_full_count(name: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([dtype for row, dtype in CASES if row == name and is_accepted(row, dtype)]))
    check_inside(data, name, dtype)


@pytest.mark.parametrize("name", [name for name in TABLE if is_accepted(name, f32)])
@pytest.mark.parametrize("dtype", [f64, f32, f16], ids=str)
def test_dense_sweeps_stay_inside_narrow_intervals(name: str, dtype: DType) -> None:
    generator = np.random.default_rng(5)
    types = operand_types(name, dtype)
    to = bf16 if name == "cast" else None
    for _ in range(5):
        bounds: list[Interval] = []
        columns: list[Array] = []
        for each in types:
            lo, hi = sorted(generator.uniform(-8, 8, 2)) if each is dtype else (0.0, 1.0)
            held = all_values(bool_) if each is bool_ else rounded(Interval(float(lo), float(hi)), dtype)
            column = cast(generator.uniform(held.lo, held.hi, 500), f64, each)
            bounds.append(held)
            columns.append(column)
        found = apply(name, columns, types, to=to).astype(np.float64)
        outer = interval(name, bounds, types, to=to)
        inside = (found >= outer.lo) & (found <= outer.hi) | (np.isnan(found) & outer.may_nan)
        assert inside.all()


def tight(name: str, *operands: Interval, dtype: DType = f64) -> Interval:
    return interval(name, operands, operand_types(name, dtype))


def test_bounds_are_as_tight_as_they_should_be() -> None:
    assert tight("add", Interval(1, 2), Interval(3, 4)) == Interval(4, 6)
    assert tight("mul", Interval(-1, 2), Interval(3, 4)) == Interval(-4, 8)
    assert tight("div", Interval(1, 2), Interval(2, 4)) == Interval(0.25, 1)
    assert tight("max", Interval(-5, 7), Interval(0, 0)) == Interval(0, 7)
    assert tight("abs", Interval(-5, 3)) == Interval(0, 5)
    assert tight("sqrt", Interval(0, 0)) == Interval(0, 0)
    assert tight("tanh", Interval(-math.inf, math.inf)) == Interval(-1, 1)
    assert tight("exp", Interval(-math.inf, 0)).lo == 0
    assert tight("sin", Interval(0, 4)).hi == 1
    assert tight("sin", Interval(0, 1)).hi < 0.8415
    assert tight("pow", Interval(-3, 2), Interval(2, 2)) == Interval(0, 9)
    assert tight("floor", Interval(-0.5, 2.5)) == Interval(-1, 2)


def test_integers_are_exact_until_they_wrap() -> None:
    assert tight("add", Interval(0, 100), Interval(1, 1), dtype=i32) == Interval(1, 101)
    assert tight("add", Interval(0, 100), Interval(100, 100), dtype=i8) == all_values(i8)
    assert tight("add", Interval(0, 100), Interval(100, 100), dtype=i8 @ saturate) == Interval(100, 127)
    assert tight("mul", Interval(-3, 5), Interval(128, 128), dtype=i32) == Interval(-384, 640)
    assert tight("floordiv", Interval(-5, 5), Interval(2, 2), dtype=i32) == Interval(-3, 2)
    assert tight("floordiv", Interval(10, 20), Interval(0, 5), dtype=i32) == Interval(0, 20)
    assert tight("rem", Interval(0, 1000), Interval(8, 8), dtype=i32) == Interval(0, 7)
    assert tight("rem", Interval(0, 5), Interval(8, 8), dtype=i32) == Interval(0, 5)
    assert tight("shr", Interval(-9, 9), Interval(1, 1), dtype=i32) == Interval(-5, 4)
    assert tight("not", Interval(0, 5), dtype=i32) == Interval(-6, -1)
    assert tight("not", Interval(0, 5), dtype=u8) == Interval(250, 255)
    # Beyond 2^53 a float64 bound is a neighbour of the exact one.
    assert 2**53 + 1 in tight("or", Interval(2.0**53, 2.0**53), Interval(1, 1), dtype=i64)


def test_masks_are_decided_where_the_bounds_decide_them() -> None:
    rows, columns = Interval(128, 191), Interval(0, 63)
    assert tight("ge", rows, columns, dtype=i32) == TRUE
    assert tight("lt", rows, columns, dtype=i32) == FALSE
    assert tight("ge", Interval(32, 95), columns, dtype=i32) == EITHER
    assert tight("and", TRUE, EITHER, dtype=bool_) == EITHER
    assert tight("and", FALSE, EITHER, dtype=bool_) == FALSE
    assert tight("not", TRUE, dtype=bool_) == FALSE
    assert tight("select", TRUE, Interval(1, 2), Interval(8, 9)) == Interval(1, 2)
    assert tight("select", EITHER, Interval(1, 2), Interval(8, 9)) == Interval(1, 9)


def test_nan_is_followed() -> None:
    infinite = Interval(-math.inf, math.inf)
    assert tight("sub", infinite, infinite).may_nan
    assert tight("mul", Interval(0, 1), infinite).may_nan
    assert tight("div", Interval(0, 1), Interval(0, 1)).may_nan
    assert not tight("div", Interval(1, 2), Interval(0, 1)).may_nan
    assert tight("sqrt", Interval(-1, 1)).may_nan
    assert not tight("sqrt", Interval(0, 1)).may_nan
    assert tight("isnan", Interval(0, 1)) == FALSE
    assert tight("isfinite", Interval(0, 1)) == TRUE
    assert tight("lt", Interval(0, 1, may_nan=True), Interval(2, 3)) == EITHER


def test_rounding_carries_bounds_into_a_type() -> None:
    assert rounded(Interval(0.1, 0.2), f64) == Interval(0.1, 0.2)
    third = rounded(Interval(1 / 3, 1 / 3), bf16)
    assert third.lo < 1 / 3 < third.hi
    assert third.hi - third.lo == 2.0**-9
    assert rounded(Interval(1, 1e39), f32).hi == math.inf
    assert rounded(Interval(1, 1000), f8e4m3) == Interval(1, 448, may_nan=True)
    assert rounded(Interval(1, 1000), f8e4m3 @ saturate) == Interval(1, 448)
    assert rounded(Interval(-0.7, 3.7), i8) == Interval(0, 3)
    assert rounded(Interval(0.2, 0.7), bool_) == TRUE
    assert rounded(Interval(0, 1), f16 @ loss_scale(1024)) == EVERYTHING


def test_stochastic_results_stay_inside() -> None:
    dtype = bf16 @ stochastic_round
    one, tiny = (cast(np.full(3000, x), f64, bf16) for x in (1.0, 2.0**-9))
    found = apply("add", [one, tiny], [dtype, bf16], seed=1).astype(np.float64)
    bounds = interval("add", [Interval(1, 1), Interval(2.0**-9, 2.0**-9)], [dtype, bf16])
    assert set(np.unique(found)) == {bounds.lo, bounds.hi}


def test_an_interval_is_not_empty() -> None:
    with pytest.raises(ValueError, match="lo <= hi"):
        Interval(2, 1)


def test_all_values_covers_each_type() -> None:
    for dtype in ALL:
        every = all_values(dtype)
        assert dtype.min_value in every
        assert dtype.max_value in every
        stored_nan = cast(np.array([math.nan]), f64, dtype)[0]
        assert every.may_nan == math.isnan(float(stored_nan))


def test_the_rules_are_those_of_the_table() -> None:
    assert RULES.keys() == TABLE.keys()
    assert all(TABLE[name].interval is rule for name, rule in RULES.items())
