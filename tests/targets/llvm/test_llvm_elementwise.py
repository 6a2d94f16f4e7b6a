"""The elementwise table in machine code against its reference: every row and type, all levels and numbers of lanes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from llvm_loops import HERE, LANES, WIDTH, Array, Body, Loops, difference, elements, padded, special, words

from tessera.dtypes.casting import cast
from tessera.dtypes.promotion import accumulator
from tessera.dtypes.types import (
    ALL,
    INTEGERS,
    DType,
    accum,
    bf16,
    bool_,
    f8e4m3,
    f16,
    f32,
    f64,
    i4,
    i8,
    i16,
    i32,
    i64,
    loss_scale,
    saturate,
    stochastic_round,
    tf32,
    u4,
    u8,
    u16,
    u64,
)
from tessera.errors import CompileError, DtypeError
from tessera.ir.common import elementwise as table
from tessera.ir.common import reductions
from tessera.targets.llvm import elementwise, mathematics
from tessera.targets.llvm.elements import fuses, is_arm
from tessera.targets.llvm.text import Function, Module, Value

POLICIES = (
    *(dtype @ saturate for dtype in (f64, f32, bf16, f16, f8e4m3, i32, i16, i8, i4, u16, u8, u4)),
    *(dtype @ loss_scale(1024.0) for dtype in (f32, bf16, f16)),
    f16 @ accum(f32),
)
Case = tuple[str, tuple[DType, ...], DType]


def operand_types(name: str, dtype: DType) -> tuple[DType, ...]:
    return (bool_, dtype, dtype) if name == "select" else (dtype,) * table.TABLE[name].arity


@cache
def cases() -> list[Case]:
    """Every row with every type that it takes; casts have tests of their own."""
    found: list[Case] = []
    for name in table.TABLE:
        for dtype in (*ALL, *POLICIES):
            dtypes = operand_types(name, dtype)
            try:
                table.apply(name, [np.zeros(1, one.storage) for one in dtypes], dtypes)
            except DtypeError:
                continue
            found.append((name, dtypes, table.result_dtype(name, dtypes)))
    return found


@cache
def operands(dtypes: tuple[DType, ...]) -> list[Array]:
    """One operand: all elements. More: special values in every combination, and random choices from all elements."""
    if len(dtypes) == 1:
        return [elements(dtypes[0])]
    random = np.random.default_rng(len(dtypes))
    # Sums of products in f64 are exact fractions in the reference, which takes its time.
    count = 500 if len(dtypes) == 3 and dtypes[0].base is f64 else 3000
    grids = np.meshgrid(*(np.arange(special(dtype).size) for dtype in dtypes), indexing="ij")
    picked = random.permutation(grids[0].size)[:3000]
    found: list[Array] = []
    for dtype, grid in zip(dtypes, grids, strict=True):
        drawn, near = random.choice(elements(dtype), count), random.choice(special(dtype), count)
        if dtype.is_float:
            near = cast(random.uniform(-20, 20, count), f64, dtype.base)
        found.append(padded(np.concatenate([special(dtype)[grid.reshape(-1)[picked]], drawn, near])))
    return found


def body_of(name: str, dtypes: Sequence[DType], result: DType, level: str) -> Body:
    def body(f: Function, values: list[Value]) -> Value:
        return elementwise.apply(f, name, values, dtypes, result, level)

    return body


@np.errstate(all="ignore")
def agreement(name: str, result: DType, got: Array, wanted: Array, given: Sequence[Array]) -> str:
    """What is wrong with a result: NaN counts as NaN, and functions without an instruction may miss by a little."""
    if not result.is_float:
        return difference(got, wanted, *given)
    wide, expected = got.astype(np.float64), wanted.astype(np.float64)
    equal = (words(got) == words(wanted)) | (np.isnan(wide) & np.isnan(expected))
    if name == "copysign" and result.bits < 16:
        # A NaN of so few bits has no sign to speak of: casts of machines do not keep it.
        equal |= np.isnan(given[1].astype(np.float64)) & (np.abs(wide) == np.abs(expected))
    if name in mathematics.F32:
        steps = np.abs(_order(got) - _order(wanted))
        equal |= steps <= _allowed(result)
        # With a loss scale, a result that was subnormal in f32 is scaled up together with its error.
        scale = result.policy.loss_scale or 1.0
        equal |= np.abs(wide - expected) <= 4 * scale * np.spacing(np.abs(expected / scale).astype(np.float32))
    return difference(np.where(equal, words(wanted), words(got)), words(wanted), *given)


def _order(array: Array) -> Array:
    """Numbers for the codes of a float format in which neighbours are one apart, but only where there is no NaN."""
    code = words(array).astype(np.int64)
    sign = np.int64(-1 << (8 * array.dtype.itemsize - 1))
    if array.dtype.itemsize == 8:
        return np.where(code < 0, sign - code, code)
    return np.where(code & -sign, -sign - code, code)


def _allowed(result: DType) -> int:
    """Codes that a function may miss by: 4 in f32 and f64; a narrower result is off by one where it is nearly a tie."""
    return {f32: 4, f64: 4, tf32: 1 << 13}.get(result.base, 1)


def check(level: str, todo: Iterable[tuple[Case, int]]) -> int:
    loops = Loops(level)
    named: dict[str, Case] = {}
    for case, lanes in todo:
        name, dtypes, result = case
        called = f"{name}{len(named)}"
        loops.add(called, dtypes, result, lanes, body_of(name, dtypes, result, level))
        named[called] = case
    failures: list[str] = []
    for called, (name, dtypes, result) in named.items():
        given = operands(dtypes)
        said = agreement(name, result, loops.run(called, *given), table.apply(name, given, dtypes), given)
        if said:
            failures.append(f"{name} on {', '.join(map(str, dtypes))} at {level}: {said}")
    assert failures == []
    return len(named)


def test_every_row_is_there() -> None:
    assert {*elementwise.TABLE, "select", "cast"} == set(table.TABLE)
    assert {name for name, _, _ in cases()} == set(table.TABLE) - {"cast"}


def test_rules_are_there_for_the_kinds_that_rows_take() -> None:
    for name, dtypes, _ in cases():
        if name != "select":
            rule = elementwise.TABLE[name]
            assert (rule.floats if dtypes[0].is_float else rule.integers) is not None, name


@pytest.mark.quick(1)
@pytest.mark.parametrize("level", HERE)
def test_rows_have_the_bits_of_the_reference(level: str) -> None:
    """A quarter of the rows and types, each at one of the levels, with one of the numbers of lanes."""
    mine = cases()[HERE.index(level) :: 4 * len(HERE)]
    assert check(level, ((case, LANES[at % len(LANES)]) for at, case in enumerate(mine))) == len(mine)


@pytest.mark.acceptance
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("level", HERE)
def test_all_rows_at_all_levels(level: str, lanes: int) -> None:
    assert check(level, ((case, lanes) for case in cases())) > 1000


@pytest.mark.acceptance
@pytest.mark.parametrize("level", HERE)
@pytest.mark.parametrize("lanes", [2, 3, 12, 64])
def test_other_numbers_of_lanes(level: str, lanes: int) -> None:
    """Arrays end on a multiple of the lanes or not at all, so these run on a common multiple."""
    chosen = [case for case in cases() if case[1][-1] in (f32, bf16, i32, i8)]
    loops = Loops(level)
    for at, (name, dtypes, result) in enumerate(chosen):
        loops.add(f"{name}{at}", dtypes, result, lanes, body_of(name, dtypes, result, level))
    for at, (name, dtypes, result) in enumerate(chosen):
        given = [array[: array.size // 192 * 192] for array in operands(dtypes)]
        said = agreement(name, result, loops.run(f"{name}{at}", *given), table.apply(name, given, dtypes), given)
        assert said == "", f"{name} on {dtypes} at {level}"


# Any operands

TWO = ("add", "sub", "mul", "floordiv", "rem", "min", "max", "shl", "shr", "pow", "lt", "eq")


@cache
def integer_rows(level: str) -> Loops:
    loops = Loops(level)
    for dtype in INTEGERS:
        for name in TWO:
            result = table.result_dtype(name, [dtype] * 2)
            loops.add(f"{name}_{dtype}", [dtype] * 2, result, 8, body_of(name, [dtype] * 2, result, level))
    return loops


@st.composite
def integer_operands(draw: st.DrawFn) -> tuple[DType, list[Array]]:
    dtype = draw(st.sampled_from(INTEGERS))
    wide = u64 if dtype.min_value == 0 else i64
    numbers = st.integers(int(dtype.min_value), int(dtype.max_value))
    drawn = [draw(arrays.arrays(wide.storage, WIDTH, elements=numbers)) for _ in range(2)]
    return dtype, [cast(array, wide, dtype) for array in drawn]


@settings(max_examples=60)
@given(integer_operands(), st.sampled_from((HERE[0], HERE[-1])))
def test_any_integers_give_the_same(drawn: tuple[DType, list[Array]], level: str) -> None:
    dtype, given = drawn
    for name in TWO:
        got = integer_rows(level).run(f"{name}_{dtype}", *given)
        assert difference(got, table.apply(name, given, [dtype] * 2), *given) == "", name


FLOAT_ROWS = ("add", "sub", "mul", "div", "floordiv", "rem", "min", "max", "copysign", "fma", "le")


@cache
def float_rows(level: str) -> Loops:
    loops = Loops(level)
    for dtype in (f64, f32, bf16, f16, f8e4m3):
        for name in FLOAT_ROWS:
            dtypes = operand_types(name, dtype)
            result = table.result_dtype(name, dtypes)
            loops.add(f"{name}_{dtype}", dtypes, result, 16, body_of(name, dtypes, result, level))
    return loops


@settings(max_examples=60)
@given(
    st.sampled_from((f64, f32, bf16, f16, f8e4m3)),
    arrays.arrays(np.uint64, 3 * WIDTH),
    st.sampled_from((HERE[0], HERE[-1])),
    st.booleans(),
)
def test_any_floats_give_the_same(dtype: DType, bits: Array, level: str, alike: bool) -> None:
    size = dtype.storage.itemsize
    if alike:
        # Close exponents, where sums cancel and quotients are small.
        bits = bits & np.uint64(0x800FFFFFFFFFFFFF) | np.uint64(0x3FF0000000000000)
        values = cast(bits.view(np.float64), f64, dtype)
    else:
        values = (bits >> np.uint64(64 - 8 * size)).astype(f"u{size}").view(dtype.storage)
    for name in FLOAT_ROWS:
        dtypes = operand_types(name, dtype)
        given = [values[at * WIDTH :][:WIDTH] for at in range(len(dtypes))]
        got = float_rows(level).run(f"{name}_{dtype}", *given)
        wanted = table.apply(name, given, dtypes)
        assert agreement(name, table.result_dtype(name, dtypes), got, wanted, given) == "", name


# Liberties that callers may grant


@pytest.mark.parametrize("level", HERE)
@pytest.mark.parametrize("dtype", [f32, f64])
def test_contracted_sums_of_products_are_rounded_once(level: str, dtype: DType) -> None:
    def body(f: Function, values: list[Value]) -> Value:
        a, b, c = values
        product = elementwise.apply(f, "mul", [a, b], [dtype] * 2, dtype, level, contract=True)
        return elementwise.apply(f, "add", [product, c], [dtype] * 2, dtype, level, contract=True)

    loops = Loops(level)
    loops.add("sums", [dtype] * 3, dtype, 16, body)
    random = np.random.default_rng(0)
    given = [random.uniform(-2, 2, 640).astype(dtype.storage) for _ in range(3)]
    once = table.apply("fma", given, [dtype] * 3)
    product = table.apply("mul", given[:2], [dtype] * 2)
    twice = table.apply("add", [product, given[2]], [dtype] * 2)
    assert (once != twice).any()
    assert difference(loops.run("sums", *given), once if fuses(level) else twice, *given) == ""


@pytest.mark.parametrize("level", HERE)
def test_extremes_without_nan_are_one_instruction_each(level: str) -> None:
    loops = Loops(level)
    for name in ("max", "min"):
        loops.add(
            name, [f32] * 2, f32, 16, lambda f, x, n=name: elementwise.apply(f, n, x, [f32] * 2, f32, level, nnan=True)
        )
    a, b = operands((f32, f32))
    plain = ~(np.isnan(a) | np.isnan(b)) & ((a != 0) | (b != 0))
    given = [padded(a[plain]), padded(b[plain])]
    for name in ("max", "min"):
        assert difference(loops.run(name, *given), table.apply(name, given, [f32] * 2), *given) == ""
    # AArch64 has an instruction for what IEEE 754 calls maximum, and needs three for a choice.
    assert ("llvm.maximum" in loops.module.text()) == is_arm(level)


# Reductions

FOLDED = [
    (kind, dtype)
    for kind, row in reductions.TABLE.items()
    for dtype in (f64, f32, i32, u64, i8, bool_)
    if dtype.kind in row.kinds
]


@pytest.mark.parametrize("level", HERE)
def test_lanes_are_folded_into_one(level: str) -> None:
    """Lanes that are no power of two, too. Numbers are whole and few, so that no order of adding them shows."""
    loops = Loops(level)
    widths = (1, 2, 3, 7, 16, 32)
    for kind, dtype in FOLDED:
        for lanes in widths:

            def body(f: Function, x: list[Value], kind: str = kind, dtype: DType = dtype, lanes: int = lanes) -> Value:
                part = f.shuffle(x[0], None, range(lanes)) if lanes < WIDTH else x[0]
                scalar = elementwise.fold(f, kind, part if lanes > 1 else f.lane(part, 0), dtype, level)
                return f.splat(scalar, WIDTH)

            loops.add(f"{kind}_{dtype}_{lanes}", [dtype], dtype, WIDTH, body)
    random = np.random.default_rng(5)
    for kind, dtype in FOLDED:
        low = 0 if dtype.min_value == 0 else -2
        numbers = (
            random.integers(low, 3, (20, WIDTH)) if kind not in ("max", "min") else random.integers(0, 90, (20, 32))
        )
        values = cast(numbers.reshape(-1), i64, dtype)
        for lanes in widths:
            got = loops.run(f"{kind}_{dtype}_{lanes}", values).reshape(20, WIDTH)
            wanted = reductions.apply(kind, values.reshape(20, WIDTH)[:, :lanes], dtype, [1])
            assert (got == wanted[:, None]).all(), (kind, dtype, lanes)


@pytest.mark.parametrize("level", HERE)
def test_extremes_of_lanes_find_nan_and_the_sign_of_zero(level: str) -> None:
    loops = Loops(level)
    for kind in ("max", "min"):
        loops.add(kind, [f32], f32, 16, lambda f, x, k=kind: f.splat(elementwise.fold(f, k, x[0], f32, level), 16))
    random = np.random.default_rng(6)
    values = random.choice(np.array([0.0, -0.0, -1.0, np.nan], np.float32), (200, 16), p=[0.02, 0.5, 0.47, 0.01])
    values = np.concatenate([values, -values])
    for kind in ("max", "min"):
        got = loops.run(kind, values.reshape(-1)).reshape(400, 16)[:, 0]
        wanted = reductions.apply(kind, values, f32, [1])
        assert agreement(kind, f32, got, wanted, [got]) == ""


@pytest.mark.parametrize("kind", reductions.TABLE)
def test_reductions_start_from_what_changes_nothing(kind: str) -> None:
    level = HERE[-1]
    loops = Loops(level)
    dtypes = [dtype for dtype in ALL if dtype.kind in reductions.TABLE[kind].kinds and dtype is accumulator(dtype)]
    dtypes += [dtype for dtype in (bf16, f16, i8, u8, bool_) if dtype.kind in reductions.TABLE[kind].kinds]
    for dtype in dtypes:

        def body(f: Function, x: list[Value], dtype: DType = dtype) -> Value:
            start = elementwise.identity(kind, dtype, 8)
            return elementwise.combine(f, kind, start, x[0], dtype, level)

        loops.add(dtype.name, [dtype], dtype, 8, body)
    for dtype in dtypes:
        values = elements(dtype)
        # 0 + −0 is +0.
        with np.errstate(invalid="ignore"):
            wanted = np.where(values == 0, values.dtype.type(0), values) if kind == "sum" else values
        assert agreement(kind, dtype, loops.run(dtype.name, values), wanted, [values]) == ""


# Refusals


def apply_to_scalars(name: str, dtypes: Sequence[DType], result: DType) -> None:
    from tessera.targets.llvm.elements import register_type

    f = Module().function("f", [(register_type(dtype), f"x{at}") for at, dtype in enumerate(dtypes)])
    elementwise.apply(f, name, f.arguments, dtypes, result, "base")


def test_a_result_of_another_type_is_refused() -> None:
    with pytest.raises(CompileError, match="add on f32, f32 gives f32, and f16 was expected"):
        apply_to_scalars("add", [f32, f32], f16)


def test_random_rounding_is_refused() -> None:
    noisy = bf16 @ stochastic_round
    for name in ("add", "select"):
        with pytest.raises(CompileError, match="rounds at random"):
            apply_to_scalars(name, operand_types(name, noisy), noisy)


def test_what_the_table_refuses_is_refused_here() -> None:
    with pytest.raises(DtypeError):
        apply_to_scalars("exp", [i32], i32)
    with pytest.raises(DtypeError):
        apply_to_scalars("add", [u64 @ saturate] * 2, u64 @ saturate)


def test_functions_take_floats_only() -> None:
    f = Module().function("f", [("i32", "x")])
    with pytest.raises(CompileError, match="exp is not computed on i32"):
        mathematics.compute(f, "exp", f.arguments, "base")
