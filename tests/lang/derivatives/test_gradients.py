"""Derivatives of every op: against differences and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivative_cases import CASES
from gradient_checks import Case, check
from lambdas import binary, unary

import tessera as ts
from tessera import knobs
from tessera.errors import DtypeError, EffectError, ShapeError, TesseraError
from tessera.ir.common import elementwise
from tessera.ir.graph.dialect import Graph
from tessera.lang.tracing import primitives
from tessera.transforms.derivatives import batch, table


@pytest.mark.quick(45)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives_agree_with_differences(case: Case) -> None:
    check(case)


@pytest.mark.acceptance
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives_agree_with_differences_in_machine_code(case: Case) -> None:
    check(case, interpret=False, seed=2)


def test_each_op_of_graphs_has_a_row() -> None:
    for op in Graph.operations:
        row = table.RULES.get(op)
        assert row is not None, f"{op.name} has no row"
        assert (row.jvp is not None) != bool(row.reason), f"{op.name} has neither a rule nor a reason, or both"


def test_each_op_of_graphs_is_batched_or_constant() -> None:
    for op in Graph.operations:
        if not table.RULES[op].reason:
            assert op in batch.BATCHES, f"{op.name} has no rule for vmap"


def test_each_function_with_a_derivative_has_a_case() -> None:
    names = {case.name for case in CASES}
    for name, row in elementwise.TABLE.items():
        if row.derivative is not None and name != "fma":  # which no operator writes
            assert name in names, f"{name} is differentiated, and no case checks it"


@pytest.fixture
def interpreted() -> Any:
    with knobs.interpret.using(True):
        yield


X = ts.asarray(np.array([0.5, -1.5, 2.0]))


@pytest.mark.usefixtures("interpreted")
def test_arguments_results_and_what_comes_beside() -> None:
    def loss(parameters: Any, x: Any, scale: float = 2.0) -> Any:
        y = x @ parameters["w"] * scale + parameters["b"]
        return ts.sum(y * y), {"y": y, "name": "loss"}

    parameters = {"w": ts.ones((3, 2), dtype=ts.f64), "b": ts.zeros((2,), dtype=ts.f64)}
    (value, beside), gradient = ts.value_and_grad(loss, has_aux=True)(parameters, X, scale=3.0)
    assert float(value) == pytest.approx(18.0)
    assert beside["name"] == "loss"
    assert np.allclose(np.asarray(gradient["b"]), 2 * np.asarray(beside["y"]))
    assert np.allclose(np.asarray(gradient["w"]), 3 * np.outer(np.asarray(X), 2 * np.asarray(beside["y"])))
    first, second = ts.grad(binary(lambda a, b: ts.sum(a * b)), argnums=(0, -1))(X, X * 2.0)
    assert np.allclose(np.asarray(first), 2 * np.asarray(X))
    assert np.allclose(np.asarray(second), np.asarray(X))
    assert float(ts.grad(unary(lambda s: s**3))(2.0)) == 12.0
    assert ts.grad(unary(lambda s: s**3))(2.0).dtype is ts.f32


@pytest.mark.usefixtures("interpreted")
def test_perturbations_are_not_confused() -> None:
    inner = ts.grad(unary(lambda x: x * ts.grad(unary(lambda y: x * y))(1.0)))
    assert float(inner(3.0)) == 6.0
    crossed = ts.grad(unary(lambda x: ts.jvp(unary(lambda y: x * y * y), (x,), (1.0,))[1]))
    assert float(crossed(3.0)) == pytest.approx(12.0)


@pytest.mark.usefixtures("interpreted")
def test_the_same_function_is_derived_once() -> None:
    def f(x: Any) -> Any:
        return ts.sum(x * x)

    assert ts.grad(f) is ts.grad(f)
    assert ts.grad(f) is not ts.grad(f, has_aux=True)
    assert ts.grad(f) is not ts.value_and_grad(f)


@pytest.mark.usefixtures("interpreted")
def test_one_program_serves_all_sizes() -> None:
    gradient = ts.grad(unary(lambda x: ts.sum(ts.softmax(x @ ts.permute_dims(x, (1, 0)), axis=-1)[1:, ::2] ** 2)))
    for rows in (4, 7, 9, 5, 12):
        x = np.random.default_rng(rows).standard_normal((rows, 3))
        found = np.asarray(gradient(ts.asarray(x)))
        step, along = 1e-6, np.ones_like(x)

        def value(at: Any) -> float:
            scores = at @ at.T
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            return float(((weights / weights.sum(-1, keepdims=True))[1:, ::2] ** 2).sum())

        difference = (value(x + step * along) - value(x - step * along)) / (2 * step)
        assert np.sum(found) == pytest.approx(difference, abs=1e-6)
    assert len(gradient.reasons) <= 2


@pytest.mark.usefixtures("interpreted")
def test_effects_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    state = ts.State(np.zeros(()))

    def f(x: Any) -> Any:
        ts.debug_print("seen", x[0])
        state.write(state.read() + 1.0)
        return ts.sum(x * primitives.random("uniform", (3,), ts.f64))

    (value, gradient) = ts.value_and_grad(f)(X)
    assert capsys.readouterr().out.count("seen") == 1
    assert float(state.read()) == 1.0
    # The draw is that of the value.
    assert float(np.asarray(gradient) @ np.asarray(X)) == pytest.approx(float(value))


@pytest.mark.usefixtures("interpreted")
def test_a_value_that_a_loop_leaves_is_the_same_when_it_is_kept() -> None:
    state = ts.State(np.zeros(3))

    def f(x: Any) -> Any:
        last, rows = ts.scan(lambda c, r: (c * ts.sin(r), c), x, ts.stack([x, x]))
        state.write(last)
        return ts.sum(last + rows[0])

    ts.grad(f)(X)
    assert np.allclose(np.asarray(state.read()), np.asarray(X) * np.sin(np.asarray(X)) ** 2)


TWICE = unary(lambda x: ts.sum(x) * 2.0)
MISTAKES: list[tuple[str, Any, type[TesseraError], str]] = [
    (
        "no scalar",
        lambda: ts.grad(unary(lambda x: x * 2.0))(X),
        ShapeError,
        "gives one float without axes, got [3] of f64",
    ),
    ("integers", lambda: ts.grad(ts.sum)(ts.asarray([1])), DtypeError, "derivatives are taken by floats"),
    ("text", lambda: ts.grad(unary(lambda x: 1.0))("a"), DtypeError, "has a str, which has no derivative"),
    ("no such argument", lambda: ts.grad(TWICE, argnums=1)(X), TesseraError, "argnums=1 of a call of"),
    ("twice the same", lambda: ts.grad(ts.sum, argnums=(0, 0))(X), TesseraError, "each once"),
    ("no pair", lambda: ts.grad(ts.sum, has_aux=True)(X), TesseraError, "gives a pair"),
    (
        "while in reverse",
        lambda: ts.grad(
            unary(lambda x: ts.sum(ts.while_loop(lambda c: ts.sum(c) < 9.0, lambda c: c * 2.0, ts.abs(x))))
        )(X),
        EffectError,
        "a while_loop has no reverse derivative",
    ),
    ("tangents of another shape", lambda: ts.jvp(ts.sin, (X,), (X[:2],)), ShapeError, "have the shapes and dtypes"),
    ("tangents that nest", lambda: ts.jvp(ts.sin, (X,), ((X,),)), TesseraError, "nest in another way"),
    ("cotangents of another dtype", lambda: ts.vjp(ts.sin, X)[1](X.astype(ts.f32)), DtypeError, "shapes and dtypes"),
]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one[0])
def test_mistakes_are_told(mistake: tuple[str, Any, type[TesseraError], str]) -> None:
    _, call, kind, text = mistake
    with pytest.raises(kind) as found:
        call()
    assert text in str(found.value)
    assert found.value.hint


@pytest.mark.usefixtures("interpreted")
def test_while_goes_forwards() -> None:
    def f(x: Any) -> Any:
        return ts.while_loop(lambda c: ts.sum(c) < 9.0, lambda c: c * x, ts.abs(x))

    x = ts.asarray(np.array([1.5, 2.0]))
    _, tangent = ts.jvp(f, (x,), (ts.asarray(np.array([1.0, 0.0])),))
    assert np.allclose(np.asarray(tangent), [3 * 1.5**2, 0.0])
