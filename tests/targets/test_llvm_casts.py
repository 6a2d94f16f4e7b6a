"""Casts in machine code, bit for bit against the reference: all pairs of types, levels and numbers of lanes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from llvm_loops import HERE, LANES, WIDTH, Array, Loops, difference, elements, special, words

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
from tessera.targets.llvm.casts import cast
from tessera.targets.llvm.elements import decode, fast_bf16, literal, memory_type, reaches, register_type
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
PAIRS = [*product(ALL, ALL), *product(POLICIES, (f64, f32, bf16, f16, f6e2m3, i8, u64, bool_))]
PAIRS += [*product((f64, f32, f16, f8e5m2, f4e2m1, i64, u32, i8, u4, bool_), POLICIES), *product(POLICIES, POLICIES)]


def check(level: str, cases: Iterable[tuple[DType, DType, int]]) -> int:
    """Compiles all the casts together and compares them with the reference; says how many there were."""
    loops = Loops(level)
    todo: list[tuple[str, DType, DType]] = []
    for source, target, lanes in cases:
        name = f"from_{len(todo)}"
        loops.add(name, [source], target, lanes, _caster(source, target, level))
        todo.append((name, source, target))
    failures: list[str] = []
    for name, source, target in todo:
        given = elements(source)
        said = difference(loops.run(name, given), casting.cast(given, source, target), given)
        if said:
            failures.append(f"{source} to {target} at {level}: {said}")
    assert failures == []
    return len(todo)


def _caster(source: DType, target: DType, level: str):  # noqa: ANN202
    def body(f: Function, operands: list[Value]) -> Value:
        return cast(f, operands[0], source, target, level)

    return body


@pytest.mark.parametrize("level", HERE)
def test_casts_have_the_bits_of_the_reference(level: str) -> None:
    """Each pair at one of the levels, with one of the numbers of lanes."""
    turn = HERE.index(level)
    mine = [pair for at, pair in enumerate(PAIRS) if at % len(HERE) == turn]
    cases = [(*pair, LANES[at % len(LANES)]) for at, pair in enumerate(mine)]
    assert check(level, cases) >= len(PAIRS) // len(HERE)
