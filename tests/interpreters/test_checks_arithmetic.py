"""Checks the sentinels: the op that makes the first NaN or infinity, and signed integers that wrap around."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera import f8e4m3, f16, i8, i32, i64, kernel, saturate, tile, u8
from tessera.errors import DtypeError
from tessera.interpreters.levels.tile import run_kernel
from tessera.interpreters.sanitizers.checks import Checks, checking
from tessera.ir import text

Array = np.ndarray[Any, np.dtype[Any]]
NAN, ALL, OVERFLOW = Checks(nonfinite="nan"), Checks(nonfinite="all"), Checks(overflow=True)
INF = float("inf")


def told(checks: Checks, run: Callable[[], object]) -> str:
    with pytest.raises(DtypeError) as found, checking(checks):
        run()
    return found.value.message


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


@kernel
def divide(x: Any, y: Any, z: Any) -> None:
    p = tile.program_id(0) * 2
    tile.store(z, tile.load(x, at=[p], shape=[2]) / tile.load(y, at=[p], shape=[2]), at=[p])


def test_a_nan_is_reported_where_it_is_made() -> None:
    x, y, z = floats(1, 2, 3, 0), floats(1, 1, 1, 0), floats(0, 0, 0, 0)
    with pytest.raises(DtypeError) as found, checking(NAN):
        divide[2](x, y, z)
    assert found.value.message == "div makes nan at [1] in program instance [1], of 0 and 0"
    assert found.value.hint == (
        "mask or clamp the operands with tile.where before this op, or switch the nonfinite check off"
    )
    excerpt = str(found.value).splitlines()[2:4]
    assert excerpt[0].endswith("tile.load(x, at=[p], shape=[2]) / tile.load(y, at=[p], shape=[2]), at=[p])")
    assert excerpt[1].count("^") == len("tile.load(x, at=[p], shape=[2]) / tile.load(y, at=[p], shape=[2])")
    # The first program instance has run, the second has not stored.
    assert z.tolist() == [1, 2, 0, 0]


def test_a_nan_that_came_in_is_not_made_here() -> None:
    x, z = floats(np.nan, 1), floats(0, 0)
    with checking(ALL):
        divide[1](x, floats(1, 1), z)
    assert np.isnan(z[0])


def test_infinities_are_reported_only_when_asked() -> None:
    x, y, z = floats(1, -2), floats(1, 0), floats(0, 0)
    with checking(NAN):
        divide[1](x, y, z)
    assert z.tolist() == [1, -INF]
    assert told(ALL, lambda: divide[1](x, y, z)) == "div makes -inf at [1] in program instance [0], of -2 and 0"
    with checking(ALL):
        divide[1](floats(INF, 1), y + 1, z)


@kernel
def masked_softmax(x: Any, y: Any, *, safe: bool) -> None:
    scores = tile.where(tile.iota((4,)) < 2, tile.load(x, at=[0], shape=[4]), -INF)
    top = tile.max(scores, 0, keepdims=True)
    if safe:
        top = tile.where(top == -INF, 0.0, top)
    tile.store(y, tile.exp(scores - top), at=[0])


def test_infinities_that_are_written_down_are_allowed() -> None:
    y = np.zeros(4, np.float32)
    for safe in (True, False):
        with checking(ALL):
            masked_softmax[1](floats(1, 2, 3, 4), y, safe=safe)
        assert y[1:].tolist() == [1, 0, 0]
    empty = floats(-INF, -INF, 3, 4)
    with checking(ALL):
        masked_softmax[1](empty, y, safe=True)
    assert told(NAN, lambda: masked_softmax[1](empty, y, safe=False)) == (
        "sub makes nan at [0] in program instance [0], of -inf and -inf"
    )


@kernel
def total(x: Any, y: Any) -> None:
    tile.store(y, tile.sum(tile.load(x, at=[0, 0], shape=[2, 3]), 1), at=[0])


def test_a_sum_of_opposite_infinities_makes_a_nan() -> None:
    x, y = floats(1, 2, 3, INF, 5, -INF).reshape(2, 3), floats(0, 0)
    assert told(NAN, lambda: total[1](x, y)) == "reduce sum makes nan at [1] in program instance [0], of [inf, 5, -inf]"
    big = np.full((2, 3), 3e38, np.float32)
    made = "reduce sum makes inf at [0] in program instance [0], of [3e+38, 3e+38, 3e+38]"
    assert told(ALL, lambda: total[1](big, y)) == made
    with checking(ALL):
        total[1](np.where(np.isfinite(x), x, np.nan), y)


@kernel
def product(a: Any, b: Any, c: Any) -> None:
    tile.store(c, tile.dot(tile.load(a, at=[0, 0], shape=[2, 2]), tile.load(b, at=[0, 0], shape=[2, 2])), at=[0, 0])


def test_zero_times_infinity_in_a_dot_makes_a_nan() -> None:
    a, b, c = floats(1, 0, 2, 3).reshape(2, 2), floats(1, 2, 3, INF).reshape(2, 2), np.zeros((2, 2), np.float32)
    made = "dot makes nan at [0, 1] in program instance [0], of [1, 0] · [2, inf] + 0"
    assert told(NAN, lambda: product[1](a, b, c)) == made
    with checking(ALL):
        product[1](a + 1, b, c)
    assert c[1, 1] == INF
    big = np.full((2, 2), 2e38, np.float32)
    made = "dot makes inf at [0, 0] in program instance [0], of [2e+38"
    assert told(ALL, lambda: product[1](big, big, c)).startswith(made)


@kernel
def narrowed(x: Any, y: Any) -> None:
    tile.store(y, tile.cast(tile.load(x, at=[0], shape=[2]), y.dtype), at=[0])


def test_casts_that_do_not_fit_are_reported() -> None:
    x = floats(1, 1e6)
    half, eighth = np.zeros(2, f16.storage), np.zeros(2, f8e4m3.storage)
    assert told(ALL, lambda: narrowed[1](x, half)) == "cast makes inf at [1] in program instance [0], of 1e+06"
    # There is no infinity in this type.
    assert told(NAN, lambda: narrowed[1](x, eighth)) == "cast makes nan at [1] in program instance [0], of 1e+06"
    with checking(ALL):
        narrowed[1](floats(1, 400), eighth)


def test_scalars_are_watched_too() -> None:
    module = text.read(
        "tile.func @k(%a: f32, %b: f32) outputs 0 shapes [[], []] grid [1] {\n"
        "%q = arith.divf %a, %b : f32\n%d = arith.subf %q, %q : f32\ntile.return\n}"
    )
    run_kernel(module, "k", [1.0, 2.0], checks=ALL)
    for checks, message in (
        (ALL, "divf makes inf in program instance [0], of 1 and 0"),
        (NAN, "subf makes nan in program instance [0], of inf and inf"),
    ):
        with pytest.raises(DtypeError) as found:
            run_kernel(module, "k", [1.0, 0.0], checks=checks)
        assert found.value.message == message


@kernel
def normalised(x: Any, y: Any) -> None:
    rows = tile.load(x, at=[0, 0], shape=[4, 2])
    tile.store(y, rows / tile.sum(rows, 1)[:, None], at=[0, 0])


def test_rows_beyond_the_array_may_be_nan() -> None:
    y = np.zeros((3, 2), np.float32)
    with checking(ALL):
        normalised[1](np.ones((3, 2), np.float32), y)
    assert (y == 0.5).all()
    assert told(NAN, lambda: normalised[1](np.zeros((3, 2), np.float32), y)) == (
        "div makes nan at [0, 0] in program instance [0], of 0 and 0"
    )


# Integers.


@kernel
def offset(x: Any, y: Any, step: int) -> None:
    at = tile.program_id(0) * step
    tile.store(y, tile.load(x, at=[at], shape=[2]), at=[0])


def test_positions_that_wrap_are_reported() -> None:
    x, y = floats(1, 2), floats(0, 0)
    with pytest.raises(DtypeError) as found, checking(OVERFLOW):
        offset[3](x, y, 2**62)
    assert found.value.message == (
        "muli wraps around in program instance [2]: "
        "2 and 4611686018427387904 give 9223372036854775808, and i64 ends at "
        "-9223372036854775808 and 9223372036854775807"
    )
    assert found.value.hint == "cast the operands to a wider type, or to an unsigned one where wrapping is meant"
    assert "at = tile.program_id(0) * step" in str(found.value)
    with checking(OVERFLOW):
        offset[2](x, y, 2**62)
    offset[3](x, y, 2**62)


@kernel
def combined(x: Any, y: Any, z: Any, *, fn: str) -> None:
    a, b = tile.load(x, at=[0], shape=[2]), tile.load(y, at=[0], shape=[2])
    found = {"add": a + b, "sub": a - b, "mul": a * b}[fn]
    tile.store(z, found, at=[0])


def whole(dtype: Any, *values: int) -> Array:
    return np.array(values).astype(dtype.storage)


@pytest.mark.parametrize(
    ("dtype", "fn", "a", "b", "sentence"),
    [
        (i8, "add", 100, 28, "100 + 28 is 128"),
        (i8, "sub", -100, 29, "-100 - 29 is -129"),
        (i32, "mul", 2**16, 2**15, "65536 * 32768 is 2147483648"),
        (i64, "add", 2**63 - 1, 1, "9223372036854775807 + 1 is 9223372036854775808"),
        (i64, "mul", 2**40, -(2**40), "1099511627776 * -1099511627776 is -1208925819614629174706176"),
    ],
)
def test_tiles_that_wrap_are_reported(dtype: Any, fn: str, a: int, b: int, sentence: str) -> None:
    z = whole(dtype, 0, 0)
    message = told(OVERFLOW, lambda: combined[1](whole(dtype, 1, a), whole(dtype, 1, b), z, fn=fn))
    assert message == (
        f"{fn} wraps around at [1] in program instance [0]: {sentence}, "
        f"and {dtype} ends at {dtype.min_value} and {dtype.max_value}"
    )


@given(st.sampled_from([i8, i32, i64]), st.sampled_from(["add", "sub", "mul"]), st.data())
def test_only_results_that_do_not_fit_are_reported(dtype: Any, fn: str, data: st.DataObject) -> None:
    numbers = st.integers(dtype.min_value, dtype.max_value) | st.integers(-12, 12)
    a, b = data.draw(numbers), data.draw(numbers)
    exact = {"add": a + b, "sub": a - b, "mul": a * b}[fn]
    z = whole(dtype, 0, 0)

    def run() -> None:
        with checking(OVERFLOW):
            combined[1](whole(dtype, a, 0), whole(dtype, b, 0), z, fn=fn)

    if dtype.min_value <= exact <= dtype.max_value:
        run()
        assert int(z[0]) == exact
    else:
        with pytest.raises(DtypeError):
            run()


def test_unsigned_integers_wrap_by_definition() -> None:
    z = whole(u8, 0, 0)
    with checking(Checks.all()):
        combined[1](whole(u8, 200, 1), whole(u8, 100, 2), z, fn="add")
    assert z.tolist() == [44, 3]


@kernel
def clamped(x: Any, y: Any) -> None:
    a = tile.load(x, at=[0], shape=[2])
    tile.store(y, tile.cast(a + a, i8 @ saturate), at=[0])


def test_casts_of_integers_say_what_they_do() -> None:
    y = whole(i8, 0, 0)
    with checking(OVERFLOW):
        clamped[1](whole(i32, 100, 1), y)
    assert y.tolist() == [127, 2]


@kernel
def counted(y: Any, base: int) -> None:
    tile.store(y, tile.iota((4,), 0, base, y.dtype), at=[0])


def test_counting_past_the_end_is_reported() -> None:
    with checking(OVERFLOW):
        counted[1](whole(i8, 0, 0, 0, 0), 124)
        counted[1](whole(u8, 0, 0, 0, 0), 254)
    assert told(OVERFLOW, lambda: counted[1](whole(i8, 0, 0, 0, 0), 125)) == (
        "iota wraps around in program instance [0]: it counts from 125 to 128, and i8 ends at -128 and 127"
    )
