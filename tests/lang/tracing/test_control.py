"""Control flow: what branches and loops give, in a trace and outside; that effects in them stay in order."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import jit, knobs
from tessera.errors import DtypeError, EffectError, ShapeError, TesseraError

pytestmark = pytest.mark.usefixtures("interpreted")


def halves(x: Any) -> Any:
    """Halves until all are below 1, and counts."""

    def goes_on(state: Any) -> Any:
        return ts.any(state[1] >= 1.0)

    def step(state: Any) -> Any:
        return state[0] + 1, state[1] * 0.5

    return ts.while_loop(goes_on, step, (0, x))


def chosen(flag: Any, x: Any) -> Any:
    def double(given: Any) -> Any:
        return {"y": given * 2.0}

    def less(given: Any) -> Any:
        return {"y": given - 1.0}

    return ts.cond(flag, double, less, x)


def running(x: Any, *, reverse: bool) -> Any:
    def step(total: Any, row: Any) -> tuple[Any, Any]:
        return total + row, {"sum": total + row, "row": row * 2.0}

    return ts.scan(step, ts.zeros(x.shape[1:]), x, reverse=reverse)


def powers(x: Any, count: Any) -> Any:
    def step(index: Any, value: Any) -> Any:
        return value * x + ts.astype(ts.asarray(index), ts.f32)

    return ts.fori_loop(1, count, step, x)


@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_ends_when_its_condition_says(traced: bool) -> None:
    run: Any = jit(halves) if traced else halves
    for top in (0.5, 3.0, 100.0):
        count, value = run(ts.asarray(np.array([top, 0.25], np.float32)))
        expected = max(0, int(np.floor(np.log2(top))) + 1)
        assert int(count) == expected
        assert np.array_equal(np.asarray(value), np.array([top, 0.25], np.float32) / 2**expected)


@pytest.mark.parametrize("traced", [False, True])
def test_one_branch_runs(traced: bool) -> None:
    run: Any = jit(chosen) if traced else chosen
    x = ts.randn((3,), seed=0)
    assert np.array_equal(np.asarray(run(ts.asarray(np.array(True)), x)["y"]), x.numpy() * 2)
    assert np.array_equal(np.asarray(run(ts.asarray(np.array(False)), x)["y"]), x.numpy() - 1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("traced", [False, True])
def test_a_scan_carries_and_stacks(traced: bool, reverse: bool) -> None:
    run: Any = jit(running) if traced else running
    for count in (3, 5, 6):
        x = ts.randn((count, 2), seed=count)
        total, steps = run(x, reverse=reverse)
        ordered = x.numpy()[::-1] if reverse else x.numpy()
        sums = np.cumsum(ordered, axis=0)
        assert np.allclose(total, sums[-1], atol=1e-6)
        assert np.allclose(steps["sum"], sums[::-1] if reverse else sums, atol=1e-6)
        assert np.array_equal(np.asarray(steps["row"]), x.numpy() * 2)
    if traced:
        assert run.explain().compilations == 2


@pytest.mark.parametrize("traced", [False, True])
def test_a_scan_of_nothing_stacks_nothing(traced: bool) -> None:
    run: Any = jit(running) if traced else running
    total, steps = run(ts.zeros((0, 2)), reverse=True)
    assert total.tolist() == [0.0, 0.0]
    assert {name: one.shape for name, one in steps.items()} == {"sum": (0, 2), "row": (0, 2)}

    def halved(x: Any) -> Any:
        return ts.scan(lambda carry, _: (carry / 2, ts.sum(carry)), x, None, length=0)

    carry, sums = (jit(halved) if traced else halved)(ts.ones((3,)))
    assert (carry.tolist(), sums.shape) == ([1.0, 1.0, 1.0], (0,))


@pytest.mark.parametrize("traced", [False, True])
def test_a_counted_loop_counts(traced: bool) -> None:
    x = ts.randn((2,), seed=1)
    expected = x.numpy()
    for index in range(1, 4):
        expected = expected * x.numpy() + np.float32(index)
    fixed: Any = jit(powers, static_argnames="count") if traced else powers
    assert np.allclose(fixed(x, 4), expected)
    dynamic: Any = jit(powers) if traced else powers
    assert np.allclose(dynamic(x, 4), expected)
    assert np.allclose(dynamic(x, 1), x)


def test_a_python_bool_chooses_while_tracing() -> None:
    @jit
    def f(x: Any, *, flag: bool) -> Any:
        return chosen(flag, x)["y"]

    x = ts.randn((2,), seed=0)
    assert np.array_equal(np.asarray(f(x, flag=True)), x.numpy() * 2)
    assert "graph.cond" not in f.lower(x, flag=True).graph_ir.text


def test_loops_go_over_trees_without_arrays() -> None:
    @jit
    def f(x: Any) -> Any:
        def step(total: Any, _: None) -> tuple[Any, None]:
            return total * 2.0, None

        return ts.scan(step, x, None, length=5)

    total, nothing = f(ts.ones((2,)))
    assert nothing is None
    assert np.array_equal(np.asarray(total), np.full(2, 32.0, np.float32))


def test_effects_in_bodies_happen_in_the_order_of_the_program() -> None:
    counter = ts.State(np.array(0.0, np.float32))

    @jit
    def f(x: Any) -> Any:
        def step(total: Any, row: Any) -> tuple[Any, Any]:
            counter.write(counter.read() + 1.0)
            ts.debug_print("row", row)
            return total + row, counter.read()

        ts.debug_print("before", x)
        result = ts.scan(step, ts.zeros(()), x)
        ts.debug_print("after", result[0])
        return result

    lines = io.StringIO()
    with redirect_stdout(lines):
        total, counts = f(ts.asarray(np.array([1.0, 2.0, 3.0], np.float32)))
    assert [line.split()[0] for line in lines.getvalue().splitlines()] == ["before", "row", "row", "row", "after"]
    assert float(total) == 6.0
    assert np.array_equal(np.asarray(counts), [1.0, 2.0, 3.0])
    assert float(counter.read()) == 3.0
    assert f.explain().variants[0].traced.effects == ("io", f"state({counter.slot})")


def test_random_draws_stay_in_order_and_repeat_under_a_seed() -> None:
    @jit
    def f(count: int) -> Any:
        def step(index: Any, total: Any) -> Any:
            return total * 10.0 + ts.random.uniform(None, ())

        first = ts.random.normal(None, (2,))
        return first, ts.fori_loop(0, count, step, 0.0)

    with ts.random.seed(5):
        one = f(3)
        two = f(3)
    with ts.random.seed(5):
        again = f(3)
    assert np.array_equal(np.asarray(one[0]), np.asarray(again[0]))
    assert float(one[1]) == float(again[1]) != float(two[1])


def f_with_growing_carry(x: Any) -> Any:
    def grow(value: Any, _: Any) -> tuple[Any, None]:
        return ts.concat([value, value], axis=0), None

    return ts.scan(grow, x, None, length=2)


def f_with_other_dtype(x: Any) -> Any:
    def narrow(value: Any) -> Any:
        return ts.astype(value, ts.bf16)

    def same(value: Any) -> Any:
        return value

    return ts.cond(ts.all(x > 0.0), narrow, same, x)


def f_with_other_tree(x: Any) -> Any:
    def pair(value: Any) -> Any:
        return value, value

    def same(value: Any) -> Any:
        return value

    return ts.cond(ts.all(x > 0.0), pair, same, x)


def f_that_leaks(x: Any) -> Any:
    kept: list[Any] = []

    def step(total: Any, row: Any) -> tuple[Any, None]:
        kept.append(total + row)
        return total + row, None

    ts.scan(step, ts.zeros(x.shape[1:]), x)
    return kept[0]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (f_with_growing_carry, ShapeError, r"the carry must keep one shape: \[4\] became \[8\]"),
        (f_with_other_dtype, DtypeError, "must keep one dtype: bf16 became f32"),
        (f_with_other_tree, TesseraError, "must keep one structure"),
        (f_that_leaks, EffectError, "used outside of it"),
    ],
)
def test_bodies_keep_types_and_values_to_themselves(function: Any, error: type[TesseraError], message: str) -> None:
    shape = (3, 2) if function is f_that_leaks else (4,)
    with pytest.raises(error, match=message) as caught:
        jit(function)(ts.ones(shape))
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_compiled_control_flow_gives_what_the_interpreter_gives() -> None:
    x = ts.randn((5, 2), seed=0) * 4.0
    with knobs.interpret.using(True):
        wanted = jit(halves)(x), jit(running)(x, reverse=True), jit(powers)(x, 3)
    with knobs.interpret.using(False):
        found = jit(halves)(x), jit(running)(x, reverse=True), jit(powers)(x, 3)
    for one, other in zip(ts.tree_leaves(found), ts.tree_leaves(wanted), strict=True):
        assert np.allclose(np.asarray(one), np.asarray(other), rtol=1e-5)
