"""Numbers that change from call to call: arguments of one program, in operators, jitted functions and their mix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.lang.operators.elementwise import ROW_PROGRAMS

X = ts.asarray(np.linspace(-2, 2, 60, dtype=np.float32).reshape(3, 20))
RATES = [0.1, -3.5, 1e-8, 7.0, float("inf"), 0.0, -0.0, 123456.789]


def programs(*operators: Any) -> int:
    return sum(vars(one)["eager"].explain().compilations for one in operators)


ROWS: dict[str, Callable[[Any, Any], Any]] = {
    "x * a": lambda x, a: x * a,
    "a - x": lambda x, a: a - x,
    "x / a": lambda x, a: x / a,
    "x > a": lambda x, a: x > a,
}


@pytest.mark.parametrize("name", ROWS)
def test_python_operators_take_numbers_as_arguments(name: str) -> None:
    row = ROWS[name]
    with knobs.eager_elements.using(0):
        row(X, 0.5)
        before = programs(*ROW_PROGRAMS.values())
        for rate in RATES:
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(row(X, rate).numpy(), row(X.numpy(), np.float32(rate)))
        assert programs(*ROW_PROGRAMS.values()) == before


OPERATORS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "multiply": (ts.multiply, ts.multiply),
    "clip": (ts.clip, lambda x, a: ts.clip(x, -abs(a), abs(a))),
    "where": (ts.where, lambda x, a: ts.where(x > 0, x, a)),
    "masked_fill": (ts.masked_fill, lambda x, a: ts.masked_fill(x, x > 0, a)),
    "pow": (ts.pow, ts.pow),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_take_numbers_as_arguments(name: str) -> None:
    operator, call = OPERATORS[name]
    call(X, 0.5)
    before = programs(operator)
    for rate in RATES:
        call(X, rate)
    assert programs(operator) == before


def test_jitted_functions_take_numbers_as_arguments() -> None:
    @ts.jit
    def step(x: Any, rate: float, options: dict[str, float]) -> Any:
        return x * rate, x + options["shift"]

    for rate in (*RATES, np.float64(0.3), np.sqrt(2)):
        product, total = step(X, rate, {"shift": -rate})
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(product.numpy(), X.numpy() * np.float32(rate))
        np.testing.assert_array_equal(total.numpy(), X.numpy() - np.float32(rate))
    assert step.explain().compilations == 1
    step(X, 1, {"shift": 2})
    assert step.explain().compilations == 2  # ints are another kind
    step(X, 5, {"shift": -2})
    assert step.explain().compilations == 2
