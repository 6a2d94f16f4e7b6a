"""Random programs: compiled for the CPU, eager and by the interpreter, they give the same; on a GPU, a sample does."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from random_programs import Program, agree, programs

import tessera as ts
from tessera import knobs

relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def interpreted(program: Program, arguments: list[Any]) -> list[Any]:
    with knobs.backend.using("interpreter"):
        return ts.jit(program.__call__)(*arguments)


def fallbacks(compiled: Any) -> list[str]:
    """Why programs were left to the interpreter."""
    return [one.fallback for family in compiled.families.values() for one in family.variants if one.fallback]


def check(
    program: Program, seed: int, *, device: str = "cpu", eager: bool = False, many: bool = True, donate: bool = False
) -> None:
    compiled = ts.jit(program.__call__, donate_argnums=0 if donate else ())  # all of them
    # The second size makes the first axis a symbol.
    for first in (None, 5) if many else (None,):
        arguments = program.draw(seed, first)
        expected = interpreted(program, arguments)
        on_device = [(ts.array(argument) if donate else argument).to(device) for argument in arguments]
        agree([one.cpu() for one in compiled(*on_device)], expected, program.narrow)
        assert fallbacks(compiled) == []
        if eager and first is None:
            with knobs.eager_elements.using(0):  # Python's operators are programs, too
                agree([one.cpu() for one in program(*on_device)], expected, program.narrow)


@settings(relaxed, max_examples=10)
@given(program=programs(least=2, most=5))
def test_compiled_programs_are_interpreted_ones(program: Program) -> None:
    check(program, 1, many=len(program.steps) == 3)


def _gathered(x: Any) -> Any:
    return ts.sort(x, axis=1)


def _squared(x: Any) -> Any:
    return ts.matmul(ts.tanh(x), ts.matrix_transpose(ts.tanh(x)))


def _cut(x: Any) -> Any:
    return ts.rmsnorm_safe(x)[..., 1::2]


def _topped(x: Any) -> Any:
    return ts.concat([ts.exp(x), ts.max(x, axis=1, keepdims=True)], axis=1)


@pytest.mark.parametrize(
    ("function", "shape"),
    [(_gathered, (7, 1, 1)), (_squared, (4, 1, 2)), (_cut, (4, 2)), (_topped, (2, 3))],
    ids=["looked up", "itself", "single elements", "beside its own rows"],
)
def test_programs_that_once_had_no_machine_code(function: Any, shape: tuple[int, ...]) -> None:
    """Indices that are looked up, a value that meets itself, rows of which one element is read, or all and more."""
    x, compiled = ts.randn(shape, seed=1), ts.jit(function)
    with knobs.backend.using("interpreter"):
        expected = ts.jit(function)(x)
    agree([compiled(x)], [expected], narrow=False)
    assert fallbacks(compiled) == []


@settings(relaxed, max_examples=1)
@given(program=programs(most=8))
def test_eager_programs_are_interpreted_ones(program: Program) -> None:
    check(program, 2, eager=True)


PARTS = 50
"""So many tests, each with its own share of programs: they may run side by side."""


def run_part(part: int, count: int, seed: int, **options: Any) -> None:
    """One share of `count` programs in all."""

    @hypothesis.seed(1000 * seed + part)
    # Compiling is slow: the first program that fails is told as it is, without a search for a smaller one.
    @settings(relaxed, max_examples=count // PARTS, derandomize=False, database=None, phases=[Phase.generate])
    @given(program=programs(least=10, most=25))
    def run(program: Program) -> None:
        check(program, seed, **options)

    run()


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(PARTS))
def test_a_thousand_programs(part: int) -> None:
    run_part(part, 1000, 3)


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(PARTS))
def test_a_hundred_eager_programs(part: int) -> None:
    run_part(part, 100, 4, eager=True)


@pytest.mark.acceptance
@pytest.mark.parametrize("part", range(PARTS))
def test_a_hundred_programs_that_may_overwrite_their_arguments(part: int) -> None:
    run_part(part, 100, 6, donate=True)


@pytest.mark.gpu
@pytest.mark.parametrize("part", range(PARTS))
def test_two_hundred_programs_on_a_gpu(part: int) -> None:
    run_part(part, 200, 5, device="cuda:0")
