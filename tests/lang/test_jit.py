"""Jitted functions: pytrees, static arguments, numbers, sizes that change, what is captured, and what calls give."""

from __future__ import annotations

import itertools
import logging
from typing import Any

import numpy as np
import pytest
from transformer_block import typed

import tessera as ts
from tessera import Tensor, TesseraError, f32, jit, knobs
from tessera.errors import DtypeError, EffectError, ShapeError

pytestmark = pytest.mark.usefixtures("interpreted")


def rows(count: int, width: int = 4, seed: int = 0) -> Tensor:
    return ts.randn((count, width), seed=seed)


def same(found: Any, wanted: Any) -> bool:
    return np.array_equal(np.asarray(found), np.asarray(wanted))


def product(x: Any, y: Any) -> Any:
    return x * y


def test_a_function_runs_as_it_is_written() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        return (x + y) * 2.0 - y

    x, y = rows(3), rows(3, seed=1)
    assert same(f(x, y), (x.numpy() + y.numpy()) * np.float32(2) - y.numpy())
    assert same(f(x=x, y=y), f(x, y))
    assert same(f(x.numpy(), y), f(x, y))
    assert f.explain().compilations == 1


def test_arguments_and_results_are_trees() -> None:
    @jit
    def f(params: dict[str, Any], pair: tuple[Any, list[Any]]) -> dict[str, Any]:
        first, (second, nothing) = pair
        assert nothing is None
        return {"sum": params["w"] + first, "more": [second * 2.0, (params["b"], None)], "name": "f"}

    w, b, x, y = (rows(2, seed=seed) for seed in range(4))
    for _ in range(2):
        found = f({"w": w, "b": b}, (x, [y, None]))
        assert same(found["sum"], w.numpy() + x.numpy())
        assert same(found["more"][0], y.numpy() * 2)
        assert same(found["more"][1][0], b)
        assert found["more"][1][1] is None
        assert found["name"] == "f"
    assert f.explain().compilations == 1
    f({"w": w, "b": b, "c": b}, (x, [y, None]))
    assert f.explain().compilations == 2
    with pytest.raises(ValueError, match="unpack"):
        f({"w": w, "b": b}, (x, [y]))


def test_registered_classes_are_trees() -> None:
    class Pair:
        def __init__(self, left: Any, right: Any) -> None:
            self.left, self.right = left, right

        @jit
        def total(self, factor: float) -> Any:
            return (self.left + self.right) * factor

    ts.register_node(Pair, lambda pair: ((pair.left, pair.right), None), lambda _, children: Pair(*children))
    pair = Pair(rows(2), rows(2, seed=1))
    assert same(pair.total(2.0), (pair.left.numpy() + pair.right.numpy()) * np.float32(2))
    other = Pair(rows(2, seed=2), rows(2, seed=3))
    assert same(other.total(3.0), (other.left.numpy() + other.right.numpy()) * np.float32(3))

    def swap(given: Pair) -> Pair:
        return Pair(given.right, given.left)

    swapped = jit(swap)(pair)
    assert same(swapped.left, pair.right)
    assert isinstance(swapped, Pair)


def test_static_arguments_are_part_of_the_program() -> None:
    seen: list[Any] = []

    @jit(static_argnames="mode")
    def f(x: Any, mode: str, *, axis: int) -> Any:
        seen.append((mode, axis))
        return ts.sum(x, axis=axis) if mode == "sum" else ts.max(x, axis=axis)

    x = rows(3)
    for _ in range(2):
        assert np.allclose(f(x, "sum", axis=0), x.numpy().sum(0))
        assert same(f(x, mode="max", axis=1), x.numpy().max(1))
    assert seen == [("sum", 0), ("max", 1)]
    with pytest.raises(TesseraError, match="must be hashable"):
        jit(product, static_argnums=1)(x, {})
    with pytest.raises(TesseraError, match="no parameter other"):
        jit(product, static_argnames="other")
    with pytest.raises(TesseraError, match="no argument 3"):
        jit(product, static_argnums=3)


def test_true_and_one_are_different_static_arguments() -> None:
    @jit(static_argnums=1)
    def f(x: Any, flag: Any) -> Any:
        return x + 1.0 if flag is True else x

    x = rows(2)
    assert same(f(x, 1), x)
    assert same(f(x, True), x.numpy() + 1)
    assert same(f(x, 1), x)


def test_numbers_are_arguments_and_take_the_type_of_tensors() -> None:
    @jit
    def f(x: Any, rate: float, count: int) -> Any:
        return x * rate + count

    x = rows(2)
    for rate, count in ((0.1, 3), (0.25, -1), (-0.0, 0)):
        found = f(x, rate, count)
        assert found.dtype is f32
        assert same(found, x.numpy() * np.float32(rate) + np.float32(count))
    assert f.explain().compilations == 1
    wide = f(x.to(ts.f64), 0.1, 1)
    assert same(wide, x.numpy().astype(np.float64) * 0.1 + 1)
    assert jit(product)(0.5, 3).dtype is ts.f32
    assert jit(product)(2, 3).dtype is ts.i64
    found = jit(product)(ts.arange(3), 0.5)
    assert (found.dtype, found.tolist()) == (f32, [0.0, 0.5, 1.0])


def test_many_sizes_need_few_programs(caplog: pytest.LogCaptureFixture) -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        return x[1:] * 2.0 + y

    sizes = np.random.default_rng(0).integers(2, 500, 60)
    with caplog.at_level(logging.WARNING), knobs.logs.using("recompiles"):
        for size in sizes.tolist():
            x, y = rows(size), rows(1, seed=1)
            assert same(f(x, y), x.numpy()[1:] * np.float32(2) + y.numpy())
    assert f.explain().compilations == 2
    (message,) = [record.getMessage() for record in caplog.records]
    assert f"argument 'x', axis 0: {sizes[0]} became {sizes[1]}" in message
    assert "test_jit.py" in message


def test_sizes_of_one_stay_numbers() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        return x + y

    for left, right in ((3, 3), (5, 5), (5, 1), (1, 7), (8, 8), (9, 1)):
        assert same(f(rows(left), rows(right)), rows(left).numpy() + rows(right).numpy())
    assert f.explain().compilations == 4
    with pytest.raises(ShapeError, match="do not broadcast"):
        f(rows(3), rows(4))


def test_sizes_that_were_equal_may_part() -> None:
    @jit
    def f(x: Any, y: Any) -> Any:
        return ts.concat([x, y], axis=0)

    for left, right in ((3, 3), (5, 5), (6, 2), (2, 6), (9, 4)):
        assert f(rows(left), rows(right)).shape == (left + right, 4)
    assert f.explain().compilations == 3


def test_what_python_asks_about_sizes_is_guarded() -> None:
    @jit
    def f(x: Any) -> Any:
        if x.shape[0] > 10:
            return x * 2.0
        return x + float(len(x.shape))

    for size in (4, 5, 6, 12, 7, 20, 30):
        expected = rows(size).numpy() * 2 if size > 10 else rows(size).numpy() + 2
        assert same(f(rows(size)), expected)
    assert f.explain().compilations == 3
    assert "only while _0_0 > 10, asked" in str(f.explain())


def test_a_size_as_a_number_makes_a_program_of_its_own() -> None:
    @jit
    def f(x: Any) -> Any:
        total = x[0]
        for index in range(1, x.shape[0]):
            total = total + x[index]
        return total, x.shape[0] * 2, x.shape[0] + x.shape[1]

    for size in (3, 4, 5, 4):
        total, double, together = f(rows(size))
        assert np.allclose(total, rows(size).numpy().sum(0), atol=1e-6)
        assert (double, together) == (2 * size, size + 4)
    assert f.explain().compilations == 3


def test_annotations_name_sizes_and_are_checked() -> None:
    @jit
    @typed(x=Tensor["B", "S", f32], w=Tensor["S", "T", f32])
    def f(x: Any, w: Any) -> Any:
        return x @ w

    for b, s, t in ((2, 3, 4), (5, 1, 7), (1, 6, 2)):
        x, w = ts.randn((b, s), seed=1), ts.randn((s, t), seed=2)
        assert np.allclose(f(x, w), x.numpy() @ w.numpy(), atol=1e-5)
    assert f.explain().compilations == 1
    with pytest.raises(ShapeError, match="argument 'w', axis 0: expected S = 3, got 4"):
        f(ts.zeros((2, 3)), ts.zeros((4, 5)))
    with pytest.raises(DtypeError, match="expected f32, got f64"):
        f(ts.zeros((2, 3), ts.f64), ts.zeros((3, 5)))
    with pytest.raises(ShapeError, match="S and T are not known to be equal"):
        jit(_adds)(ts.zeros((3,)), ts.zeros((3,)))


@typed(x=Tensor["S"], y=Tensor["T"])
def _adds(x: Any, y: Any) -> Any:
    return x + y


def test_a_named_size_that_meets_a_number_is_that_number() -> None:
    weights = ts.randn((4, 2), seed=3)

    @jit
    @typed(x=Tensor["S", "D"])
    def f(x: Any) -> Any:
        return x @ weights

    for size in (3, 5, 9):
        assert np.allclose(f(rows(size)), rows(size).numpy() @ weights.numpy(), atol=1e-5)
    assert f.explain().compilations == 1
    assert "x: [S, 4] of f32" in str(f.explain())


def test_captured_arrays_stand_on_either_side_of_traced_values() -> None:
    table = ts.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))

    @jit
    def uses(indices: Any, x: Any) -> Any:
        return table[indices], table[indices, 1:], table * x, x * table, table < x, table @ x

    indices, x = np.array([2, 0]), np.array([1, 2, 3, 4], np.float32)
    t = table.numpy()
    for found, wanted in zip(uses(indices, x), (t[indices], t[indices, 1:], t * x, x * t, t < x, t @ x), strict=True):
        np.testing.assert_array_equal(np.asarray(found), wanted)

    def assigns(x: Any) -> Any:
        table[0] = x
        return x

    with pytest.raises(ts.EffectError, match="a tensor from outside is assigned to in a jitted function"):
        jit(assigns)(x)


def test_captured_arrays_are_arguments_that_callers_do_not_see() -> None:
    class Model:
        def __init__(self) -> None:
            self.layers = [{"w": rows(4, seed=1)}]
            self.scale = 2.0

    model = Model()

    @jit
    def f(x: Any) -> Any:
        return x @ model.layers[0]["w"] * model.scale

    x = rows(3)

    def expected() -> Any:
        return x.numpy() @ model.layers[0]["w"].numpy() * np.float32(model.scale)

    assert np.allclose(f(x), expected(), atol=1e-5)
    model.layers[0]["w"][0, 0] = 7.0
    assert np.allclose(f(x), expected(), atol=1e-5)
    assert f.explain().compilations == 1
    model.layers[0]["w"] = rows(4, seed=2)
    assert np.allclose(f(x), expected(), atol=1e-5)
    model.scale = 3.0
    assert np.allclose(f(x), expected(), atol=1e-5)
    model.layers = [{"w": rows(4, seed=3)}]
    assert np.allclose(f(x), expected(), atol=1e-5)
    assert f.explain().compilations == 4
    assert "from outside" in str(f.explain().reasons[-1])


def test_methods_see_their_object() -> None:
    class Scaler:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @jit
        def scale(self, x: Any) -> Any:
            return x * self.factor

    two, three, x = Scaler(2.0), Scaler(3.0), rows(2)
    for _ in range(2):
        assert same(two.scale(x), x.numpy() * 2)
        assert same(three.scale(x), x.numpy() * 3)
    two.factor = 5.0
    assert same(two.scale(x), x.numpy() * 5)


def test_jitted_functions_inside_of_others_are_part_of_them() -> None:
    @jit
    @typed(x=Tensor["N", 4])
    def inner(x: Any) -> Any:
        return x * 3.0

    @jit
    def outer(x: Any) -> Any:
        return inner(x) + inner(x)

    assert same(outer(rows(2)), rows(2).numpy() * 3 + rows(2).numpy() * 3)
    assert inner.explain().compilations == 0
    with pytest.raises(ShapeError, match="argument 'x', axis 1"):
        outer(rows(2, 5))


def test_donated_arguments_are_gone() -> None:
    @jit(donate_argnums=0)
    def step(state: Any, x: Any) -> Any:
        return state + x

    state, x = rows(2), rows(2, seed=1)
    result = step(state, x)
    assert same(result, rows(2).numpy() + x.numpy())
    with pytest.raises(EffectError, match="donated"):
        state.numpy()
    with pytest.raises(EffectError, match="donated"):
        step(state, x)
    assert same(step(result, x), rows(2).numpy() + x.numpy() + x.numpy())


def test_results_are_never_arguments() -> None:
    @jit
    def f(x: Any) -> Any:
        return x, x, ts.reshape(x, (-1,))

    x = rows(2)
    first, second, flat = f(x)
    first[0, 0] = 100.0
    assert same(x, rows(2))
    assert same(second, rows(2))
    assert same(flat, rows(2).numpy().reshape(-1))


def test_a_check_tells_types_before_anything_runs() -> None:
    @jit
    def f(x: Any, w: Any) -> Any:
        return {"y": ts.softmax(x @ w), "n": x.shape[0] * 2}

    found = f.check(Tensor["B", "S", 64, ts.bf16], Tensor[64, "D", ts.bf16])
    assert str(found.results["y"]) == 'Tensor["B", "S", "D", bf16]'
    assert str(found.results["n"]) == "2*B"
    assert found.stories["y"].lines()[-1].startswith("softmax: [B, S, D] -> [B, S, D]")
    assert f.explain().compilations == 0
    with pytest.raises(ShapeError, match="columns of the left operand"):
        f.check(Tensor["B", "S", 64, f32], Tensor[32, "D", f32])

    def drawn(x: Any) -> Any:
        return ts.random.uniform(None, x.shape)

    assert ts.check(drawn, Tensor["N"]).effects == ("random",)


def test_levels_of_a_function() -> None:
    @jit
    def f(x: Any) -> Any:
        return ts.exp(x) + 1.0

    lowered = f.lower(rows(3))
    assert "graph.ew<exp>" in lowered.graph_ir.text
    assert "schedule.region" in lowered.schedule_ir.text
    assert "tile.func" in lowered.tile_ir.text
    assert "define" in lowered.target_ir.text
    assert len({level.hash for level in (lowered.graph_ir, lowered.schedule_ir, lowered.tile_ir)}) == 3
    assert len(lowered.kernels) == 1


def test_operators_outside_of_functions_are_compiled_by_themselves() -> None:
    x = rows(3)
    assert np.allclose(ts.softmax(x), np.exp(x.numpy()) / np.exp(x.numpy()).sum(-1, keepdims=True), atol=1e-6)

    @ts.operator
    def twice(x: ts.Tensor, times: int = 2) -> Any:
        return ts.multiply(x, float(times))

    assert same(twice(x), x.numpy() * 2)
    assert same(twice(x, 3), x.numpy() * 3)

    @jit
    def f(x: Any) -> Any:
        return twice(x, 4)

    assert same(f(x), x.numpy() * 4)


def test_garbage_is_collected_where_compiling_took_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("tessera.lang.jit.collect_after", waited.append)
    ticks = itertools.count(0, 1000)
    monkeypatch.setattr("tessera.lang.jit.perf_counter", lambda: next(ticks))

    @jit
    def f(x: Any) -> Any:
        return x + 1.0

    f(ts.ones((3, 4)))
    f(ts.ones((3, 4)))
    assert waited == [1000]


def test_an_explanation_does_not_list_every_parameter() -> None:
    layers = [{"w": ts.ones((2, 2)), "b": ts.ones((2,))} for _ in range(40)]

    @jit
    def summed(x: Any, layers: Any) -> Any:
        return x + layers[0]["b"] + layers[-1]["w"]

    summed(ts.ones((2, 2)), layers)
    said = str(summed.explain())
    assert "layers: and 77 more" in said
    assert "x: [2, 2] of f32" in said
    assert len(said) < 1000
