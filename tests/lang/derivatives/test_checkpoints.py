"""`checkpoint` changes what is kept, never what comes out; `autodiff` gives functions their derivatives as methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gradient_checks import Case, check
from lambdas import binary, unary

import tessera as ts
from tessera import knobs
from tessera.errors import TesseraError
from tessera.lang.tracing import primitives


@pytest.fixture
def interpreted() -> Any:
    with knobs.interpret.using(True):
        yield


def _layer(x: Any, w: Any) -> Any:
    hidden = ts.keep_as(ts.tanh(x @ w), "hidden")
    return ts.sin(hidden) * hidden


POLICIES: list[Any] = ["nothing", "products", "everything", ("hidden",)]


@pytest.mark.parametrize("policy", POLICIES)
def test_derivatives_are_the_same(policy: Any) -> None:
    check(Case("layer", ts.checkpoint(_layer, policy), ((3, 4), (4, 4))))


def test_checkpoints_in_loops_branches_and_each_other() -> None:
    def looped(x: Any, w: Any) -> Any:
        step = ts.checkpoint(binary(lambda c, r: (ts.tanh(c @ w) + r, ts.sum(c))))
        last, sums = ts.scan(step, x, ts.stack([x, x * 2.0]))
        return ts.sum(last) + sums

    check(Case("in a loop", looped, ((2, 3), (3, 3))))

    def around(x: Any, w: Any) -> Any:
        def body(x: Any) -> Any:
            return ts.scan(lambda c, r: (ts.sin(c * r), c), x[0], x)

        last, rows = ts.checkpoint(body)(x @ w)
        return last + ts.sum(rows)

    check(Case("around a loop", around, ((3, 2), (2, 2))))
    nested = ts.checkpoint(unary(lambda x: ts.checkpoint(unary(lambda y: ts.exp(ts.sin(y))))(x) * x))
    check(Case("nested", nested, ((3,),)))
    branch = unary(lambda x: ts.cond(ts.sum(x) > 0.0, lambda: nested(x), lambda: x))
    check(Case("in a branch", branch, ((3,),)))


@pytest.mark.usefixtures("interpreted")
def test_under_vmap() -> None:
    rows = ts.asarray(np.random.default_rng(0).standard_normal((4, 3)))
    plain = unary(lambda r: ts.sum(ts.sin(r) ** 2))
    expected = np.asarray(ts.vmap(ts.grad(plain))(rows))
    assert np.allclose(np.asarray(ts.vmap(ts.grad(ts.checkpoint(plain)))(rows)), expected)
    outer = ts.grad(unary(lambda x: ts.sum(ts.vmap(ts.checkpoint(plain))(x))))
    assert np.allclose(np.asarray(outer(rows)), expected)


def _deep(policy: Any) -> Any:
    layer = unary(lambda x: ts.tanh(ts.exp(ts.sin(x) * 0.1) - 1.0))
    if policy is not None:
        layer = ts.checkpoint(layer, policy)

    def loss(x: Any) -> Any:
        for _ in range(2):
            x = layer(ts.cumulative_sum(x, axis=0)) + x
        return ts.sum(x)

    return ts.grad(loss)


@pytest.mark.usefixtures("interpreted")
def test_what_is_computed_again_stands_in_the_program() -> None:
    x = ts.ones((8,), dtype=ts.f64) * 0.1
    texts = {str(policy): _deep(policy).lower(x).graph_ir.text for policy in (None, "nothing", "everything")}
    assert "graph.again" in texts["nothing"]
    assert "graph.again" not in texts["None"]
    # The value of the last layer is not asked for.
    assert (texts["nothing"].count("ew<exp>"), texts["None"].count("ew<exp>")) == (3, 2)
    for policy in (None, "nothing", "everything"):
        assert np.allclose(np.asarray(_deep(policy)(x)), np.asarray(_deep(None)(x)))


@pytest.mark.usefixtures("interpreted")
def test_draws_are_kept_and_effects_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    def dropped(x: Any) -> Any:
        ts.debug_print("once", x[0])
        return ts.exp(x) * primitives.random("uniform", (3,), ts.f64)

    x = ts.asarray(np.array([0.1, 0.2, 0.3]))
    value, gradient = ts.value_and_grad(unary(lambda x: ts.sum(ts.checkpoint(dropped)(x))))(x)
    assert float(np.sum(np.asarray(gradient))) == pytest.approx(float(value))
    assert capsys.readouterr().out.count("once") == 1


def test_what_is_no_policy() -> None:
    with pytest.raises(TesseraError, match="there is no policy 'all'"):
        ts.checkpoint(ts.sin, "all")
    with pytest.raises(TesseraError, match="cannot be a name"):
        ts.jit(unary(lambda x: ts.keep_as(x, "nothing")))(ts.ones((2,)))
    assert ts.remat is ts.checkpoint
    assert float(ts.checkpoint(ts.sin)(ts.asarray(0.0))) == 0.0
    assert ts.keep_as(3, "name") == 3


@pytest.mark.usefixtures("interpreted")
def test_autodiff_as_the_specification_writes_it() -> None:
    @ts.jit @ ts.autodiff
    def square(x: Any) -> Any:
        return ts.sum(x * x)

    x = ts.asarray(np.array([1.0, 2.0]))
    assert float(square(x)) == 5.0
    assert np.asarray(square.grad()(x)).tolist() == [2.0, 4.0]
    assert float(square.jvp((x,), (x,))[1]) == 10.0
    value, pullback = square.vjp(x)
    assert np.asarray(pullback(value)[0]).tolist() == [10.0, 20.0]
    value, gradient = ts.autodiff(square.function).value_and_grad()(x)
    assert float(value) == 5.0
    assert np.asarray(gradient).tolist() == [2.0, 4.0]
    assert "square" in repr(square)
