"""Checks of derivatives in f64: forwards and backwards against each other and against differences, to second order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lambdas import Function

import tessera as ts
from tessera import knobs

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A function of f64 arrays of these shapes; `draw` makes elements of normal numbers."""

    name: str
    function: Function
    shapes: tuple[Shape, ...]
    draw: Callable[[Array], Array] = lambda normal: normal
    second: bool = True
    """Whether its gradient is compared with differences, too: not where it jumps."""

    def arguments(self, seed: int) -> list[Array]:
        numbers = np.random.default_rng(seed)
        return [self.draw(numbers.standard_normal(shape)) for shape in self.shapes]


STEP = 1e-5
BOUND = 2e-7


def _close(found: object, expected: object, what: str) -> None:
    one, other = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert one.shape == other.shape, what
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    error = float(np.max(np.abs(one - other), initial=0.0))
    assert error <= BOUND * scale, f"{what}: {error} at a scale of {scale}"


def _everything(case: Case) -> Callable[..., tuple[Any, ...]]:
    """The value, its tangent, cotangents, and the tangent of the cotangents, in one program."""
    count = len(case.shapes)

    def derived(*given: Any) -> tuple[Any, ...]:
        primals, tangents, (weight,) = given[:count], given[count : 2 * count], given[2 * count :]

        def weighed(*primals: Any) -> tuple[Any, ...]:
            _, pullback = ts.vjp(case.function, *primals)
            return pullback(weight)

        value, tangent = ts.jvp(case.function, primals, tangents)
        cotangents, second = ts.jvp(weighed, primals, tangents)
        pushed = ts.linearize(case.function, *primals)[1](*tangents)
        return (value, tangent, pushed, *cotangents, *second)

    return derived


def check(case: Case, *, interpret: bool = True, seed: int = 0) -> None:
    """Raises where the derivatives of a case disagree."""
    with knobs.interpret.using(interpret):
        _check(case, seed)


def _check(case: Case, seed: int) -> None:
    count = len(case.shapes)
    arguments = case.arguments(seed)
    numbers = np.random.default_rng(seed + 1)
    tangents = [numbers.standard_normal(shape) for shape in case.shapes]
    function = ts.jit(case.function)
    value = np.asarray(function(*map(ts.asarray, arguments)))
    weight = numbers.standard_normal(value.shape)
    derived = ts.jit(_everything(case))

    def at(step: float) -> list[Array]:
        return [one + step * along for one, along in zip(arguments, tangents, strict=True)]

    def all_of(values: Sequence[Array]) -> list[Array]:
        given = [ts.asarray(one) for one in (*values, *tangents, weight)]
        return [np.asarray(one) for one in derived(*given)]

    found = all_of(arguments)
    _close(found[0], value, "the value")
    ahead, behind = (np.asarray(function(*map(ts.asarray, at(step)))) for step in (STEP, -STEP))
    _close(found[1], (ahead - behind) / (2 * STEP), "the tangent")
    _close(found[2], found[1], "linearize")
    cotangents = found[3 : 3 + count]
    left = float(np.sum(weight * found[1]))
    right = float(sum(np.sum(one * along) for one, along in zip(cotangents, tangents, strict=True)))
    _close(right, left, "the transpose")
    if case.second:
        after, before = all_of(at(STEP)), all_of(at(-STEP))
        for index in range(count):
            difference = (after[3 + index] - before[3 + index]) / (2 * STEP)
            _close(found[3 + count + index], difference, f"the second derivative by argument {index}")
