"""vmap: a mapped function gives what a loop over calls gives, for every op, and composes with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivative_cases import CASES
from gradient_checks import Case
from lambdas import binary, ternary, unary

import tessera as ts
from tessera import knobs
from tessera.errors import EffectError, ShapeError, TesseraError
from tessera.lang.tracing import primitives

BATCH = 3


@pytest.fixture(autouse=True)
def in_the_interpreter(request: pytest.FixtureRequest) -> Any:
    with knobs.interpret.using("acceptance" not in request.node.keywords):
        yield


def _compare(case: Case) -> None:
    calls = [case.arguments(seed) for seed in range(BATCH)]
    one = ts.jit(case.function)
    expected = np.stack([np.asarray(one(*map(ts.asarray, call))) for call in calls])
    batches = [ts.asarray(np.stack(column)) for column in zip(*calls, strict=True)]
    found = np.asarray(ts.vmap(case.function)(*batches))
    assert found.shape == expected.shape
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-12), case.name
    if len(batches) > 1:  # some mapped, some seen whole
        first = [ts.asarray(np.stack([call[0] for call in calls])), *map(ts.asarray, calls[0][1:])]
        mixed = np.asarray(ts.vmap(case.function, in_axes=(0, *[None] * (len(first) - 1)))(*first))
        loop = np.stack([np.asarray(one(ts.asarray(call[0]), *first[1:])) for call in calls])
        assert np.allclose(mixed, loop, rtol=1e-12, atol=1e-12), case.name


@pytest.mark.quick(30)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mapped_function_gives_what_calls_give(case: Case) -> None:
    _compare(case)


@pytest.mark.acceptance
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mapped_function_gives_what_calls_give_in_machine_code(case: Case) -> None:
    _compare(case)


def _array(*shape: int) -> ts.Tensor:
    return ts.asarray(np.random.default_rng(len(shape)).standard_normal(shape))


def test_axes_in_and_out() -> None:
    x, w = _array(4, 3), _array(3, 2)
    found = ts.vmap(unary(lambda column: column @ w), in_axes=1, out_axes=1)(_array(3, 4))
    assert np.allclose(np.asarray(found), (np.asarray(_array(3, 4)).T @ np.asarray(w)).T)
    both = ts.vmap(binary(lambda tree, y: tree["a"] * tree["b"] + y), in_axes=({"a": 0, "b": None}, 1))
    given = {"a": x, "b": _array(3)}
    expected = np.asarray(x) * np.asarray(_array(3)) + np.asarray(_array(3, 4)).T
    assert np.allclose(np.asarray(both(given, _array(3, 4))), expected)
    same = ts.vmap(binary(lambda row, y: (row, y * 2.0)), in_axes=(0, None), out_axes=(0, None))
    assert same(x, _array(3))[1].shape == (3,)


def test_indices_that_differ_within_the_batch() -> None:
    x = _array(4, 5, 3)
    places = ts.asarray(np.array([[0, 4], [1, 1], [3, 2], [2, 0]]))
    looked = ts.vmap(binary(lambda row, index: ts.take(row, index, axis=0)))(x, places)
    assert np.allclose(np.asarray(looked), np.take_along_axis(np.asarray(x), np.asarray(places)[:, :, None], 1))
    shared = ts.vmap(binary(lambda row, index: ts.take(row, index, axis=0)), in_axes=(None, 0))(x, places[:, :1] % 2)
    assert shared.shape == (4, 1, 5, 3)
    updates = _array(4, 2, 3)
    added = ts.vmap(ternary(lambda row, index, new: row.at[index].add(new)))(x, places, updates)
    expected = np.array(x)
    for number in range(4):
        np.add.at(expected[number], np.asarray(places)[number], np.asarray(updates)[number])
    assert np.allclose(np.asarray(added), expected)


def test_conditions_that_differ_within_the_batch() -> None:
    x = _array(6)
    branch = unary(lambda v: ts.cond(v > 0.0, lambda: v * 2.0, lambda: -v))
    assert np.allclose(np.asarray(ts.vmap(branch)(x)), np.where(np.asarray(x) > 0, 2 * np.asarray(x), -np.asarray(x)))

    def halvings(v: Any) -> Any:
        return ts.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] * 0.5, s[1] + 1.0), (v, 0.0 * v))[1]

    starts = ts.asarray(np.array([0.5, 3.0, 17.0, 100.0]))
    assert np.asarray(ts.vmap(halvings)(starts)).tolist() == [0, 2, 5, 7]


def test_a_random_draw_differs_within_the_batch() -> None:
    draw = unary(lambda v: v + primitives.random("uniform", (2,), ts.f64))
    drawn = np.asarray(ts.vmap(draw)(ts.zeros((3, 1), dtype=ts.f64)))
    assert len(np.unique(drawn)) == drawn.size


def test_derivatives_of_each_of_a_batch() -> None:
    x, w = _array(4, 3), _array(3)
    gradients = ts.vmap(ts.grad(binary(lambda w, row: ts.sin(row @ w))), in_axes=(None, 0))(w, x)
    inner = np.cos(np.asarray(x) @ np.asarray(w))[:, None] * np.asarray(x)
    assert np.allclose(np.asarray(gradients), inner)
    outer = ts.grad(unary(lambda w: ts.sum(ts.vmap(unary(lambda row: ts.sin(row @ w)))(x))))(w)
    assert np.allclose(np.asarray(outer), inner.sum(0))


def test_matrices_of_derivatives() -> None:
    x = _array(3)
    function = unary(lambda v: ts.sin(v) * ts.sum(v * v))
    forwards, backwards = np.asarray(ts.jacfwd(function)(x)), np.asarray(ts.jacrev(function)(x))
    assert np.allclose(forwards, backwards)
    v = np.asarray(x)
    assert np.allclose(forwards, np.diag(np.cos(v) * (v @ v)) + 2 * np.outer(np.sin(v), v))
    assert np.allclose(np.asarray(ts.hessian(unary(lambda v: ts.sum(v) ** 3))(x)), 6 * v.sum())
    tree = ts.jacrev(unary(lambda p: {"y": p["a"] * p["b"]}))({"a": x, "b": _array(1)})
    assert tree["y"]["a"].shape == (3, 3)
    assert tree["y"]["b"].shape == (3, 1)
    both = ts.jacfwd(binary(lambda a, b: a @ b), argnums=(0, 1))(_array(2, 3), _array(3))
    assert [one.shape for one in both] == [(2, 2, 3), (2, 3)]


def test_what_cannot_be_mapped() -> None:
    x = _array(4, 3)
    with pytest.raises(ShapeError, match="batches of"):
        ts.vmap(binary(lambda a, b: a))(x, _array(3))
    with pytest.raises(ShapeError, match="no axis 2 for the batch"):
        ts.vmap(unary(lambda a: a), in_axes=2)(x)
    with pytest.raises(TesseraError, match="no argument has an axis"):
        ts.vmap(unary(lambda a: a), in_axes=None)(x)
    with pytest.raises(TesseraError, match="out_axes is None for a result that differs"):
        ts.vmap(unary(lambda a: a), out_axes=None)(x)
    state = ts.State(np.zeros(3))
    with pytest.raises(EffectError, match="a state is written in a mapped function"):
        ts.vmap(unary(state.write))(x)
