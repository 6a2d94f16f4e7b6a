"""Numbers, lists and tensors without axes as operands: types of their own, eagerly as in traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import tessera as ts
from tessera.errors import DtypeError, RangeError, ShapeError, TesseraError

X = ts.randn((3,), seed=1)


@pytest.mark.parametrize(
    ("choice", "dtype"), [((1.0, 0.0), ts.f32), ((1, 0.5), ts.f32), ((2, 3), ts.i64), ((True, False), ts.bool_)]
)
def test_a_choice_of_numbers_has_their_default_type(choice: tuple[Any, Any], dtype: ts.DType) -> None:
    def chosen(x: Any) -> Any:
        return ts.where(x > 0, *choice)

    assert chosen(X).dtype is dtype
    assert ts.jit(chosen)(X).dtype is dtype


@pytest.mark.parametrize("dtype", [ts.f16, ts.bf16, ts.f32, ts.f64])
def test_a_choice_of_numbers_meets_tensors_as_it_does_eagerly(dtype: ts.DType) -> None:
    def scaled(x: Any) -> Any:
        return ts.where(x > 0, 1.0, 0.0) * x, ts.where(x > 0, x, 0.0), ts.add(1.0, 2.0) * x, ts.maximum(0.5, 2) * x

    x = ts.astype(X, dtype)
    met = ts.f64 if dtype is ts.f64 else ts.f32
    for found in (scaled(x), ts.jit(scaled)(x)):
        assert [one.dtype for one in found] == [met, dtype, met, met]


def _padded(x: Any) -> Any:
    return ts.pad(x, ((1, 2),))


@pytest.mark.parametrize("dtype", [ts.bool_, ts.i8, ts.u8, ts.i64, ts.f16, ts.f64])
def test_padding_is_nothing_in_every_type(dtype: ts.DType) -> None:
    x = ts.astype(ts.asarray([1, 0, 1]), dtype)
    for found in (ts.pad(x, ((1, 2),)), ts.jit(_padded)(x)):
        assert found.dtype is dtype
        assert found.tolist() == [0, 1, 0, 1, 0, 0]


def test_bools_are_padded_with_bools() -> None:
    assert ts.pad(X > 9, ((1, 0),), value=True).tolist() == [True, False, False, False]
    with pytest.raises(DtypeError, match="does not go with a tensor of bool"):
        ts.pad(X > 9, ((1, 0),), value=1)


def test_a_tensor_without_axes_has_no_indices() -> None:
    with pytest.raises(ShapeError, match="without axes has no indices"):
        ts.nonzero(ts.asarray(3.0))
    assert [one.tolist() for one in ts.nonzero(ts.asarray([3.0]))] == [[0]]


@pytest.mark.parametrize("holds", [True, False])
def test_a_mask_without_axes_puts_one_in_front(holds: bool) -> None:
    """As in NumPy: one element where it holds, and none where it does not."""
    for x in (ts.asarray(3.0), X):
        assert x[ts.asarray(holds)].tolist() == x.numpy()[holds].tolist()


def _column(x: Any) -> Any:
    return ts.reshape(x, (3, 1))


@pytest.mark.parametrize("function", [ts.sum, ts.exp, ts.sort, _column])
def test_a_list_is_no_tensor(function: Callable[[Any], Any]) -> None:
    for given in ([1.0, 2.0, 3.0], (1, 2, 3), [X, X]):
        with pytest.raises(DtypeError, match=r"expected a tensor or a number, got a (list|tuple) of") as raised:
            function(given)
        assert "asarray" in str(raised.value.hint)
    with pytest.raises(DtypeError, match="expected a tensor or a number"):
        ts.jit(lambda *x: function([*x, X]))(X)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ts.sum(X, axis="rows"),  # pyright: ignore[reportArgumentType]
        lambda: ts.reshape(X, "ab"),  # pyright: ignore[reportArgumentType]
        lambda: ts.permute_dims(X, (0.5,)),  # pyright: ignore[reportArgumentType]
        lambda: ts.topk(X, "two"),  # pyright: ignore[reportArgumentType]
        lambda: ts.pad(X, 3),  # pyright: ignore[reportArgumentType]
        lambda: ts.split(X, (0.5, 2.5)),  # pyright: ignore[reportArgumentType]
        lambda: ts.roll(X, "far"),  # pyright: ignore[reportArgumentType]
        lambda: ts.one_hot(X, 3),
    ],
)
def test_wrong_options_are_told(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TesseraError) as raised:
        wrong()
    assert raised.value.hint
    assert not isinstance(raised.value, RangeError)


def test_numbers_of_numpy_fill_tensors() -> None:
    assert ts.full((2,), np.float64(0.5)).dtype is ts.f64
    assert ts.full((2,), cast("Any", np.int64(3)), ts.f32).tolist() == [3.0, 3.0]
    assert ts.full_like(X, np.float64(2)).tolist() == [2.0, 2.0, 2.0]

    def more(x: Any) -> ts.Tensor:
        return x + ts.full_like(x, cast("Any", np.int32(2)))

    assert ts.jit(more)(ts.asarray([1, 2])).tolist() == [3, 4]
    with pytest.raises(DtypeError, match="expected a number"):
        ts.full((2,), "two", ts.f32)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ts.arange([1], 2),  # pyright: ignore[reportArgumentType]
        lambda: ts.linspace(0.0, 1.0, (2, 3)),  # pyright: ignore[reportArgumentType]
        lambda: ts.zeros(2, device=3),  # pyright: ignore[reportArgumentType]
        lambda: ts.from_dlpack([1.0]),
        lambda: ts.dropout(X, "half"),  # pyright: ignore[reportArgumentType]
        lambda: ts.repeat(X, -1),
        lambda: ts.repeat(X, ts.asarray([1, -1, 2])),
        lambda: ts.repeat(X, ts.asarray([1]), axis=4),
    ],
)
def test_makers_refuse_what_they_cannot_use(wrong: Callable[[], Any]) -> None:
    with pytest.raises(TesseraError) as raised:
        wrong()
    assert raised.value.hint
