"""Checks the table of elementwise functions: complete rows, typing, the NumPy meaning, derivatives."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera.dtypes.casting import cast
from tessera.dtypes.types import (
    ALL,
    INTEGERS,
    DType,
    Kind,
    accum,
    bf16,
    bool_,
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
    scaled,
    stochastic_round,
    tf32,
    u4,
    u8,
)
from tessera.errors import DtypeError
from tessera.ir.common.elementwise import TABLE, Cost, apply, result_dtype

Array = np.ndarray[Any, np.dtype[Any]]


def words(text: str) -> list[str]:
    return text.split()


ROWS = words(
    "neg abs sign exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal sin cos tan tanh erf sigmoid "
    "floor ceil round trunc isnan isinf isfinite add sub mul div floordiv rem pow min max atan2 copysign fma "
    "and or xor not shl shr eq ne lt le gt ge sort_key from_sort_key select cast"
)
QUESTIONS = words("isnan isinf isfinite eq ne lt le gt ge")
NOT_DIFFERENTIABLE = {
    *words("sign floor ceil round trunc floordiv and or xor not shl shr sort_key from_sort_key"),
    *QUESTIONS,
}


def operand_types(name: str, dtype: DType) -> list[DType]:
    """Operand types for one row with `dtype` as its main type."""
    return [bool_, dtype, dtype] if name == "select" else [dtype] * TABLE[name].arity


def accepts(name: str, dtype: DType) -> bool:
    try:
        result_dtype(name, operand_types(name, dtype), to=f32 if name == "cast" else None)
    except DtypeError:
        return False
    return True


def values_of(dtype: DType) -> Array:
    """Every value of a narrow type; a spread of values and all specials of a wide one."""
    if dtype.kind is Kind.BOOL:
        return np.array([False, True])
    if dtype.is_integer:
        ends = [dtype.min_value, dtype.max_value]
        low, high = max(-9, int(ends[0])), min(9, int(ends[1]))
        return np.array([*range(low, high + 1), *map(int, ends)], dtype.storage)
    spread = [0.0, 1e-40, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, math.pi, 100.0, 3e38, math.inf]
    return cast(np.array([*spread, *(-x for x in spread), math.nan]), f64, dtype)


def run(name: str, dtypes: Sequence[DType], *columns: object, to: DType | None = None) -> Array:
    arrays = [np.asarray(column, dtype.storage) for column, dtype in zip(columns, dtypes, strict=True)]
    return apply(name, arrays, dtypes, to=to)


# The table.


def test_the_table_has_these_rows_in_this_order_and_cannot_be_changed() -> None:
    assert list(TABLE) == ROWS
    with pytest.raises(TypeError):
        TABLE["new"] = TABLE["add"]  # pyright: ignore[reportIndexIssue]  # that it fails is the point


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_every_column(name: str) -> None:
    row = TABLE[name]
    assert row.name == name
    assert row.arity in (1, 2, 3)
    assert callable(row.typing)
    assert callable(row.numpy)
    assert callable(row.interval)
    assert (row.derivative is None) == (name in NOT_DIFFERENTIABLE)
    assert row.cost != Cost()


@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_total_and_silent_on_every_type_it_accepts(name: str) -> None:
    accepted = [dtype for dtype in ALL if accepts(name, dtype)]
    assert accepted
    for dtype in accepted:
        types = operand_types(name, dtype)
        grids = np.meshgrid(*(values_of(each) for each in types), indexing="ij")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = apply(name, grids, types, to=f32 if name == "cast" else None)
        expected = result_dtype(name, types, to=f32 if name == "cast" else None)
        assert found.dtype == expected.storage
        assert found.shape == grids[0].shape


@pytest.mark.parametrize("name", ROWS)
def test_zero_dimensional_arrays_stay_arrays(name: str) -> None:
    dtype = next(dtype for dtype in (f32, i32) if accepts(name, dtype))
    types = operand_types(name, dtype)
    found = apply(name, [np.ones((), each.storage) for each in types], types, to=f32 if name == "cast" else None)
    assert isinstance(found, np.ndarray)
    assert found.shape == ()


# Typing.


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("exp", "float"),
        ("div", "float"),
        ("atan2", "float"),
        ("add", "float int uint"),
        ("floordiv", "float int uint"),
        ("min", "float int uint"),
        ("lt", "float int uint"),
        ("shl", "int uint"),
        ("not", "bool int uint"),
        ("and", "bool int uint"),
        ("eq", "bool float int uint"),
        ("select", "bool float int uint"),
        ("cast", "bool float int uint"),
    ],
)
def test_rows_accept_whole_kinds_of_types(name: str, kinds: str) -> None:
    for dtype in ALL:
        assert accepts(name, dtype) == (dtype.kind.value in kinds.split())


def test_compares_and_questions_give_bool_and_others_their_operand_type() -> None:
    for name in QUESTIONS:
        assert result_dtype(name, operand_types(name, f16)) is bool_
    assert result_dtype("add", (bf16, bf16)) is bf16
    assert result_dtype("select", (bool_, i4, i4)) is i4
    assert result_dtype("cast", (i4,), to=bf16 @ saturate) is bf16 @ saturate


def test_a_policy_on_one_side_holds_for_the_result() -> None:
    policed = bf16 @ accum(f32) @ saturate
    assert result_dtype("add", (policed, bf16)) is policed
    assert result_dtype("fma", (bf16, bf16, policed)) is policed
    assert result_dtype("neg", (policed,)) is policed
    assert result_dtype("lt", (policed, bf16)) is bool_


@pytest.mark.parametrize(
    ("name", "dtypes", "to", "words"),
    [
        ("add", (f32, i32), None, "add expects operands of one type; got f32, i32"),
        ("add", (f32,), None, "add expects 2 operands of one type, integer or float; got f32"),
        ("add", (), None, "add expects 2 operands of one type, integer or float; got nothing"),
        ("add", (bool_, bool_), None, "add expects 2 operands of one type, integer or float; got bool, bool"),
        ("exp", (i32,), None, "exp expects one operand, float; got i32"),
        ("shl", (f32, f32), None, "shl expects 2 operands of one type, integer; got f32, f32"),
        ("select", (i8, f32, f32), None, "select expects a bool and two operands of one type; got i8, f32, f32"),
        ("select", (bool_, f32, f64), None, "select expects two alternatives of one type; got bool, f32, f64"),
        ("cast", (f32,), None, "cast expects one operand and the type to cast it to; got f32"),
        ("neg", (f32,), f16, "neg expects one operand, integer or float; got f32 with to=f16"),
        ("add", (f16 @ saturate, f16 @ stochastic_round), None, "add expects operands with one numerics policy"),
        ("add", (i8 @ scaled(0), i8), None, "add expects plain numbers, not integers with scales"),
        ("shl", (i8 @ saturate, i8), None, "shl expects a type that does not saturate"),
        ("frobnicate", (f32,), None, "'frobnicate' is not an elementwise function"),
    ],
)
def test_typing_errors_say_what_was_expected_and_what_came(
    name: str, dtypes: tuple[DType, ...], to: DType | None, words: str
) -> None:
    with pytest.raises(DtypeError) as caught:
        result_dtype(name, dtypes, to=to)
    assert words in caught.value.message
    assert caught.value.hint
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


# Floats.

ONE_OPERAND: dict[str, Callable[[float], float]] = {
    "exp": math.exp,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "log": math.log,
    "log2": math.log2,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "neg": lambda x: -x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
}
TWO_OPERANDS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b,
    "rem": lambda a, b: a % b,
    "pow": math.pow,
    "min": min,
    "max": max,
    "atan2": math.atan2,
    "copysign": math.copysign,
}
REFERENCES: dict[str, Callable[..., float]] = {**ONE_OPERAND, **TWO_OPERANDS}
POSITIVE = {"log", "log2", "sqrt", "rsqrt", "pow"}


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dtype", [f64, f32, tf32, bf16, f16, f8e4m3], ids=str)
def test_floats_agree_with_the_math_module_rounded_once(name: str, dtype: DType) -> None:
    generator = np.random.default_rng(7)
    arity = TABLE[name].arity
    drawn = generator.uniform(0.1 if name in POSITIVE else -4, 4, (arity, 300))
    if name == "log1p":
        drawn = np.abs(drawn)
    columns = [cast(column, f64, dtype) for column in drawn]
    rows = zip(*(column.astype(np.float64).tolist() for column in columns), strict=True)
    with np.errstate(divide="ignore"):
        exact = np.array([float(REFERENCES[name](*row)) if row[-1] != 0 or arity == 1 else math.nan for row in rows])
    usable = ~np.isnan(exact)
    found = apply(name, columns, [dtype] * arity)[usable]
    if dtype is f64:
        np.testing.assert_allclose(found, exact[usable], rtol=1e-15, atol=5e-16)
    else:
        # math and NumPy may differ in the last bit of float64, which almost never reaches a narrow rounding.
        np.testing.assert_array_equal(found, cast(exact[usable], f64, dtype))


def exact_value(value: object) -> Fraction:
    return Fraction(float(value))  # pyright: ignore[reportArgumentType]  # any NumPy or ml_dtypes scalar


def nearest(exact: Fraction, dtype: DType) -> float:
    """`exact` rounded to nearest even by the definition of the format, for results in its normal range."""
    fmt = dtype.float_format
    assert fmt is not None
    if exact == 0:
        return 0.0
    exponent = fmt.min_exponent
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    quantum = Fraction(2) ** (exponent - fmt.mantissa_bits)
    return float(round(exact / quantum) * quantum)


@pytest.mark.parametrize("dtype", [f32, tf32, bf16, f16], ids=str)
@given(words=st.lists(st.integers(0, 2**32 - 1), min_size=3, max_size=3))
def test_arithmetic_rounds_the_exact_result_once(dtype: DType, words: list[int]) -> None:
    # Mantissas and small exponents from the words: many ties, cancellations and carries, no overflow.
    numbers = [math.ldexp((word & 0xFFFFFF) - 0x800000, -20 - (word >> 29)) for word in words]
    a, b, c = (cast(np.array([number]), f64, dtype) for number in numbers)
    x, y, z = exact_value(a[0]), exact_value(b[0]), exact_value(c[0])
    results = {"add": x + y, "sub": x - y, "mul": x * y, "fma": x * y + z}
    if y:
        results["div"] = x / y
    for name, exact in results.items():
        operands = [a, b, c][: TABLE[name].arity]
        assert float(apply(name, operands, [dtype] * len(operands))[0]) == nearest(exact, dtype), name


@given(st.floats(width=64), st.floats(width=64), st.floats(width=64))
def test_fma_of_float64_is_rounded_once(a: float, b: float, c: float) -> None:
    found = float(run("fma", [f64] * 3, [a], [b], [c])[0])
    if not all(map(math.isfinite, (a, b))):
        expected = a * b + c
    elif not math.isfinite(c):
        expected = c
    else:
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        expected = (math.inf if exact > 0 else -math.inf) if abs(exact) >= 2**1024 - 2**970 else float(exact)
    assert found == expected or (math.isnan(found) and math.isnan(expected))


def test_fma_of_float32_where_two_roundings_differ_from_one() -> None:
    # Below a tie of float32, by less than float64 can tell.
    a, b, c = np.float32(2**-12 * (1 + 2**-15)), np.float32(2**-12 * (1 - 2**-15)), np.float32(1 + 2**-23)
    assert np.float32(np.float64(a) * np.float64(b) + np.float64(c)) == np.float32(1 + 2**-22)
    assert run("fma", [f32] * 3, [a], [b], [c])[0] == np.float32(1 + 2**-23)


def test_transcendentals_of_float32_are_float64_results_rounded_once() -> None:
    x = np.random.default_rng(3).uniform(-20, 20, 10_000).astype(np.float32)
    np.testing.assert_array_equal(run("exp", [f32], x), np.exp(x.astype(np.float64)).astype(np.float32))
    narrow = cast(x, f32, bf16)
    expected = cast(np.tanh(narrow.astype(np.float64)), f64, bf16)
    np.testing.assert_array_equal(apply("tanh", [narrow], [bf16]), expected)


def test_float_edges() -> None:
    inf, nan = math.inf, math.nan
    two = [f32, f32]
    np.testing.assert_array_equal(run("sigmoid", [f32], [-1e30, 1e30, -inf, inf, nan]), [0, 1, 0, 1, nan])
    np.testing.assert_array_equal(run("expm1", [f32], [1e-20, -200.0]), [np.float32(1e-20), -1])
    np.testing.assert_array_equal(run("log", [f32], [0.0, -1.0, inf]), [-inf, nan, inf])
    np.testing.assert_array_equal(run("rsqrt", [f32], [0.0, -0.0, -1.0, inf]), [inf, -inf, nan, 0])
    np.testing.assert_array_equal(run("div", two, [1.0, -1.0, 0.0], [0.0, 0.0, 0.0]), [inf, -inf, nan])
    np.testing.assert_array_equal(run("max", two, [nan, 1.0, 2.0], [1.0, nan, 3.0]), [nan, nan, 3])
    np.testing.assert_array_equal(run("min", two, [nan, 1.0, 2.0], [1.0, nan, 3.0]), [nan, nan, 2])
    np.testing.assert_array_equal(run("round", [f32], [0.5, 1.5, 2.5, -0.5]), [0, 2, 2, 0])
    np.testing.assert_array_equal(run("eq", two, [nan], [nan]), [False])
    np.testing.assert_array_equal(run("ne", two, [nan], [nan]), [True])
    np.testing.assert_array_equal(run("isinf", [f16], [inf, 1.0]), [True, False])


@pytest.mark.parametrize("dtype", [f64, f32, f16], ids=str)
@pytest.mark.parametrize("size", [1, 33])
def test_zeros_are_ordered_by_sign_in_min_and_max(dtype: DType, size: int) -> None:
    for a, b, greatest, least in [(0.0, -0.0, 0.0, -0.0), (-0.0, 0.0, 0.0, -0.0), (-0.0, -0.0, -0.0, -0.0)]:
        columns = np.full(size, a), np.full(size, b)
        assert (np.signbit(run("max", [dtype, dtype], *columns)) == np.signbit(greatest)).all()
        assert (np.signbit(run("min", [dtype, dtype], *columns)) == np.signbit(least)).all()


# Policies.


def test_saturating_types_clamp_and_plain_ones_overflow() -> None:
    assert float(run("add", [f8e4m3 @ saturate] * 2, [448.0], [448.0])[0]) == 448.0
    assert math.isnan(float(run("add", [f8e4m3] * 2, [448.0], [448.0])[0]))
    np.testing.assert_array_equal(run("mul", [i8 @ saturate] * 2, [100, -100, 3], [100, 100, 4]), [127, -128, 12])
    np.testing.assert_array_equal(run("mul", [i8] * 2, [100, -100, 3], [100, 100, 4]), [16, -16, 12])
    np.testing.assert_array_equal(run("sub", [u4 @ saturate] * 2, [3, 15], [5, 1]).astype(int), [0, 14])
    np.testing.assert_array_equal(run("abs", [i8 @ saturate], [-128]), [127])


def test_loss_scaled_values_are_computed_unscaled() -> None:
    scaled_type = f16 @ loss_scale(1024)
    stored = cast(np.array([2.0**-20, 3.0 * 2.0**-20]), f64, scaled_type)
    product = apply("mul", [stored, cast(np.array([2.0, 2.0]), f64, f16)], [scaled_type, f16])
    np.testing.assert_array_equal(cast(product, scaled_type, f64), [2.0**-19, 6.0 * 2.0**-20])


def test_stochastic_results_need_a_seed_and_repeat_under_it() -> None:
    dtype = bf16 @ stochastic_round
    one, tiny = (cast(np.full(2000, x), f64, bf16) for x in (1.0, 2.0**-9))
    with pytest.raises(DtypeError, match="seed"):
        apply("add", [one, tiny], [dtype, bf16])
    first = apply("add", [one, tiny], [dtype, bf16], seed=5)
    np.testing.assert_array_equal(first, apply("add", [one, tiny], [dtype, bf16], seed=5))
    assert (first != apply("add", [one, tiny], [dtype, bf16], seed=6)).any()
    # 2^-9 is a quarter of the step above 1.
    assert abs(float((first > 1).mean()) - 0.25) < 0.05


# Integers.


def wrap(value: int, dtype: DType) -> int:
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.kind is Kind.INT and low >> (dtype.bits - 1) else low


def shift_count(b: int, dtype: DType) -> int:
    """Counts are unsigned; all that push every bit out are alike."""
    return min(b if b >= 0 else b + (1 << 64), dtype.bits)


def integer_power(a: int, b: int) -> int:
    if b >= 0:
        return a**b
    return 0 if a == 0 else math.trunc(Fraction(1, a**-b))


INTEGER_MEANINGS: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "floordiv": lambda a, b, _: a // b if b else 0,
    "rem": lambda a, b, _: a % b if b else a,
    "pow": lambda a, b, _: integer_power(a, b),
    "min": lambda a, b, _: min(a, b),
    "max": lambda a, b, _: max(a, b),
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shl": lambda a, b, dtype: a << shift_count(b, dtype),
    "shr": lambda a, b, dtype: a >> shift_count(b, dtype),
    "neg": lambda a, _b, _: -a,
    "abs": lambda a, _b, _: abs(a),
    "sign": lambda a, _b, _: (a > 0) - (a < 0),
    "not": lambda a, _b, _: ~a,
    "floor": lambda a, _b, _: a,
    "round": lambda a, _b, _: a,
}


def check_integers(name: str, dtype: DType, a: list[int], b: list[int]) -> None:
    columns = [a, b] if TABLE[name].arity == 2 else [a]
    found = run(name, [dtype] * len(columns), *columns)
    expected = [wrap(INTEGER_MEANINGS[name](x, y, dtype), dtype) for x, y in zip(a, b, strict=True)]
    assert [int(x) for x in found] == expected


@pytest.mark.parametrize("name", INTEGER_MEANINGS)
@pytest.mark.parametrize("dtype", [i4, u4, i8, u8], ids=str)
def test_narrow_integers_are_exact_integers_that_wrap(name: str, dtype: DType) -> None:
    every = range(int(dtype.min_value), int(dtype.max_value) + 1)
    step = 1 if dtype.bits == 4 else 3
    chosen = sorted({*every[::step], *every[-2:], *(x for x in (-1, 0, 1, 2, 7, 8, 9) if x in every)})
    pairs = [(a, b) for a in chosen for b in chosen]
    check_integers(name, dtype, [a for a, _ in pairs], [b for _, b in pairs])


@given(st.data())
def test_wide_integers_are_exact_integers_that_wrap(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([dtype for dtype in INTEGERS if dtype.bits > 8]))
    name = data.draw(st.sampled_from(sorted(INTEGER_MEANINGS)))
    numbers = st.integers(int(dtype.min_value), int(dtype.max_value))
    small = st.integers(max(-70, int(dtype.min_value)), 70)
    second = small if name in ("pow", "shl", "shr") else numbers | small
    pairs = data.draw(st.lists(st.tuples(numbers | small, second), min_size=1, max_size=40))
    check_integers(name, dtype, [a for a, _ in pairs], [b for _, b in pairs])


def test_integer_fma_wraps_and_quotient_and_remainder_fit_together() -> None:
    np.testing.assert_array_equal(run("fma", [i8] * 3, [100], [2], [100]), [wrap(300, i8)])
    a = np.repeat(np.arange(-128, 128), 256)
    b = np.tile(np.arange(-128, 128), 256)
    q, r = run("floordiv", [i8, i8], a, b), run("rem", [i8, i8], a, b)
    np.testing.assert_array_equal(apply("fma", [b.astype(np.int8), q, r], [i8] * 3), a)


def test_bools_select_and_cast() -> None:
    bits = [bool_, bool_]
    np.testing.assert_array_equal(run("and", bits, [0, 1, 1], [1, 0, 1]), [False, False, True])
    np.testing.assert_array_equal(run("not", [bool_], [0, 1]), [True, False])
    np.testing.assert_array_equal(run("select", [bool_, i64, i64], [1, 0], [5, 6], [7, 8]), [5, 8])
    np.testing.assert_array_equal(run("cast", [f32], [1.7, -1.7, math.nan], to=i32), [1, -1, 0])
    chosen = run("select", [bool_, bf16, bf16], [[True], [False]], [1.5, 2.5], [3.5])
    np.testing.assert_array_equal(chosen.astype(np.float32), [[1.5, 2.5], [3.5, 3.5]])


# Derivatives.


class OnArrays:
    """A builder whose values are float64 arrays (bool ones for conditions)."""

    def __call__(self, name: str, *values: Array) -> Array:
        return apply(name, values, [bool_ if value.dtype == np.bool_ else f64 for value in values])

    def constant(self, value: float, like: Array) -> Array:
        return np.full_like(like, value)


def partials(name: str, *operands: Array) -> tuple[Array | None, ...]:
    derivative = TABLE[name].derivative
    assert derivative is not None
    ew = OnArrays()
    result = operands[0] if name == "cast" else ew(name, *operands)
    return derivative(ew, *operands, result)


DIFFERENTIABLE = [name for name in ROWS if name not in NOT_DIFFERENTIABLE and name not in ("select", "cast")]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_agree_with_central_differences(name: str) -> None:
    generator = np.random.default_rng(11)
    arity = TABLE[name].arity
    positive = name in POSITIVE | {"log1p"}
    operands = [generator.uniform(0.2 if positive else -3.0, 3.0, 400) for _ in range(arity)]
    if name in ("div", "rem", "reciprocal", "tan"):
        # Away from poles and jumps, where a difference says nothing.
        whole = {"tan": np.abs(np.cos(operands[-1])) > 0.1}.get(name, np.abs(operands[-1]) > 0.3)
        if name == "rem":
            quotient = operands[0] / operands[1]
            whole &= np.abs(quotient - np.round(quotient)) > 1e-3
        operands = [operand[whole] for operand in operands]
    found = partials(name, *operands)
    assert len(found) == arity
    step = 1e-6
    ew = OnArrays()
    for i, partial in enumerate(found):
        above, below = list(operands), list(operands)
        above[i], below[i] = operands[i] + step, operands[i] - step
        difference = (ew(name, *above) - ew(name, *below)) / (2 * step)
        assert partial is not None
        np.testing.assert_allclose(partial, difference, rtol=2e-6, atol=2e-8)


def test_derivatives_at_kinks_and_edges() -> None:
    def at(name: str, *numbers: float) -> list[float]:
        return [float(x[0]) for x in partials(name, *(np.array([n]) for n in numbers)) if x is not None]

    assert at("abs", 0.0) == [0.0]
    assert at("max", 2.0, 2.0) == [0.5, 0.5]
    assert at("min", 2.0, 2.0) == [0.5, 0.5]
    assert at("min", 1.0, 2.0) == [1.0, 0.0]
    assert at("pow", 0.0, 0.0) == [0.0, 0.0]
    assert at("pow", 0.0, 2.0) == [0.0, 0.0]
    assert at("pow", -2.0, 3.0)[0] == 12.0
    assert at("sigmoid", 800.0) == [0.0]
    assert at("sigmoid", -700.0)[0] == pytest.approx(math.exp(-700.0))
    assert at("expm1", -50.0)[0] == pytest.approx(math.exp(-50.0))
    assert at("tanh", 50.0) == [0.0]
    assert at("erf", 100.0) == [0.0]


def test_select_and_cast_pass_derivatives_on() -> None:
    condition, x = np.array([True, False]), np.array([3.0, 4.0])
    none, by_a, by_b = partials("select", condition, x, x)
    assert none is None
    np.testing.assert_array_equal(by_a, [1, 0])  # pyright: ignore[reportArgumentType]  # float rows give arrays
    np.testing.assert_array_equal(by_b, [0, 1])  # pyright: ignore[reportArgumentType]  # float rows give arrays
    (by_x,) = partials("cast", x)
    np.testing.assert_array_equal(by_x, [1, 1])  # pyright: ignore[reportArgumentType]  # float rows give arrays
