"""Casts in machine code, bit for bit against the reference: all pairs of types, levels and numbers of lanes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from llvm_loops import HERE, LANES, WIDTH, Array, Body, Loops, difference, elements, special, words

from tessera.dtypes import casting
from tessera.dtypes.types import (
    ALL,
    DType,
    accum,
    bf16,
    bool_,
    f4e2m1,
    f6e2m3,
    f8e4m3,
    f8e5m2,
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
    scaled,
    stochastic_round,
    tf32,
    u4,
    u8,
    u16,
    u32,
    u64,
)
from tessera.errors import CompileError
from tessera.targets.llvm.casts import cast, fast_bf16
from tessera.targets.llvm.elements import constant, decode, memory_type, reaches, register_type
from tessera.targets.llvm.text import Function, Module, Value

POLICIES = (
    *(dtype @ saturate for dtype in (f64, f32, tf32, bf16, f16, f8e5m2, f8e4m3, f4e2m1)),
    *(dtype @ saturate for dtype in (i64, i32, i16, i8, i4, u64, u32, u16, u8, u4)),
    *(dtype @ loss_scale(1024.0) for dtype in (f64, f32, tf32, bf16, f16, f8e4m3)),
    f16 @ loss_scale(2.0**-7) @ saturate,
    f32 @ loss_scale(2.0**-140),
    f64 @ loss_scale(2.0**-1074),
    f64 @ loss_scale(2.0**1000),
    bf16 @ accum(f32),
)
PAIRS = [
    *product(ALL, ALL),
    *product(POLICIES, (f64, f32, bf16, f16, f6e2m3, i8, u64, bool_)),
    *product((f64, f32, f16, f8e5m2, f4e2m1, i64, u32, i8, u4, bool_), POLICIES),
]


def caster(source: DType, target: DType, level: str) -> Body:
    def body(f: Function, operands: list[Value]) -> Value:
        return cast(f, operands[0], source, target, level)

    return body


def check(level: str, cases: Iterable[tuple[DType, DType, int]]) -> int:
    """Compiles all the casts together and compares them with the reference; says how many there were."""
    loops = Loops(level)
    todo: dict[str, tuple[DType, DType]] = {}
    for source, target, lanes in cases:
        name = f"cast{len(todo)}"
        loops.add(name, [source], target, lanes, caster(source, target, level))
        todo[name] = source, target
    failures: list[str] = []
    for name, (source, target) in todo.items():
        values = elements(source)
        said = difference(loops.run(name, values), casting.cast(values, source, target), values)
        if said:
            failures.append(f"{source} to {target} at {level}: {said}")
    assert failures == []
    return len(todo)


@pytest.mark.quick(1)
@pytest.mark.parametrize("level", HERE)
def test_casts_have_the_bits_of_the_reference(level: str) -> None:
    """A quarter of the pairs, each at one of the levels, with one of the numbers of lanes."""
    mine = PAIRS[HERE.index(level) :: 4 * len(HERE)]
    assert check(level, [(*pair, LANES[at % len(LANES)]) for at, pair in enumerate(mine)]) == len(mine)


@pytest.mark.acceptance
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("level", HERE)
def test_all_casts_at_all_levels(level: str, lanes: int) -> None:
    pairs = [*PAIRS, *product(POLICIES, POLICIES)]
    assert check(level, [(*pair, lanes) for pair in pairs]) == len(pairs)


WIDE = (f64, f32, i64, u64, i32)
TARGETS = (f64, f32, tf32, bf16, f16, f8e5m2, f8e4m3, f6e2m3, f4e2m1, i32, u32, i8, u64, f16 @ saturate)


@cache
def wide_casts(level: str) -> Loops:
    loops = Loops(level)
    for source, target in product(WIDE, TARGETS):
        loops.add(
            f"{source}_{target.name}_{target.policy.saturate}", [source], target, 8, caster(source, target, level)
        )
    return loops


@st.composite
def runs_of_bits(draw: st.DrawFn) -> tuple[DType, Array]:
    source = draw(st.sampled_from(WIDE))
    drawn = draw(arrays.arrays(f"u{source.storage.itemsize}", WIDTH))
    return source, drawn.view(source.storage)


@settings(max_examples=60)
@given(runs_of_bits(), st.sampled_from((HERE[0], HERE[-1])))
def test_any_bits_are_cast_alike(run: tuple[DType, Array], level: str) -> None:
    source, values = run
    for target in TARGETS:
        got = wide_casts(level).run(f"{source}_{target.name}_{target.policy.saturate}", values)
        assert difference(got, casting.cast(values, source, target), values) == ""


def test_the_comparison_notices_one_wrong_bit() -> None:
    """The tests above rest on it."""
    loops = Loops(HERE[0])
    loops.add("wrong", [f32], bf16, 4, lambda f, x: f.convert("trunc", f.convert("bitcast", x[0], "i32"), "i16"))
    values = elements(f32)
    assert "differ, first" in difference(loops.run("wrong", values), casting.cast(values, f32, bf16), values)


# Constants


@pytest.mark.parametrize("dtype", [*ALL, f16 @ saturate, i8 @ saturate, f32 @ loss_scale(8.0)])
def test_literals_are_rounded_as_casts_are(dtype: DType) -> None:
    numbers = [0, 1, -1, 3, 300, 1.0, -0.0, 0.1, -2.5, 1e300, float("inf"), float("nan"), True]
    loops = Loops(HERE[0])
    for at, number in enumerate(numbers):
        loops.add(f"n{at}", [bool_], dtype, 4, lambda _, __, number=number: constant(number, dtype, 4))
    for at, number in enumerate(numbers):
        wide = {float: f64, int: i64, bool: bool_}[type(number)]
        wanted = casting.cast(np.full(WIDTH, number, wide.storage), wide, dtype)
        assert difference(loops.run(f"n{at}", np.zeros(WIDTH, bool)), wanted) == ""


@pytest.mark.parametrize("dtype", ALL)
def test_types_in_registers_and_memory(dtype: DType) -> None:
    size = 8 * dtype.storage.itemsize
    assert memory_type(dtype, 16) == {f32: "<16 x float>", tf32: "<16 x float>", f64: "<16 x double>"}.get(
        dtype, f"<16 x i{size}>"
    )
    assert register_type(dtype) == ("i1" if dtype is bool_ else memory_type(dtype))


# What matrix products may do


@pytest.mark.parametrize("level", [level for level in HERE if reaches(level, "amx")])
@pytest.mark.parametrize("lanes", [16, 32])
def test_operands_of_products_lose_only_subnormal_numbers(level: str, lanes: int) -> None:
    loops = Loops(level)
    loops.add("fast", [f32], bf16, lanes, lambda f, x: cast(f, x[0], f32, bf16, level, dot_only=True))
    values = elements(f32)
    got, wanted = loops.run("fast", values), casting.cast(values, f32, bf16)
    small = np.abs(values) < 2.0**-126
    number = ~np.isnan(values)
    assert difference(got[number & ~small], wanted[number & ~small], values[number & ~small]) == ""
    assert np.isnan(got[~number].astype(np.float32)).all()
    assert (words(got[small]) & 0x7FFF == 0).all()
    assert small.sum() > 100


@pytest.mark.parametrize("level", HERE)
def test_other_casts_for_products_are_exact(level: str) -> None:
    loops = Loops(level)
    loops.add("f16", [f32], f16, 16, lambda f, x: cast(f, x[0], f32, f16, level, dot_only=True))
    loops.add("bf16", [f32], bf16, 8, lambda f, x: cast(f, x[0], f32, bf16, level, dot_only=True))
    values = elements(f32)
    for target in (f16, bf16):
        assert difference(loops.run(target.name, values), casting.cast(values, f32, target), values) == ""


# Refusals


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        (f32, bf16 @ stochastic_round, "rounds at random"),
        (f32, i8 @ scaled(0), "scales of the whole array"),
        (i8 @ scaled(0), f32, "scales of the whole array"),
    ],
)
def test_casts_that_need_more_than_an_element_are_refused(source: DType, target: DType, says: str) -> None:
    f = Module().function("f", [(register_type(source), "x")])
    with pytest.raises(CompileError, match=says):
        cast(f, f.arguments[0], source, target, "base")


def test_unknown_levels_are_refused() -> None:
    f = Module().function("f", [("i16", "x")])
    with pytest.raises(CompileError, match="levels are base, avx2, avx512, amx, neon"):
        decode(f, f.arguments[0], f16, "sse9")


def test_quick_rounding_needs_its_instruction() -> None:
    f = Module().function("f", [("<16 x float>", "x")])
    with pytest.raises(CompileError, match="level amx"):
        fast_bf16(f, f.arguments[0], None, "avx512")


def test_every_type_has_special_elements() -> None:
    assert {dtype.name for dtype in ALL if special(dtype).size < 2} == set()
