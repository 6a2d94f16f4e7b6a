"""Random programs against NumPy in float64: no result is wrong, and no exception leaves the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bounded_values import Bounded
from numpy_programs import Program, draw_program

import tessera as ts
from tessera import knobs

QUICK, PART, PARTS = 300, 50, 100
"""So many programs, half of them in the quick suite; so many in each part of the acceptance, and so many parts."""


def interpreted(program: Program) -> Sequence[Any]:
    with knobs.backend.using("interpreter"):
        return ts.jit(program.function())(*program.arguments.values())


def compiled(program: Program) -> Sequence[Any]:
    """As machine code: a fault of the compiler would be a warning, which is an error here. A refusal may be."""
    return ts.jit(program.function())(*program.arguments.values())


def compiled_at_once(program: Program) -> Sequence[Any]:
    with knobs.optimization.using(0):
        return compiled(program)


def eager(program: Program) -> Sequence[Any]:
    return program.function()(*program.arguments.values())


WAYS = {"interpreted": interpreted, "compiled": compiled, "compiled at once": compiled_at_once, "eager": eager}


def check(seed: int, way: str) -> None:
    """Runs a program; of one that fails, the smallest part that does is told."""
    program = draw_program(seed)
    try:
        program.check(WAYS[way](program))
    except Exception as first:
        for part in (program.of((name,)) for line in program.lines for name in line.made):
            try:
                part.check(WAYS[way](part))
            except Exception as problem:
                raise AssertionError(f"{way}: {type(problem).__name__}: {problem}\n{part.described()}") from problem
        raise AssertionError(f"{way}: {type(first).__name__}: {first}\n{program.described()}") from first


def way_of(seed: int) -> str:
    """Most quick programs are small change for the interpreter; some are compiled, a few run operator by operator."""
    return "compiled" if seed % 15 == 3 else "eager" if seed % 50 == 7 else "interpreted"


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "part", [*range(3), *(pytest.param(part, marks=pytest.mark.acceptance) for part in range(3, 10))]
)
def test_three_hundred_programs(part: int) -> None:
    for seed in range(part * QUICK // 10, (part + 1) * QUICK // 10):
        check(seed, way_of(seed))


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(PARTS))
def test_five_thousand_programs(part: int) -> None:
    for seed in range(100_000 + part * PART, 100_000 + (part + 1) * PART):
        check(seed, "compiled" if seed % 4 else "compiled at once")
        if seed % 5 == 0:
            check(seed, "eager")
        if seed % 5 == 1:
            check(seed, "interpreted")


def test_programs_are_of_many_kinds() -> None:
    """What is drawn has empty arrays, all kinds of types, views, and most operators."""
    programs = [draw_program(seed) for seed in range(QUICK)]
    text = "\n".join(program.source for program in programs)
    assert sum(f"ts.{name}(" in text for name in dir(ts)) > 60
    values = [program.values[name] for program in programs for line in program.lines for name in line.made]
    assert {value.dtype for value in values} >= {"f32", "f64", "f16", "bf16", "i32", "i64", "i8", "u8", "bool"}
    assert sum(0 in value.shape for value in values) > 30
    assert sum(1 in value.shape for value in values) > 100
    strides = [argument.strides for program in programs for argument in program.arguments.values()]
    assert sum(any(stride <= 0 for stride in one) for one in strides) > 100


@pytest.mark.parametrize("wrong", ["value", "type", "shape"])
def test_wrong_results_are_found(wrong: str) -> None:
    program = next(one for one in map(draw_program, range(100)) if one.values[one.results[0]].exact.size)
    name = program.results[0]
    value = program.values[name]
    moved = {
        "value": Bounded(value.exact + (value.exact == value.exact.max()) * 100, value.error, value.dtype),
        "type": Bounded(value.exact, value.error, "f64" if value.dtype != "f64" else "f32"),
        "shape": Bounded(np.expand_dims(value.exact, 0), np.expand_dims(value.error, 0), value.dtype),
    }
    found = interpreted(program)
    program.check(found)
    program.values[name] = moved[wrong]
    with pytest.raises(AssertionError, match=name):
        program.check(found)
