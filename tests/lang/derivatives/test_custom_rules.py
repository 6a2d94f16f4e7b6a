"""Functions with derivatives of their own, in every composition; and where derivatives stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_checks import binary, unary

import tessera as ts
from tessera import knobs
from tessera.errors import DtypeError, EffectError, TesseraError


@pytest.fixture(autouse=True)
def in_the_interpreter() -> Any:
    with knobs.interpret.using(True):
        yield


def f64(*values: float) -> ts.Tensor:
    return ts.asarray(np.array(values, np.float64))


@ts.custom_jvp
def tripled_slope(x: Any) -> Any:
    return ts.sin(x)


@tripled_slope.defjvp
def _slope(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return tripled_slope(x), 3.0 * t * ts.cos(x)


@ts.custom_vjp
def clipped(x: Any, low: float) -> Any:
    return x * 1.0


clipped.defvjp(binary(lambda x, low: (x * 1.0, low)), binary(lambda low, g: (ts.clip(g, low, -low), None)))

X = f64(0.3, -1.2, 2.0)
COS = np.cos(np.asarray(X))


def test_a_rule_for_tangents_serves_both_ways() -> None:
    assert np.allclose(np.asarray(tripled_slope(X)), np.sin(np.asarray(X)))
    assert np.allclose(np.asarray(ts.jvp(tripled_slope, (X,), (X,))[1]), 3 * COS * np.asarray(X))
    gradient = ts.grad(unary(lambda x: ts.sum(tripled_slope(x) * x)))(X)
    assert np.allclose(np.asarray(gradient), 3 * COS * np.asarray(X) + np.sin(np.asarray(X)))


def test_a_rule_for_tangents_is_differentiated_itself() -> None:
    once = ts.grad(unary(lambda x: ts.sum(tripled_slope(x))))
    twice = ts.grad(unary(lambda x: ts.sum(once(x))))(X)
    # The rule computes `cos` by the table.
    assert np.allclose(np.asarray(twice), -3 * np.sin(np.asarray(X)))


def test_a_rule_for_cotangents() -> None:
    gradient = ts.grad(unary(lambda x: ts.sum(clipped(x, -0.5) * x)))(X)
    expected = np.clip(np.asarray(X), -0.5, 0.5) + np.asarray(X)
    assert np.allclose(np.asarray(gradient), expected)


def test_rules_inside_of_loops_and_branches() -> None:
    def looped(x: Any) -> Any:
        def step(carry: Any, row: Any) -> tuple[Any, Any]:
            return tripled_slope(carry * row), clipped(row, -0.1)

        last, rows = ts.scan(step, x[0], x)
        return last + ts.sum(rows * 2.0)

    def unrolled(x: Any) -> float:
        carry = x[0]
        for row in x:
            carry = np.sin(carry * row)
        return carry

    gradient = np.asarray(ts.grad(looped)(X))
    # The slopes of three steps are three times as steep each; cotangents of 2 are clipped to 0.1.
    x = np.asarray(X)
    carries = [x[0]]
    for row in x:
        carries.append(np.sin(carries[-1] * row))
    expected, cotangent = np.full(3, 0.1), 1.0
    for index in (2, 1, 0):
        slope = 3 * np.cos(carries[index] * x[index]) * cotangent
        expected[index] += slope * carries[index]
        cotangent = slope * x[index]
    expected[0] += cotangent
    assert np.allclose(gradient, expected)
    assert np.isclose(float(ts.jit(looped)(X)) - 2 * x.sum(), unrolled(x))
    branch = unary(lambda x: ts.cond(ts.sum(x) > 0.0, lambda: ts.sum(tripled_slope(x)), lambda: ts.sum(x)))
    assert np.allclose(np.asarray(ts.grad(branch)(X)), 3 * COS)


def test_rules_under_vmap() -> None:
    rows = f64(0.1, 0.2, 0.3, 0.4).reshape(2, 2)
    mapped = ts.vmap(ts.grad(unary(lambda r: ts.sum(tripled_slope(r)))))(rows)
    assert np.allclose(np.asarray(mapped), 3 * np.cos(np.asarray(rows)))
    outside = ts.grad(unary(lambda x: ts.sum(ts.vmap(tripled_slope)(x))))(rows)
    assert np.allclose(np.asarray(outside), 3 * np.cos(np.asarray(rows)))
    back = ts.grad(unary(lambda x: ts.sum(ts.vmap(unary(lambda r: clipped(r, -0.5) * 3.0))(x))))(rows)
    assert np.allclose(np.asarray(back), 0.5)


def test_a_rule_for_cotangents_alone_is_refused_forwards() -> None:
    with pytest.raises(EffectError, match=r"clipped has a rule for reverse derivatives alone"):
        ts.jvp(unary(lambda x: clipped(x, -1.0)), (X,), (X,))


def test_rules_that_do_not_fit() -> None:
    @ts.custom_jvp
    def without(x: Any) -> Any:
        return x

    with pytest.raises(TesseraError, match="a custom_jvp without a rule"):
        ts.jit(without)(X)

    @ts.custom_vjp
    def wrong(x: Any) -> Any:
        return x * 2.0

    wrong.defvjp(unary(lambda x: (x * 2.0, None)), binary(lambda _, g: (ts.sum(g),)))
    with pytest.raises(TesseraError, match="gives other shapes or dtypes"):
        ts.grad(unary(lambda x: ts.sum(wrong(x))))(X)
    wrong.defvjp(unary(lambda x: (x * 2.0, None)), binary(lambda _, g: (g, g)))
    with pytest.raises(TesseraError, match="gives 2 cotangents for 1 arguments"):
        ts.grad(unary(lambda x: ts.sum(wrong(x))))(X)
    wrong.defvjp(unary(lambda x: x), binary(lambda _, g: (g,)))
    with pytest.raises(TesseraError, match="a pair of the result and residuals"):
        ts.grad(unary(lambda x: ts.sum(wrong(x))))(X)
    captured = unary(lambda x: ts.sum(_capturing(x * 2.0)(x)))
    with pytest.raises(EffectError, match="uses a value from outside that is differentiated"):
        ts.grad(captured)(X)


def _capturing(outer: Any) -> Any:
    @ts.custom_jvp
    def inner(x: Any) -> Any:
        return x * outer

    inner.defjvp(binary(lambda primals, tangents: (primals[0], tangents[0])))
    return inner


def test_stop_gradient() -> None:
    assert np.allclose(np.asarray(ts.grad(unary(lambda x: ts.sum(ts.stop_gradient(x) * x)))(X)), np.asarray(X))
    tree = ts.grad(unary(lambda p: ts.sum(ts.stop_gradient(p)["a"] * p["b"])))({"a": X, "b": X})
    assert np.allclose(np.asarray(tree["a"]), 0)
    assert np.allclose(np.asarray(tree["b"]), np.asarray(X))
    assert ts.stop_gradient(X) is X
    with pytest.raises(DtypeError, match="argument 0 is of i64"):
        ts.grad(unary(ts.sum))(ts.asarray([1, 2]))
