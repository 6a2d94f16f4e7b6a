"""Operators by kernels of rows, here of the interpreter and of CPUs: what they give where GPUs take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tessera as ts
from tessera import knobs
from tessera.dtypes.types import DType
from tessera.lang.operators import by_rows

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(x: object) -> bool:
        return True

    monkeypatch.setattr(by_rows, "_on_a_gpu", always)


def rows(shape: tuple[int, ...], dtype: DType, *, odd: bool = True) -> Array:
    random = np.random.default_rng(len(shape))
    if not dtype.is_float:
        return random.integers(max(-50, int(dtype.min_value)), 50, shape).astype(dtype.storage)
    x = np.round(4 * random.standard_normal(shape)).astype(np.float32)
    if odd:
        flat = x.reshape(-1)
        flat[::97], flat[5::1001], flat[7::613] = -0.0, np.nan, np.inf
    return x.astype(dtype.storage)


def jitted(operator: Any, *more: Any, **static: Any) -> Any:
    """An operator on one array."""

    def function(x: Any) -> Any:
        return operator(x, *more, **static)

    return ts.jit(function)


def calls(function: Any, *args: Any) -> int:
    """How many kernels a function calls that are no algebra."""
    return function.lower(*args).graph_ir.text.count("graph.call_kernel")


def ordered(x: Array, *, largest: bool) -> Array:
    """The places of elements in order: stable, NaN last."""
    keys = x.astype(np.float64)
    lost = np.isnan(keys)
    keys: Array = np.where(lost, np.inf, -keys if largest else keys)
    return np.lexsort((np.broadcast_to(np.arange(int(x.shape[-1])), tuple(x.shape)), keys, lost), axis=-1)


SHAPES = [(3, 300), (2, 3, 1000), (1, 9001), (2, 8200 * 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.i32])
def test_running_sums(shape: tuple[int, ...], dtype: DType) -> None:
    x = rows(shape, dtype, odd=False)
    given = ts.array(x, dtype)
    found = jitted(ts.ops.cumulative_sum, axis=-1)(given).numpy()
    expected = np.cumsum(x.astype(np.float64), -1).astype(found.dtype)
    assert np.array_equal(found, expected)
    assert calls(jitted(ts.ops.cumulative_sum, axis=-1), given) > 0


def test_running_products_along_another_axis() -> None:
    x = 1 + np.random.default_rng(0).standard_normal((9000, 2)).astype(np.float32) / 100
    found = jitted(ts.ops.cumulative_prod, axis=0)(x).numpy()
    np.testing.assert_allclose(found, np.cumprod(x.astype(np.float64), 0), rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.i32, ts.f64, ts.u8])
def test_places_of_extremes(shape: tuple[int, ...], dtype: DType) -> None:
    x = rows(shape, dtype)
    for name, expected in (("argmax", np.argmax), ("argmin", np.argmin)):
        operator = getattr(ts.ops, name)
        found = jitted(operator, axis=-1)(ts.array(x, dtype)).numpy()
        wide = x.astype(np.float64) if dtype.is_float else x
        assert np.array_equal(found, expected(wide, axis=-1))
        assert int(ts.jit(operator)(ts.array(x, dtype)).numpy()) == expected(wide)


@pytest.mark.parametrize("worst", [-np.inf, np.nan])
def test_rows_of_the_least_element(worst: float) -> None:
    x = np.full((2, 5000), worst, np.float32)
    x[1, 4999] = -np.inf
    assert np.array_equal(jitted(ts.ops.argmax, axis=1)(x).numpy(), np.argmax(x, 1))


@pytest.mark.parametrize("shape", [(3, 300), (2, 2, 1000), (1, 33000)])
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.f16, ts.i32, ts.u8])
@pytest.mark.parametrize(("k", "largest"), [(1, True), (8, False), (50, True)])
def test_selection(shape: tuple[int, ...], dtype: DType, k: int, largest: bool) -> None:
    x = rows(shape, dtype)
    values, places = jitted(ts.ops.topk, k, largest=largest)(ts.array(x, dtype))
    expected = ordered(x, largest=largest)[..., :k]
    assert np.array_equal(places.numpy(), expected)
    wide = x.astype(np.float64)
    assert np.array_equal(values.numpy().astype(np.float64), np.take_along_axis(wide, expected, -1), equal_nan=True)


@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.f16])
@pytest.mark.parametrize("largest", [True, False])
def test_equal_elements_beside_the_last_one_that_is_selected(dtype: DType, largest: bool) -> None:
    """Narrow floats of either sign have keys whose lowest bits are all ones."""
    x = np.full((2, 300), -1.0 if largest else 1.0, np.float32)
    x[:, 0], x[:, 7] = x[0, 0] / 2, x[0, 0] / 4
    values, places = jitted(ts.ops.topk, 4, largest=largest)(ts.array(x, dtype))
    assert np.array_equal(places.numpy(), [[7, 0, 1, 2]] * 2)
    assert np.array_equal(values.numpy().astype(np.float32), np.take_along_axis(x, places.numpy(), 1))


def test_nan_are_selected_before_what_fills_parts_up() -> None:
    x = np.full((1, 16411), np.nan, np.float32)
    x[0, 16400] = -np.inf
    values, places = jitted(ts.ops.topk, 3)(x)
    assert np.array_equal(places.numpy(), [[16400, 0, 1]])
    assert np.array_equal(values.numpy(), [[-np.inf, np.nan, np.nan]], equal_nan=True)


def test_the_same_in_the_interpreter() -> None:
    x = rows((2, 700), ts.f32)
    with knobs.interpret.using(True):
        places = jitted(ts.ops.topk, 5)(x)[1].numpy()
    assert np.array_equal(places, ordered(x, largest=True)[:, :5])


def test_numbers_that_are_close_are_told_apart() -> None:
    x = np.random.default_rng(3).standard_normal((2, 3000)).astype(np.float32)
    values, places = jitted(ts.ops.topk, 100)(x)
    assert np.array_equal(places.numpy(), ordered(x, largest=True)[:, :100])
    assert np.array_equal(values.numpy(), -np.sort(-x, -1)[:, :100])


@pytest.mark.parametrize("shape", [(3, 300), (2, 2, 1024)])
@pytest.mark.parametrize("dtype", [ts.f32, ts.bf16, ts.f16, ts.i32, ts.u8, ts.i64, ts.f64])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(shape: tuple[int, ...], dtype: DType, descending: bool) -> None:
    x = rows(shape, dtype)
    given = ts.array(x, dtype)
    expected = ordered(x, largest=descending)
    found = jitted(ts.ops.sort, descending=descending)(given).numpy().astype(np.float64)
    assert np.array_equal(found, np.take_along_axis(x.astype(np.float64), expected, -1), equal_nan=True)
    if dtype.bits <= 32:
        assert np.array_equal(jitted(ts.ops.argsort, descending=descending)(given).numpy(), expected)


@pytest.mark.acceptance
def test_rows_that_no_instance_holds_are_merged() -> None:
    x = rows((1, 40000), ts.f32)
    found = ts.jit(ts.ops.argsort)(x).numpy()
    assert np.array_equal(found, ordered(x, largest=False))


@pytest.mark.parametrize(
    ("operator", "more"), [(ts.sort, ()), (ts.cumulative_sum, ()), (ts.topk, (4,))], ids=["sort", "sum", "topk"]
)
def test_derivatives_do_not_meet_kernels(operator: Any, more: tuple[int, ...]) -> None:
    weights = np.random.default_rng(1).standard_normal((3, 300)).astype(np.float32)

    def loss(x: Any) -> Any:
        found = operator(x, *more, axis=1)
        values = found[0] if isinstance(found, tuple) else found
        return ts.sum(values * ts.asarray(weights)[:, : values.shape[1]])

    x = rows((3, 300), ts.f32, odd=False) + np.linspace(0, 0.5, 300, dtype=np.float32)
    with knobs.interpret.using(True):
        found = np.asarray(ts.grad(loss)(ts.asarray(x)))
    if operator is ts.cumulative_sum:
        expected = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
    else:
        order = ordered(x, largest=operator is ts.topk)[:, : more[0] if more else None]
        expected = np.zeros_like(x)
        np.put_along_axis(expected, order, weights[:, : order.shape[1]], axis=1)
    assert np.allclose(found, expected, atol=1e-4)
